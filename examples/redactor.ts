// examples/redactor.ts
import { defineMiddleware, fail, type Block } from "tollgate/plugin";

// Both patterns take linear time, because every repetition is bounded.
const EMAIL = /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/g;
const CARD = /\b\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,7}\b/g;

const redact = (text: string): string =>
  text.replace(EMAIL, "[email]").replace(CARD, "[card number]");

/** Returns a new block, because arguments are read-only. A block that the provider has signed is unchanged. */
function redacted(block: Block): Block {
  if (block.proof) return block;
  switch (block.type) {
    case "text":
      return { ...block, text: redact(block.text) };
    case "call":
      return { ...block, args: redact(block.args) };
    case "result":
      return { ...block, blocks: block.blocks.map(redacted) };
    default:
      return block;
  }
}

/** Whether the block contains data that this middleware does not read. */
const isUnread = (block: Block): boolean =>
  "media" in block || (block.type === "result" && block.blocks.some(isUnread));

export default defineMiddleware({
  api: 1,
  name: "redactor",
  summary: "Removes email addresses and card numbers from chats before they are sent",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      text_only: {
        type: "boolean",
        default: false,
        description: "Whether to reject images, audio, and documents, which are not read",
      },
    },
  },
  setup: ({ text_only }) => ({
    rewrite(request) {
      if (request.operation !== "chat") return request;
      return {
        ...request,
        instructions: request.instructions.map(redacted),
        turns: request.turns.map((turn) => ({ ...turn, blocks: turn.blocks.map(redacted) })),
      };
    },
    // Called after every rewrite hook, with the final request.
    inspect(request) {
      if (!text_only || request.operation !== "chat") return;
      if (request.turns.some(({ blocks }) => blocks.some(isUnread)))
        fail("forbidden", "Only text is allowed in requests.", { code: "text_only" });
    },
  }),
});

// examples/redactor.ts
import { defineMiddleware, fail, type Block } from "tollgate/plugin";

// Both are linear: each repetition has an end, so a long text without an "@" costs no more than its length.
const EMAIL = /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/g;
const CARD = /\b\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,7}\b/g;

const redact = (text: string): string =>
  text.replace(EMAIL, "[email]").replace(CARD, "[card number]");

/** A new block: what a hook is handed is read-only. A block that the provider signed stays as it was signed. */
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

/** What this redactor cannot look into. */
const unread = (block: Block): boolean =>
  "media" in block || (block.type === "result" && block.blocks.some(unread));

export default defineMiddleware({
  api: 1,
  name: "redactor",
  summary: "Takes mail addresses and card numbers out of chats before they leave",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      text_only: {
        type: "boolean",
        default: false,
        description: "Refuse pictures, sound and documents, which are not looked into",
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
    // After every rewrite: what it is shown is what leaves.
    inspect(request) {
      if (!text_only || request.operation !== "chat") return;
      if (request.turns.some(({ blocks }) => blocks.some(unread)))
        fail("forbidden", "Only text may be sent from here.", { code: "text_only" });
    },
  }),
});

// examples/redactor.ts
import { defineMiddleware, type Block } from "tollgate/plugin";

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

export default defineMiddleware({
  api: 1,
  name: "redactor",
  summary: "Takes mail addresses and card numbers out of chats before they leave",
  sends: "nowhere",
  setup: () => ({
    rewrite(request) {
      if (request.kind !== "chat") return request;
      return {
        ...request,
        instructions: request.instructions.map(redacted),
        turns: request.turns.map((turn) => ({ ...turn, blocks: turn.blocks.map(redacted) })),
      };
    },
  }),
});

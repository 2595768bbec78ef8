// examples/guard.ts
import { defineMiddleware, fail, type Block, type Exchange } from "tollgate/plugin";

/** Yields every text of a conversation, including tool calls and tool results. */
function* texts(blocks: readonly Block[]): Generator<string> {
  for (const block of blocks)
    if (block.type === "text") yield block.text;
    else if (block.type === "call") yield block.args;
    else if (block.type === "result") yield* texts(block.blocks);
}

export default defineMiddleware({
  api: 1,
  name: "guard",
  summary: "Rejects requests and stops responses that contain a listed word",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["words"],
    properties: {
      words: {
        type: "array",
        minItems: 1,
        items: { type: "string", minLength: 1 },
        description: "Words that may not appear in requests or responses",
      },
      answer: {
        type: "string",
        minLength: 1,
        description: "Response to a chat that contains a listed word. Default: an error",
      },
    },
  },
  setup({ words, answer }) {
    const listed = words.map((word) => word.toLowerCase());
    const longest = Math.max(...listed.map((word) => word.length));
    const isListed = (text: string) => listed.some((word) => text.toLowerCase().includes(word));
    const matched = new WeakSet<Exchange>();
    return {
      // Called once per request, before a provider is selected.
      inspect(request, x) {
        if (request.operation !== "chat") return;
        const blocks = [...request.instructions, ...request.turns.flatMap((turn) => turn.blocks)];
        if (![...texts(blocks)].some(isListed)) return;
        x.addLabel("guard", "matched");
        if (answer === undefined)
          fail("content_policy", "The request contains a word that is not allowed.", {
            code: "word_not_allowed",
          });
        matched.add(x);
      },
      // The gateway encodes the response in the client's protocol, streaming or not. No provider is called.
      async attempt(call, next) {
        if (answer === undefined || !matched.has(call.exchange)) return next();
        return {
          response: {
            blocks: [{ type: "text", text: answer }],
            finish: { type: "finish", reason: "refusal" },
          },
        };
      },
      // Reads the response while it is forwarded. A word may be split into two deltas, so the end
      // of the text is kept.
      watch(_call, stop) {
        const ends = new Map<number, string>();
        return (event) => {
          if (event.type !== "delta") return;
          const text = (ends.get(event.index) ?? "") + event.text;
          ends.set(event.index, text.slice(Math.max(0, text.length - longest + 1)));
          if (isListed(text))
            stop({
              kind: "content_policy",
              message: "The response was stopped at a word that is not allowed.",
            });
        };
      },
    };
  },
});

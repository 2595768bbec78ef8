// As it was written for Tollgate 0.1. Nothing here is changed: what api 1 promised to it is kept.
import { defineMiddleware, fail, type Block, type Exchange } from "tollgate/plugin";

/** Every text of a conversation, in whatever block it stands. */
function* texts(blocks: readonly Block[]): Generator<string> {
  for (const block of blocks)
    if (block.type === "text") yield block.text;
    else if (block.type === "call") yield block.args;
    else if (block.type === "result") yield* texts(block.blocks);
}

export default defineMiddleware({
  api: 1,
  name: "guard",
  summary: "Lets no listed word in, and none out",
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
        description: "Words that are neither asked for nor said",
      },
      answer: {
        type: "string",
        minLength: 1,
        description: "What a chat is answered that has one, in place of a refusal",
      },
    },
  },
  setup({ words, answer }) {
    const listed = words.map((word) => word.toLowerCase());
    const longest = Math.max(...listed.map((word) => word.length));
    const hasOne = (text: string) => listed.some((word) => text.toLowerCase().includes(word));
    const caught = new WeakSet<Exchange>();
    return {
      // Once for each request, before a provider is chosen.
      inspect(request, x) {
        if (request.operation !== "chat") return;
        const blocks = [...request.instructions, ...request.turns.flatMap((turn) => turn.blocks)];
        if (![...texts(blocks)].some(hasOne)) return;
        x.addLabel("guard", "asked");
        if (answer === undefined)
          fail("content_policy", "This request has a word that may not be used here.", {
            code: "word_not_allowed",
          });
        caught.add(x);
      },
      // The host writes it in the client's protocol, streamed or whole. No provider is asked.
      async attempt(call, next) {
        if (answer === undefined || !caught.has(call.exchange)) return next();
        return {
          response: {
            blocks: [{ type: "text", text: answer }],
            finish: { type: "finish", reason: "refusal" },
          },
        };
      },
      // Beside the answer as it passes. A word may come in two pieces, so the end of the last one is kept.
      watch(_call, stop) {
        const ends = new Map<number, string>();
        return (event) => {
          if (event.type !== "delta") return;
          const text = (ends.get(event.index) ?? "") + event.text;
          ends.set(event.index, text.slice(Math.max(0, text.length - longest + 1)));
          if (hasOne(text))
            stop({ kind: "content_policy", message: "The answer was stopped at a word." });
        };
      },
    };
  },
});

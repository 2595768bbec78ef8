// examples/mask.ts
import { defineMiddleware } from "tollgate/plugin";

export default defineMiddleware({
  api: 1,
  name: "mask",
  summary: "Replaces listed words in the text of responses",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["words"],
    properties: {
      words: {
        type: "array",
        minItems: 1,
        maxItems: 1_000,
        items: { type: "string", minLength: 1, maxLength: 200 },
        description: "Words to replace. Case is ignored",
      },
      replacement: {
        type: "string",
        default: "[removed]",
        description: "Text that replaces each word",
      },
    },
  },
  setup({ words, replacement }) {
    const byLength = words.toSorted((a, b) => b.length - a.length);
    const longest = byLength[0]!.length;
    const escaped = byLength.map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    const listed = new RegExp(escaped.join("|"), "gi");

    /** Masks the words that begin before `end`. Returns the finished text and the text to hold back. */
    function masked(text: string, end: number): readonly [done: string, rest: string] {
      let done = "";
      let at = 0;
      for (const { index, 0: word } of text.matchAll(listed)) {
        if (index >= end) break;
        done += text.slice(at, index) + replacement;
        at = index + word.length;
      }
      const cut = Math.max(at, end, 0);
      return [done + text.slice(at, cut), text.slice(cut)];
    }

    return {
      // Called once per call. The returned function is called for each event of the response.
      event(_call, next) {
        /** The last characters of each block's text, held back because they may begin a word. */
        const held = new Map<number, string>();
        return (event) => {
          if (event.type === "open" && event.block.type === "text") held.set(event.index, "");
          const before = "index" in event ? held.get(event.index) : undefined;
          if (before === undefined || (event.type !== "delta" && event.type !== "close"))
            return next(event);
          const { index } = event;
          const whole = event.type === "close";
          const text = whole ? before : before + event.text;
          const [done, rest] = masked(text, whole ? text.length : text.length - longest + 1);
          if (done !== "") next({ type: "delta", index, text: done });
          held.set(index, rest);
          if (whole) next(event);
        };
      },
    };
  },
});

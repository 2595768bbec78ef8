// Extracts reasoning that is part of the text, between tags. It is used only for backends that are
// known to do this, and only at the start of the text. The same tags further down may be code that
// the response quotes.
const OPEN = "<think>";
const CLOSE = "</think>";

export interface ThinkTagParser {
  push(text: string): void;
  end(): void;
}

export function createThinkTagParser(
  say: (channel: "text" | "reasoning", text: string) => void,
): ThinkTagParser {
  let where: "before" | "inside" | "after" | "text" = "before";
  /** Text that may be the beginning of a tag. */
  let held = "";
  /** Whether only whitespace has arrived so far. */
  let blank = true;
  const push = (text: string): void => {
    const all = held + text;
    held = "";
    switch (where) {
      case "before": {
        // Whitespace in many pieces is collected without repeated trimming.
        if (text.trim() === "" && blank) {
          held = all;
          return;
        }
        const trimmed = all.trimStart();
        blank = trimmed === "";
        if (trimmed.startsWith(OPEN)) {
          where = "inside";
          return push(trimmed.slice(OPEN.length).replace(/^\n/, ""));
        }
        if (OPEN.startsWith(trimmed)) {
          held = all;
          return;
        }
        where = "text";
        return say("text", all);
      }
      case "inside": {
        const end = all.indexOf(CLOSE);
        if (end >= 0) {
          where = "after";
          say("reasoning", all.slice(0, end));
          return push(all.slice(end + CLOSE.length));
        }
        const keep = possibleCloseTagLength(all);
        held = all.slice(all.length - keep);
        return say("reasoning", all.slice(0, all.length - keep));
      }
      case "after": {
        const trimmed = all.trimStart();
        if (trimmed === "") return;
        where = "text";
        return say("text", trimmed);
      }
      case "text":
        return say("text", all);
    }
  };
  return {
    push,
    end() {
      if (held !== "") say(where === "inside" ? "reasoning" : "text", held);
      held = "";
    },
  };
}

/** Returns how many of the last characters could begin the closing tag. */
function possibleCloseTagLength(text: string): number {
  for (let n = Math.min(CLOSE.length - 1, text.length); n > 0; n--)
    if (CLOSE.startsWith(text.slice(-n))) return n;
  return 0;
}

/**
 * Parses truncated JSON as far as possible. Open brackets and strings are closed, and incomplete
 * members are dropped. Returns undefined if nothing can be parsed.
 */
export function repairTruncatedJson(text: string): unknown {
  for (const upTo of [text.length, lastCompleteEnd(text)]) {
    try {
      return JSON.parse(closeOpenBrackets(text.slice(0, upTo)));
    } catch {
      // The text may end in a key without a value or in half a number. The next attempt ends at the
      // last complete member.
    }
  }
  return undefined;
}

interface Scan {
  /** Closing brackets of all open brackets, innermost last. */
  open: string[];
  inString: boolean;
  /** Offset at which the last complete member or bracket ended. */
  lastCompleteAt: number;
}

function scanPrefix(text: string): Scan {
  const at: Scan = { open: [], inString: false, lastCompleteAt: 0 };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (at.inString) {
      if (c === "\\") i++;
      else if (c === '"') at.inString = false;
    } else if (c === '"') at.inString = true;
    else if (c === "{" || c === "[") {
      at.open.push(c === "{" ? "}" : "]");
      at.lastCompleteAt = i + 1;
    } else if (c === "}" || c === "]") {
      at.open.pop();
      at.lastCompleteAt = i + 1;
    } else if (c === ",") at.lastCompleteAt = i;
  }
  return at;
}

const lastCompleteEnd = (text: string): number => scanPrefix(text).lastCompleteAt;

function closeOpenBrackets(text: string): string {
  const { open, inString } = scanPrefix(text);
  // An incomplete escape sequence has no meaning yet, so it is removed.
  const prefix = inString ? `${text.replace(/\\(?:u[\da-f]{0,3})?$/i, "")}"` : text;
  return prefix + open.toReversed().join("");
}

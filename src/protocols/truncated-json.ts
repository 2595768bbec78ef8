/** JSON that was cut somewhere, as far as it goes: what was open is closed, and what had only begun is left out. */
export function repairTruncatedJson(text: string): unknown {
  for (const upTo of [text.length, lastCompleteEnd(text)]) {
    try {
      return JSON.parse(closeOpenBrackets(text.slice(0, upTo)));
    } catch {
      // A key without its value, half a number: less of it, then.
    }
  }
  return undefined;
}

interface Scan {
  /** What closes it, the innermost last. */
  open: string[];
  inString: boolean;
  /** Where the last member, or the last bracket, ended. */
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
  // Half an escape says nothing yet.
  const prefix = inString ? `${text.replace(/\\(?:u[\da-f]{0,3})?$/i, "")}"` : text;
  return prefix + open.toReversed().join("");
}

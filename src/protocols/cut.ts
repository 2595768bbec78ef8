/** JSON that was cut somewhere, as far as it goes: what was open is closed, and what had only begun is left out. */
export function mended(text: string): unknown {
  for (const upTo of [text.length, lastWhole(text)]) {
    try {
      return JSON.parse(closed(text.slice(0, upTo)));
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
  whole: number;
}

function scan(text: string): Scan {
  const at: Scan = { open: [], inString: false, whole: 0 };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (at.inString) {
      if (c === "\\") i++;
      else if (c === '"') at.inString = false;
    } else if (c === '"') at.inString = true;
    else if (c === "{" || c === "[") {
      at.open.push(c === "{" ? "}" : "]");
      at.whole = i + 1;
    } else if (c === "}" || c === "]") {
      at.open.pop();
      at.whole = i + 1;
    } else if (c === ",") at.whole = i;
  }
  return at;
}

const lastWhole = (text: string): number => scan(text).whole;

function closed(text: string): string {
  const { open, inString } = scan(text);
  // Half an escape says nothing yet.
  const said = inString ? `${text.replace(/\\(?:u[\da-f]{0,3})?$/i, "")}"` : text;
  return said + open.toReversed().join("");
}

import { fail } from "tollgate/plugin";

/** Longer than any line that Acme sends: what has no end is not collected. */
const LONGEST = 1024 * 1024;

/** JSON a line, however its bytes were cut. A line that is not whole is no line. */
export async function* lines(
  body: AsyncIterable<Uint8Array> | null,
): AsyncGenerator<{ readonly [name: string]: unknown }> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    const [first = "", ...more] = decoder.decode(chunk, { stream: true }).split("\n");
    pieces.push(first);
    length += first.length;
    if (length > LONGEST) fail("upstream", "Acme sent a line without an end.");
    for (const next of more) {
      const text = pieces.join("");
      if (text.trim() !== "") yield parsed(text);
      pieces = [next];
      length = next.length;
    }
  }
}

function parsed(text: string): { readonly [name: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Told below, in words that hold nothing of the answer.
  }
  return fail("upstream", "Acme sent a line that is no JSON.");
}

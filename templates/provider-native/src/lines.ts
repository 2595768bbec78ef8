import { fail } from "tollgate/plugin";

/** Maximum length of a line. A longer line is an error, so the buffer is bounded. */
const MAX_LINE = 1024 * 1024;

/** Yields one JSON object per line, however the bytes are split. Ignores an incomplete last line. */
export async function* lines(
  body: AsyncIterable<Uint8Array> | null,
): AsyncGenerator<{ readonly [name: string]: unknown }> {
  const decoder = new TextDecoder();
  let chunks: string[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    const [first = "", ...more] = decoder.decode(chunk, { stream: true }).split("\n");
    chunks.push(first);
    length += first.length;
    if (length > MAX_LINE) fail("upstream", "Acme sent a line that is too long.");
    for (const next of more) {
      const text = chunks.join("");
      if (text.trim() !== "") yield parseObject(text);
      chunks = [next];
      length = next.length;
    }
  }
}

function parseObject(text: string): { readonly [name: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Reported below, with a message that contains nothing of the response.
  }
  return fail("upstream", "Acme sent invalid JSON.");
}

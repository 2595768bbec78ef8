// JSON that keeps big integers, for records that hold them in places of their own choosing.
const TAG = "~bigint";

export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, v: unknown) => (typeof v === "bigint" ? { [TAG]: String(v) } : v));

export const fromJson = <T>(text: string): T =>
  JSON.parse(text, (_key, v: unknown) =>
    v !== null && typeof v === "object" && TAG in v ? BigInt((v as { [TAG]: string })[TAG]) : v,
  ) as T;

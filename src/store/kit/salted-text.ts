// Personal data in a chain is represented by salted hashes. A text can be omitted from an archive
// or erased, and the rest can still be verified. An erased text cannot be guessed from its hash.
import { hash, randomBytes } from "node:crypto";
import type { AccountRecord, ErasureRequest, KeyRecord } from "../../plugin/index.ts";

/** The text that readers get in place of erased text. */
export const ERASED = "erased";

const HASH_LENGTH = 22;
/** Returns the salted hash of a text: 22 base64url characters, which is 16.5 bytes. */
export const hashSalted = (salt: string, text: string): string =>
  hash("sha256", `${salt}\n${text}`, "base64url").slice(0, HASH_LENGTH);

/** Creates a random 128-bit salt. */
export const createSalt = (): string => randomBytes(16).toString("base64url");

/** Hashes a set of hashes. The result does not depend on their order. */
export const hashSet = (hashes: readonly string[]): string =>
  hash("sha256", [...hashes].sort().join("\n"));

/**
 * Encodes text as JSON. Stores keep names, keys, and texts in this form, because JSON can represent
 * unpaired surrogates.
 */
export const toJsonText = (text: string | null): string => JSON.stringify(text);

/** Salts or texts of labels, by name. */
export type LabelTexts = Readonly<Record<string, string>>;

/** Creates a salt for each label. Input and result are JSON objects by label name. */
export function createSalts(labels: string): string {
  const names = Object.keys(JSON.parse(labels) as LabelTexts);
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, createSalt()])));
}

/** Prefix that replaces the salt of an erased text. The hash follows it. */
const ERASED_PREFIX = "=";

/** Returns the salt value of an erased text. */
export const toErasedSalt = (hashed: string): string => ERASED_PREFIX + hashed;

/** Whether the text of this salt was erased. */
export const isErasedSalt = (salt: string): boolean => salt.startsWith(ERASED_PREFIX);

/** Returns the hash of a text that the chain covers. Erased texts have it in place of the salt. */
export const hashOrErased = (salt: string, text: string): string =>
  isErasedSalt(salt) ? salt.slice(ERASED_PREFIX.length) : hashSalted(salt, text);

/** Returns the hash of a label that the chain covers. */
export const hashLabel = (salt: string, text: string): string =>
  hashOrErased(salt, toJsonText(text));

/** Returns labels with hashes in place of their texts. Both arguments are JSON objects by name. */
export function hashLabels(labels: string, salts: string): LabelTexts {
  const of = JSON.parse(salts) as LabelTexts;
  const entries = Object.entries(JSON.parse(labels) as LabelTexts);
  return Object.fromEntries(entries.map(([name, its]) => [name, hashLabel(of[name] ?? "", its)]));
}

// Erases texts of keys and accounts.

/** Whether a text is to be erased. `name` is the label's name, or null for the record's name. */
export type TextFilter = (name: string | null, text: string) => boolean;

/**
 * Returns the filter for the texts of a record. Returns undefined for a request by hashes, because
 * only the store can resolve them.
 */
export function textFilter(
  what: ErasureRequest,
  kind: "key" | "account",
  id: string,
): TextFilter | undefined {
  if ("hashes" in what) return undefined;
  if ("key" in what) return () => kind === "key" && id === what.key;
  if ("account" in what) return () => kind === "account" && id === what.account;
  const { name: label, value } = what.label;
  return (name, text) => name === label && text === value;
}

/** Returns the record without the texts, or undefined if it contains none of them. */
export function redactRecord<R extends Pick<KeyRecord | AccountRecord, "name" | "labels">>(
  record: R,
  matches: TextFilter,
): R | undefined {
  let changed = false;
  const redact = (name: string | null, text: string): string => {
    if (text === ERASED || !matches(name, text)) return text;
    changed = true;
    return ERASED;
  };
  const name = record.name === undefined ? undefined : redact(null, record.name);
  const labels =
    record.labels &&
    Object.fromEntries(
      Object.entries(record.labels).map(([label, text]) => [
        label,
        text === undefined ? text : redact(label, text),
      ]),
    );
  if (!changed) return undefined;
  return { ...record, ...(name !== undefined && { name }), ...(labels && { labels }) };
}

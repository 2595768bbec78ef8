// Personal data in the chain is represented by salted hashes. An archive can omit a label, or a
// label can be erased, and the rest can still be verified. Erased text cannot be guessed from its
// hash.
import { hash, randomBytes } from "node:crypto";

/** Creates a salt for each label. Input and result are JSON objects by label name. */
export function createSalts(labels: string): string {
  const names = Object.keys(JSON.parse(labels) as Labels);
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, createSalt()])));
}

type Labels = Readonly<Record<string, string>>;

/** Prefix in the salt column of an erased label. The hash follows it in place of the salt. */
const ERASED_PREFIX = "=";

/** Returns the hash of a label that the chain covers. */
export const hashLabel = (salt: string, name: string, text: string): string =>
  salt.startsWith(ERASED_PREFIX)
    ? salt.slice(ERASED_PREFIX.length)
    : hash("sha256", JSON.stringify([salt, name, text]), "base64url");

/** Returns the salt value of an erased label. */
export const toErasedSalt = (hashed: string): string => ERASED_PREFIX + hashed;

/** Returns whether the text of a label was erased. */
export const isErasedSalt = (salt: string): boolean => salt.startsWith(ERASED_PREFIX);

/**
 * Returns labels in the form that the chain covers. Labels without salts are already in that form.
 */
export function hashLabels(labels: string | null, salts: string | null): string | null {
  if (labels === null || salts === null) return labels;
  const of = JSON.parse(salts) as Labels;
  const said = Object.entries(JSON.parse(labels) as Labels);
  return JSON.stringify(said.map(([name, its]) => [name, hashLabel(of[name] ?? "", name, its)]));
}

/** Creates a random 128-bit salt. */
export const createSalt = (): string => randomBytes(16).toString("base64url");

/** Returns the hash of a note's text that the chain covers. */
export const hashNote = (salt: string, text: string): string =>
  isErasedSalt(salt)
    ? salt.slice(ERASED_PREFIX.length)
    : hash("sha256", `${salt}\n${text}`, "base64url");

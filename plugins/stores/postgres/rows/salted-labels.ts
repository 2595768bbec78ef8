// What rows say of people stands in the chain as hashes with a salt each. So an archive may leave a label out, and a label may be taken out for
// good, and all else is proved still; and what is gone cannot be guessed from its hash.
import { hash, randomBytes } from "node:crypto";

/** Of labels as their column has them: a salt each, by name. */
export function createSalts(labels: string): string {
  const names = Object.keys(JSON.parse(labels) as Labels);
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, createSalt()])));
}

type Labels = Readonly<Record<string, string>>;

/** Of an erased label its column has the hash in the salt's place, behind this. */
const ERASED_PREFIX = "=";

/** What the chain has of one label. */
export const hashLabel = (salt: string, name: string, text: string): string =>
  salt.startsWith(ERASED_PREFIX)
    ? salt.slice(ERASED_PREFIX.length)
    : hash("sha256", JSON.stringify([salt, name, text]), "base64url");

/** A salt whose label is taken out. */
export const toErasedSalt = (hashed: string): string => ERASED_PREFIX + hashed;

/** Whether a label's text has been taken out. */
export const isErasedSalt = (salt: string): boolean => salt.startsWith(ERASED_PREFIX);

/** Labels as the chain has them. Without salts they are these already. */
export function hashLabels(labels: string | null, salts: string | null): string | null {
  if (labels === null || salts === null) return labels;
  const of = JSON.parse(salts) as Labels;
  const said = Object.entries(JSON.parse(labels) as Labels);
  return JSON.stringify(said.map(([name, its]) => [name, hashLabel(of[name] ?? "", name, its)]));
}

/** One that nothing else has. */
export const createSalt = (): string => randomBytes(16).toString("base64url");

/** What the chain has of a note's text. */
export const hashNote = (salt: string, text: string): string =>
  isErasedSalt(salt)
    ? salt.slice(ERASED_PREFIX.length)
    : hash("sha256", `${salt}\n${text}`, "base64url");

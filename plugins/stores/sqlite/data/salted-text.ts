// What a label says, and what a key is called, may be a person. The chain covers a hash of it alone, with a salt of its own: text and
// salt stand in a table beside it. Once both are gone, the hash still verifies, and what it stood for cannot be guessed.
import { hash, randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { HeadersOut, KeyRecord } from "tollgate/plugin";
import { toJson } from "tollgate/store";
import { chapterOf } from "./key-index.ts";
import type { TermsTuple } from "./call-terms.ts";
import type { EncodedTerms } from "./batch-codec.ts";
import { createHashedTerms, type HashedTerms } from "./hashed-terms.ts";

/** Names, keys and texts stand in the file as JSON, which has words for half a character too. */
export const toJsonText = (text: string | null): string => JSON.stringify(text);

/** Of a key's own name, which is no label's. */
export const KEY_NAME_LABEL = toJsonText(null);

/** Whose words an account's are, beside those of keys. */
export const accountOwner = (account: string): string => `account:${account}`;

const HASH_LENGTH = 22;
/** Sixteen bytes and a half, of salt and text. */
export const hashSalted = (salt: string, text: string): string =>
  hash("sha256", `${salt}\n${text}`, "base64url").slice(0, HASH_LENGTH);

/** Where labels stand in terms. */
const LABELS_INDEX = 6;

/** What has words: its owner's, by id. */
export type NamedRecord = Pick<KeyRecord, "id" | "name" | "labels">;

export interface SaltedTexts {
  /** Terms as the chain has them. */
  hashTerms(terms: EncodedTerms): HashedTerms;
  /** The record of a key or an account as the chain has it; its words stay as long as it does. */
  hashRecord(record: NamedRecord): string;
  /** A batch that begins at `first` has said these terms. */
  addTerms(terms: readonly HashedTerms[], first: number): void;
  rollback(): void;
  commit(): void;
  /** Text was taken out: what was said before is said anew. */
  forget(): void;
}

/** Texts that have a hash, at a time; one that is not known any more gets another. */
const MAX_KNOWN_TEXTS = 20_000;

export function createSaltedTexts(db: DatabaseSync): SaltedTexts {
  const make = db.prepare(
    "INSERT INTO salted_text (hash, key, name, salt, text, retained) VALUES (?, ?, ?, ?, ?, 0)",
  );
  const keep = db.prepare("UPDATE salted_text SET retained = 1 WHERE hash = ?");
  const spoken = db.prepare(
    "INSERT INTO text_chapter (hash, chapter) VALUES (?, ?) " +
      "ON CONFLICT (hash) DO UPDATE SET chapter = excluded.chapter WHERE chapter < excluded.chapter",
  );
  const known = new Map<string, string>();
  /** Whose sayings hold: another one's words may never have come to the file. */
  let token = {};
  let made = false;
  let told: HashedTerms[] = [];

  function forget(): void {
    known.clear();
    token = {};
  }

  function word(key: string, name: string, text: string): string {
    const [of, value] = [toJsonText(key), toJsonText(text)];
    const id = `${of} ${name} ${value}`;
    const found = known.get(id);
    if (found !== undefined) return found;
    const salt = randomBytes(16).toString("base64url");
    const its = hashSalted(salt, value);
    make.run(its, of, name, salt, value);
    made = true;
    if (known.size >= MAX_KNOWN_TEXTS) known.clear();
    known.set(id, its);
    return its;
  }

  function all(key: string, labels: HeadersOut): [name: string, hash: string][] {
    return Object.entries(labels)
      .filter((entry): entry is [string, string] => entry[1] !== undefined)
      .map(([name, text]) => [name, word(key, toJsonText(name), text)]);
  }

  return {
    hashTerms(terms) {
      if (terms.hashed?.owner === token) return terms.hashed;
      const listed = JSON.parse(terms.text) as [...TermsTuple];
      const words = all(terms.key, listed[LABELS_INDEX]);
      if (words.length > 0) listed[LABELS_INDEX] = Object.fromEntries(words);
      const text = words.length > 0 ? JSON.stringify(listed) : terms.text;
      return (terms.hashed = createHashedTerms(text, token));
    },
    hashRecord(record) {
      const { id, name, labels } = record;
      const said = { ...record };
      if (name !== undefined) said.name = word(id, KEY_NAME_LABEL, name);
      const words = all(id, labels ?? {});
      if (words.length > 0) said.labels = Object.fromEntries(words);
      for (const [, its] of [["", said.name] as const, ...words])
        if (its !== undefined) keep.run(its);
      return toJson(said);
    },
    addTerms(terms, first) {
      const chapter = chapterOf(first);
      for (const said of terms) {
        if (said.chapter === chapter) continue;
        said.chapter = chapter;
        told.push(said);
        for (const its of said.textHashes) spoken.run(its, chapter);
      }
    },
    rollback() {
      for (const said of told) said.chapter = -1;
      told = [];
      if (made) forget();
      made = false;
    },
    commit() {
      if (told.length > 0) told = [];
      made = false;
    },
    forget,
  };
}

/** What a reader is shown in place of a hash. */
export interface LabelResolver {
  resolve(of: HeadersOut): HeadersOut;
  /** Text may be gone since it was looked up. */
  forget(): void;
}

export const ERASED = "erased";
/** Remembered at a time. */
const MAX_REMEMBERED = 20_000;

export function createLabelResolver(db: DatabaseSync): LabelResolver {
  const find = db.prepare("SELECT text FROM salted_text WHERE hash = ?");
  const known = new Map<string, string>();
  function text(its: string): string {
    let said = known.get(its);
    if (said !== undefined) return said;
    const found = find.get(its)?.["text"];
    said = typeof found === "string" ? (JSON.parse(found) as string) : ERASED;
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(its, said);
    return said;
  }
  return {
    resolve(of) {
      const names = Object.keys(of);
      if (names.length === 0) return of;
      return Object.fromEntries(names.map((name) => [name, text(of[name]!)]));
    },
    forget: () => known.clear(),
  };
}

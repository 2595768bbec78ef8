// Stores personal data outside the hash chain. Label texts and key names may identify a person, so
// the chain contains only a salted hash of each. Text and salt are stored in a separate table.
// After both are erased, the hash can still be verified, but its text cannot be guessed.
import type { DatabaseSync } from "node:sqlite";
import type { HeadersOut, KeyRecord } from "tollgate/plugin";
import {
  toJson,
  type TermsTuple,
  toJsonText,
  createSalt,
  hashSalted,
  ERASED,
  LABELS_INDEX,
} from "tollgate/store";
import { chapterOf } from "./key-index.ts";
import type { EncodedTerms } from "./batch-codec.ts";
import { createHashedTerms, type HashedTerms } from "./hashed-terms.ts";

/** The label under which the name of a key is stored. No label can have this name. */
export const KEY_NAME_LABEL = toJsonText(null);

/** Returns the owner ID for the texts of an account. It is never equal to a key ID. */
export const accountOwner = (account: string): string => `account:${account}`;

/** A record with texts. The texts belong to the owner `id`. */
export type NamedRecord = Pick<KeyRecord, "id" | "name" | "labels">;

export interface SaltedTexts {
  /** Returns the terms in the form that the chain covers. */
  hashTerms(terms: EncodedTerms): HashedTerms;
  /**
   * Returns a key or account record in the form that the chain covers. The texts are kept as long
   * as the record.
   */
  hashRecord(record: NamedRecord): string;
  /** Records that the batch beginning at `first` uses these terms. */
  addTerms(terms: readonly HashedTerms[], first: number): void;
  rollback(): void;
  commit(): void;
  /**
   * Drops all known hashes. Called after text was erased, so that later uses store their text
   * again.
   */
  forget(): void;
}

/** Maximum number of texts with a known hash. A text that was dropped gets a new hash. */
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
  /**
   * Identifies the current state. Terms with another token may refer to hashes that were never
   * written to the file.
   */
  let token = {};
  let made = false;
  let added: HashedTerms[] = [];

  function forget(): void {
    known.clear();
    token = {};
  }

  function word(key: string, name: string, text: string): string {
    const [of, value] = [toJsonText(key), toJsonText(text)];
    const id = `${of} ${name} ${value}`;
    const found = known.get(id);
    if (found !== undefined) return found;
    const salt = createSalt();
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
      const hashed = { ...record };
      if (name !== undefined) hashed.name = word(id, KEY_NAME_LABEL, name);
      const words = all(id, labels ?? {});
      if (words.length > 0) hashed.labels = Object.fromEntries(words);
      for (const [, its] of [["", hashed.name] as const, ...words])
        if (its !== undefined) keep.run(its);
      return toJson(hashed);
    },
    addTerms(terms, first) {
      const chapter = chapterOf(first);
      for (const term of terms) {
        if (term.chapter === chapter) continue;
        term.chapter = chapter;
        added.push(term);
        for (const its of term.textHashes) spoken.run(its, chapter);
      }
    },
    rollback() {
      for (const term of added) term.chapter = -1;
      added = [];
      if (made) forget();
      made = false;
    },
    commit() {
      if (added.length > 0) added = [];
      made = false;
    },
    forget,
  };
}

/** Resolves label hashes to texts for readers. */
export interface LabelResolver {
  resolve(of: HeadersOut): HeadersOut;
  /** Drops cached texts, because they may have been erased since. */
  forget(): void;
}

/** Maximum number of cached texts. */
const MAX_REMEMBERED = 20_000;

export function createLabelResolver(db: DatabaseSync): LabelResolver {
  const find = db.prepare("SELECT text FROM salted_text WHERE hash = ?");
  const known = new Map<string, string>();
  function text(its: string): string {
    let value = known.get(its);
    if (value !== undefined) return value;
    const found = find.get(its)?.["text"];
    value = typeof found === "string" ? (JSON.parse(found) as string) : ERASED;
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(its, value);
    return value;
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

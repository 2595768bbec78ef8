// What a label says, and what a key is called, may be a person. The chain covers a hash of it alone, with a salt of its own: text and
// salt stand in a table beside it. Once both are gone, the hash still verifies, and what it stood for cannot be guessed.
import { hash, randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { HeadersOut, KeyRecord } from "tollgate/plugin";
import { toJson } from "tollgate/store";
import { chapterOf } from "./mention.ts";
import type { Listed } from "./terms.ts";
import type { Terms } from "./wire.ts";
import { newSaid, type Said } from "./said.ts";

/** Names, keys and texts stand in the file as JSON, which has words for half a character too. */
export const quoted = (text: string | null): string => JSON.stringify(text);

/** Of a key's own name, which is no label's. */
export const KEY_NAME = quoted(null);

/** Whose words an account's are, beside those of keys. */
export const ownerOf = (account: string): string => `account:${account}`;

const CHARACTERS = 22;
/** Sixteen bytes and a half, of salt and text. */
export const hashed = (salt: string, text: string): string =>
  hash("sha256", `${salt}\n${text}`, "base64url").slice(0, CHARACTERS);

/** Where labels stand in terms. */
const LABELS = 6;

/** What has words: its owner's, by id. */
export type NamedRecord = Pick<KeyRecord, "id" | "name" | "labels">;

export interface Words {
  /** Terms as the chain has them. */
  said(terms: Terms): Said;
  /** The record of a key or an account as the chain has it; its words stay as long as it does. */
  record(record: NamedRecord): string;
  /** A batch that begins at `first` has said these terms. */
  add(terms: readonly Said[], first: number): void;
  undo(): void;
  done(): void;
  /** Text was taken out: what was said before is said anew. */
  forget(): void;
}

/** Texts that have a hash, at a time; one that is not known any more gets another. */
const KNOWN = 20_000;

export function createWords(db: DatabaseSync): Words {
  const make = db.prepare(
    "INSERT INTO word (hash, key, name, salt, text, kept) VALUES (?, ?, ?, ?, ?, 0)",
  );
  const keep = db.prepare("UPDATE word SET kept = 1 WHERE hash = ?");
  const spoken = db.prepare(
    "INSERT INTO spoken (hash, chapter) VALUES (?, ?) " +
      "ON CONFLICT (hash) DO UPDATE SET chapter = excluded.chapter WHERE chapter < excluded.chapter",
  );
  const known = new Map<string, string>();
  /** Whose sayings hold: another one's words may never have come to the file. */
  let token = {};
  let made = false;
  let told: Said[] = [];

  function forget(): void {
    known.clear();
    token = {};
  }

  function word(key: string, name: string, text: string): string {
    const [of, value] = [quoted(key), quoted(text)];
    const id = `${of} ${name} ${value}`;
    const found = known.get(id);
    if (found !== undefined) return found;
    const salt = randomBytes(16).toString("base64url");
    const its = hashed(salt, value);
    make.run(its, of, name, salt, value);
    made = true;
    if (known.size >= KNOWN) known.clear();
    known.set(id, its);
    return its;
  }

  function all(key: string, labels: HeadersOut): [name: string, hash: string][] {
    return Object.entries(labels)
      .filter((entry): entry is [string, string] => entry[1] !== undefined)
      .map(([name, text]) => [name, word(key, quoted(name), text)]);
  }

  return {
    said(terms) {
      if (terms.said?.by === token) return terms.said;
      const listed = JSON.parse(terms.text) as [...Listed];
      const words = all(terms.key, listed[LABELS]);
      if (words.length > 0) listed[LABELS] = Object.fromEntries(words);
      const text = words.length > 0 ? JSON.stringify(listed) : terms.text;
      return (terms.said = newSaid(text, token));
    },
    record(record) {
      const { id, name, labels } = record;
      const said = { ...record };
      if (name !== undefined) said.name = word(id, KEY_NAME, name);
      const words = all(id, labels ?? {});
      if (words.length > 0) said.labels = Object.fromEntries(words);
      for (const [, its] of [["", said.name] as const, ...words])
        if (its !== undefined) keep.run(its);
      return toJson(said);
    },
    add(terms, first) {
      const chapter = chapterOf(first);
      for (const said of terms) {
        if (said.chapter === chapter) continue;
        said.chapter = chapter;
        told.push(said);
        for (const its of said.words) spoken.run(its, chapter);
      }
    },
    undo() {
      for (const said of told) said.chapter = -1;
      told = [];
      if (made) forget();
      made = false;
    },
    done() {
      if (told.length > 0) told = [];
      made = false;
    },
    forget,
  };
}

/** What a reader is shown in place of a hash. */
export interface Spoken {
  labels(of: HeadersOut): HeadersOut;
  /** Text may be gone since it was looked up. */
  forget(): void;
}

export const ERASED = "erased";
/** Remembered at a time. */
const MOST = 20_000;

export function createSpoken(db: DatabaseSync): Spoken {
  const find = db.prepare("SELECT text FROM word WHERE hash = ?");
  const known = new Map<string, string>();
  function text(its: string): string {
    let said = known.get(its);
    if (said !== undefined) return said;
    const found = find.get(its)?.["text"];
    said = typeof found === "string" ? (JSON.parse(found) as string) : ERASED;
    if (known.size >= MOST) known.clear();
    known.set(its, said);
    return said;
  }
  return {
    labels(of) {
      const names = Object.keys(of);
      if (names.length === 0) return of;
      return Object.fromEntries(names.map((name) => [name, text(of[name]!)]));
    },
    forget: () => known.clear(),
  };
}

// The ledger as lines of JSON, compressed, with what proves them: each commit as the chain has it, byte for byte, what its hashes stand
// for, and at the end the last hash and the sums. It is read with nothing but itself.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DatabaseSync } from "node:sqlite";
import { createGunzip, createGzip } from "node:zlib";
import type { ArchiveFacts, ArchiveRequest, LedgerSum, Problem } from "tollgate/plugin";
import { createTotals, isCounted } from "tollgate/store";
import { readBase } from "./standing.ts";
import { sumOf } from "./copy.ts";
import { link, rowsOf, STORED, type Stored } from "./stored.ts";
import { hashed } from "./words.ts";

/** What the first line says. */
const KIND = "tollgate ledger archive";
const VERSION = 1;
/** Words that are known to stand above, at a time. A second one does no harm. */
const MOST = 100_000;

interface Place {
  readonly segment: number;
  readonly seq: number;
  readonly hash: string;
}
interface Begin {
  readonly kind: string;
  readonly version: number;
  readonly after: Place;
  readonly labels: boolean;
}
interface Commit {
  readonly segment: number;
  readonly first: number;
  readonly last: number;
  readonly hash: string;
  /** How long the texts of its terms and rows are: they are the end of the line. */
  readonly cut: readonly [number, number];
  readonly instance: string;
}
interface Word {
  readonly word: string;
  readonly salt: string | null;
  readonly text: string | null;
}
interface End {
  readonly end: Place;
  readonly rows: number;
  readonly from: number | null;
  readonly to: number | null;
  readonly total: Omit<LedgerSum, "costNano"> & { readonly costNano: string };
  /** Of all lines before this one. */
  readonly sum: string;
}

/** Grows with each commit, on both ways. */
class Tally {
  readonly #sums = createTotals([]);
  rows = 0;
  from: number | null = null;
  to: number | null = null;

  add(stored: Stored): void {
    for (const row of rowsOf(stored)) {
      this.rows++;
      if (this.from === null || row.at < this.from) this.from = row.at;
      if (this.to === null || row.at > this.to) this.to = row.at;
      if (isCounted(row, undefined)) this.#sums.add(row);
    }
  }
  get total(): LedgerSum {
    return sumOf(this.#sums.totals()[0]);
  }
  end(end: Place, sum: string): End {
    const { rows, from, to, total } = this;
    return { end, rows, from, to, total: { ...total, costNano: String(total.costNano) }, sum };
  }
  facts(after: string, head: string): ArchiveFacts {
    const { rows, from, to, total } = this;
    return { rows, from: from ?? undefined, to: to ?? undefined, after, head, total };
  }
}

/** All commits of which each entry is from before `before`, from the oldest that is there on. */
export async function archive(
  ledger: string,
  file: string,
  { before, labels }: ArchiveRequest,
): Promise<ArchiveFacts> {
  const db = new DatabaseSync(ledger, { readOnly: true, timeout: 1_000 });
  db.exec("BEGIN");
  const base = readBase(db);
  const after = { segment: base?.segment ?? 0, seq: base?.last ?? 0, hash: base?.hash ?? "" };
  const tally = new Tally();
  const wordsIn = newWords(db);
  let end: Place = after;
  function* lines(): Generator<string, void> {
    const digest = createHash("sha256");
    const said = (line: string): string => {
      digest.update(line);
      return line;
    };
    yield said(`${JSON.stringify({ kind: KIND, version: VERSION, after, labels })}\n`);
    for (const { segment, hash, last, stored } of commits(db, after.segment, before)) {
      if (labels) for (const word of wordsIn(stored)) yield said(word);
      tally.add(stored);
      end = { segment, seq: last, hash };
      yield said(commitLine(end, stored));
    }
    yield `${JSON.stringify(tally.end(end, digest.digest("hex")))}\n`;
  }
  try {
    await pipeline(
      Readable.from(lines(), { highWaterMark: 64 }),
      createGzip({ level: 6 }),
      createWriteStream(file, { mode: 0o600 }),
    );
  } finally {
    db.close();
  }
  return tally.facts(after.hash, end.hash);
}

function* commits(db: DatabaseSync, after: number, before: number) {
  const batch = db.prepare(`SELECT ${STORED} FROM batch WHERE first = ?`);
  const segments = db.prepare(
    "SELECT id, first, last, hash, till FROM segment WHERE id > ? ORDER BY id",
  );
  for (const row of segments.iterate(after)) {
    if (Number(row["till"]) >= before) return;
    const stored = batch.get(Number(row["first"])) as unknown as Stored;
    yield {
      segment: Number(row["id"]),
      last: Number(row["last"]),
      hash: String(row["hash"]),
      stored,
    };
  }
}

function commitLine(
  { segment, seq, hash }: Place,
  { first, instance, terms, rows }: Stored,
): string {
  const cut: Commit["cut"] = [terms.length, rows.length];
  const head = JSON.stringify({ segment, first, last: seq, hash, cut, instance } satisfies Commit);
  return `${head.slice(0, -1)},"terms":${terms},"rows":${rows}}\n`;
}

const LABELS = 6;
function* hashesIn(terms: string): Generator<string, void> {
  for (const listed of JSON.parse(terms) as { [LABELS]?: object }[])
    yield* Object.values(listed[LABELS] ?? {}) as string[];
}

/** The lines that say what the hashes of a commit stand for, each once. */
function newWords(db: DatabaseSync): (of: Stored) => string[] {
  const find = db.prepare("SELECT salt, text FROM word WHERE hash = ?");
  const said = new Set<string>();
  return ({ terms }) => {
    const lines: string[] = [];
    for (const word of hashesIn(terms)) {
      if (said.has(word)) continue;
      if (said.size >= MOST) said.clear();
      said.add(word);
      const found = find.get(word);
      const [salt, text] = [found?.["salt"] ?? null, found?.["text"] ?? null];
      lines.push(`${JSON.stringify({ word, salt, text })}\n`);
    }
    return lines;
  };
}

/** Line by line; what cannot be read ends it. */
export async function readArchive(
  file: string,
): Promise<ArchiveFacts & { problems: readonly Problem[] }> {
  const reading = new Reading();
  try {
    for await (const line of linesIn(file)) reading.line(line);
  } catch (error) {
    reading.wrong(`It cannot be read to its end: ${(error as Error).message}`);
  }
  return reading.end();
}

async function* linesIn(file: string): AsyncGenerator<string, void> {
  const packed = createReadStream(file);
  const plain = createGunzip();
  packed.on("error", (error) => plain.destroy(error));
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const chunk of packed.pipe(plain)) {
      const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split("\n");
      rest = lines.pop()!;
      yield* lines;
    }
  } finally {
    // Where what is packed ends before the file does, nothing reads on to the file's end, which would close it. It is waited for: a thread that ends
    // before it is closed leaves it open.
    packed.destroy();
    if (!packed.closed) await once(packed, "close");
  }
  if (rest !== "") yield rest;
}

class Reading {
  readonly #problems: Problem[] = [];
  readonly #digest = createHash("sha256");
  readonly #tally = new Tally();
  readonly #words = new Set<string>();
  #begin: Begin | undefined;
  #place: Place = { segment: 0, seq: 0, hash: "" };
  #ended = false;
  #n = 0;

  wrong(message: string): void {
    if (this.#problems.length < 100) this.#problems.push({ path: `/line/${this.#n}`, message });
  }

  line(text: string): void {
    this.#n++;
    let said: object;
    try {
      said = JSON.parse(text) as object;
    } catch {
      return this.wrong("It is no JSON.");
    }
    if (this.#ended) return this.wrong("It stands behind the end.");
    if ("end" in said) return this.#end(said as End);
    this.#digest.update(`${text}\n`);
    if ("kind" in said) this.#start(said as Begin);
    else if ("word" in said) this.#word(said as Word);
    else this.#commit(said as Commit, text);
  }

  end(): ArchiveFacts & { problems: readonly Problem[] } {
    if (!this.#begin) this.wrong("It does not begin as an archive does.");
    if (!this.#ended) this.wrong("Its end is missing.");
    const after = this.#begin?.after.hash ?? "";
    return { ...this.#tally.facts(after, this.#place.hash), problems: this.#problems };
  }

  #start(begin: Begin): void {
    if (this.#n !== 1 || begin.kind !== KIND || begin.version !== VERSION)
      return this.wrong(`It is no archive of this version (${VERSION}).`);
    this.#begin = begin;
    this.#place = begin.after;
  }

  #word({ word, salt, text }: Word): void {
    if (salt !== null && text !== null && hashed(salt, text) !== word)
      this.wrong("A label's text is not what rows said.");
    this.#words.add(word);
  }

  #commit({ segment, first, last, hash, cut, instance }: Commit, line: string): void {
    const [terms, rows] = textsOf(line, cut);
    const before = this.#place;
    if (segment !== before.segment + 1 || first !== before.seq + 1)
      this.wrong(`Commit ${segment} does not follow on entry ${before.seq}.`);
    if (link(before.hash, { instance, terms, rows }) !== hash)
      this.wrong(`The entries ${first} to ${last} were changed after they were written.`);
    else {
      this.#tally.add({ first, instance, terms, rows });
      if ((JSON.parse(rows) as unknown[]).length !== last - first + 1)
        this.wrong(`Of the entries ${first} to ${last} not all are there.`);
      if (this.#begin?.labels && [...hashesIn(terms)].some((its) => !this.#words.has(its)))
        this.wrong(`What the entries ${first} to ${last} say in labels is missing.`);
    }
    this.#place = { segment, seq: last, hash };
  }

  #end(said: End): void {
    this.#ended = true;
    const { sum, ...rest } = said;
    const { sum: own, ...mine } = this.#tally.end(this.#place, this.#digest.digest("hex"));
    if (own !== sum || JSON.stringify(rest) !== JSON.stringify(mine))
      this.wrong("What stands above is not what the end says of it.");
  }
}

/** Where its terms and rows are in a line that ends with them. */
function textsOf(line: string, [terms, rows]: Commit["cut"]): [string, string] {
  const end = line.length - 1;
  const begin = end - rows - ',"rows":'.length;
  return [line.slice(begin - terms, begin), line.slice(end - rows, end)];
}

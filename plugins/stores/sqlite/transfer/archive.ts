// Writes and reads archives: the ledger as compressed JSON lines with its proof. An archive
// contains each commit byte for byte as the chain covers it, the texts behind the hashes, and at
// the end the last hash and the totals. No other data is needed to verify it.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DatabaseSync } from "node:sqlite";
import { createGunzip, createGzip } from "node:zlib";
import type { ArchiveInfo, ArchiveRequest, LedgerSum, Problem } from "tollgate/plugin";
import { createTotals, isSettledRow } from "tollgate/store";
import { readCheckpoint } from "../data/checkpoint.ts";
import { toLedgerSum } from "./backup.ts";
import { chainHash, decodeRows, BATCH_COLUMNS, type StoredBatch } from "../data/stored-batch.ts";
import { hashSalted } from "../data/salted-text.ts";

/** Format name in the first line. */
const ARCHIVE_FORMAT = "tollgate ledger archive";
const ARCHIVE_VERSION = 1;
/** Maximum number of texts remembered as already written. Writing a text twice is harmless. */
const MAX_REMEMBERED_TEXTS = 100_000;

interface ChainPosition {
  readonly segment: number;
  readonly seq: number;
  readonly hash: string;
}
interface HeaderLine {
  readonly kind: string;
  readonly version: number;
  readonly after: ChainPosition;
  readonly labels: boolean;
}
interface CommitLine {
  readonly segment: number;
  readonly first: number;
  readonly last: number;
  readonly hash: string;
  /** Lengths of the terms text and the rows text. Both are at the end of the line. */
  readonly cut: readonly [number, number];
  readonly instance: string;
}
interface TextLine {
  readonly hash: string;
  readonly salt: string | null;
  readonly text: string | null;
}
interface FooterLine {
  readonly end: ChainPosition;
  readonly rows: number;
  readonly from: number | null;
  readonly to: number | null;
  readonly total: Omit<LedgerSum, "costNano"> & { readonly costNano: string };
  /** Hash of all lines before this one. */
  readonly sha256: string;
}

/** Totals that grow with each commit. Used for writing and for reading. */
class ArchiveTotals {
  readonly #sums = createTotals([]);
  rows = 0;
  from: number | null = null;
  to: number | null = null;

  add(stored: StoredBatch): void {
    for (const row of decodeRows(stored)) {
      this.rows++;
      if (this.from === null || row.at < this.from) this.from = row.at;
      if (this.to === null || row.at > this.to) this.to = row.at;
      if (isSettledRow(row, undefined)) this.#sums.add(row);
    }
  }
  get total(): LedgerSum {
    return toLedgerSum(this.#sums.totals()[0]);
  }
  footer(end: ChainPosition, sha256: string): FooterLine {
    const { rows, from, to, total } = this;
    return { end, rows, from, to, total: { ...total, costNano: String(total.costNano) }, sha256 };
  }
  facts(after: string, head: string): ArchiveInfo {
    const { rows, from, to, total } = this;
    return {
      rows,
      from: from ?? undefined,
      to: to ?? undefined,
      previousHash: after,
      lastHash: head,
      total,
    };
  }
}

/**
 * Archives all commits whose entries are older than `before`, starting with the oldest existing
 * commit. It stops at the first commit with a newer entry.
 */
export async function writeArchive(
  ledger: string,
  file: string,
  { before, labels }: ArchiveRequest,
): Promise<ArchiveInfo> {
  const db = new DatabaseSync(ledger, { readOnly: true, timeout: 1_000 });
  db.exec("BEGIN");
  const base = readCheckpoint(db);
  const after = { segment: base?.segment ?? 0, seq: base?.last ?? 0, hash: base?.hash ?? "" };
  const tally = new ArchiveTotals();
  const textLinesOf = createTextLines(db);
  let end: ChainPosition = after;
  function* lines(): Generator<string, void> {
    const digest = createHash("sha256");
    const said = (line: string): string => {
      digest.update(line);
      return line;
    };
    yield said(
      `${JSON.stringify({ kind: ARCHIVE_FORMAT, version: ARCHIVE_VERSION, after, labels })}\n`,
    );
    for (const { segment, hash, last, stored } of commitsBefore(db, after.segment, before)) {
      if (labels) for (const line of textLinesOf(stored)) yield said(line);
      tally.add(stored);
      end = { segment, seq: last, hash };
      yield said(formatCommit(end, stored));
    }
    yield `${JSON.stringify(tally.footer(end, digest.digest("hex")))}\n`;
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

function* commitsBefore(db: DatabaseSync, after: number, before: number) {
  const batch = db.prepare(`SELECT ${BATCH_COLUMNS} FROM batch WHERE first = ?`);
  const segments = db.prepare(
    "SELECT id, first, last, hash, max_at FROM segment WHERE id > ? ORDER BY id",
  );
  for (const row of segments.iterate(after)) {
    if (Number(row["max_at"]) >= before) return;
    const stored = batch.get(Number(row["first"])) as unknown as StoredBatch;
    yield {
      segment: Number(row["id"]),
      last: Number(row["last"]),
      hash: String(row["hash"]),
      stored,
    };
  }
}

function formatCommit(
  { segment, seq, hash }: ChainPosition,
  { first, instance, terms, rows }: StoredBatch,
): string {
  const cut: CommitLine["cut"] = [terms.length, rows.length];
  const head = JSON.stringify({
    segment,
    first,
    last: seq,
    hash,
    cut,
    instance,
  } satisfies CommitLine);
  return `${head.slice(0, -1)},"terms":${terms},"rows":${rows}}\n`;
}

const LABELS_INDEX = 6;
function* textHashesIn(terms: string): Generator<string, void> {
  for (const listed of JSON.parse(terms) as { [LABELS_INDEX]?: object }[])
    yield* Object.values(listed[LABELS_INDEX] ?? {}) as string[];
}

/**
 * Creates a function that returns the lines with the texts behind the hashes of a commit, each
 * once.
 */
function createTextLines(db: DatabaseSync): (of: StoredBatch) => string[] {
  const find = db.prepare("SELECT salt, text FROM salted_text WHERE hash = ?");
  const said = new Set<string>();
  return ({ terms }) => {
    const lines: string[] = [];
    for (const hash of textHashesIn(terms)) {
      if (said.has(hash)) continue;
      if (said.size >= MAX_REMEMBERED_TEXTS) said.clear();
      said.add(hash);
      const found = find.get(hash);
      const [salt, text] = [found?.["salt"] ?? null, found?.["text"] ?? null];
      lines.push(`${JSON.stringify({ hash, salt, text })}\n`);
    }
    return lines;
  };
}

/** Reads an archive line by line. Unreadable data ends the read and is reported as a problem. */
export async function readArchive(
  file: string,
): Promise<ArchiveInfo & { problems: readonly Problem[] }> {
  const reading = new ArchiveReader();
  try {
    for await (const line of readLines(file)) reading.readLine(line);
  } catch (error) {
    reading.addProblem(`Cannot read the archive to its end: ${(error as Error).message}`);
  }
  return reading.finish();
}

async function* readLines(file: string): AsyncGenerator<string, void> {
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
    // If the compressed data ends before the file, nothing reads on to the end of the file, so it
    // is not closed. Destroy it and wait for the close: a thread that ends before leaves the file
    // open.
    packed.destroy();
    if (!packed.closed) await once(packed, "close");
  }
  if (rest !== "") yield rest;
}

class ArchiveReader {
  readonly #problems: Problem[] = [];
  readonly #digest = createHash("sha256");
  readonly #totals = new ArchiveTotals();
  readonly #texts = new Set<string>();
  #header: HeaderLine | undefined;
  #position: ChainPosition = { segment: 0, seq: 0, hash: "" };
  #hasFooter = false;
  #lineNumber = 0;

  addProblem(message: string): void {
    if (this.#problems.length < 100)
      this.#problems.push({ path: `/line/${this.#lineNumber}`, message });
  }

  readLine(text: string): void {
    this.#lineNumber++;
    let said: object;
    try {
      said = JSON.parse(text) as object;
    } catch {
      return this.addProblem("The line is not valid JSON.");
    }
    if (this.#hasFooter) return this.addProblem("The line follows the footer.");
    if ("end" in said) return this.#readFooter(said as FooterLine);
    this.#digest.update(`${text}\n`);
    if ("kind" in said) this.#readHeader(said as HeaderLine);
    else if ("salt" in said) this.#readText(said as TextLine);
    else this.#readCommit(said as CommitLine, text);
  }

  finish(): ArchiveInfo & { problems: readonly Problem[] } {
    if (!this.#header) this.addProblem("The archive header is missing.");
    if (!this.#hasFooter) this.addProblem("The archive footer is missing.");
    const after = this.#header?.after.hash ?? "";
    return { ...this.#totals.facts(after, this.#position.hash), problems: this.#problems };
  }

  #readHeader(begin: HeaderLine): void {
    if (
      this.#lineNumber !== 1 ||
      begin.kind !== ARCHIVE_FORMAT ||
      begin.version !== ARCHIVE_VERSION
    )
      return this.addProblem(`The archive is not of this version (${ARCHIVE_VERSION}).`);
    this.#header = begin;
    this.#position = begin.after;
  }

  #readText({ hash, salt, text }: TextLine): void {
    if (salt !== null && text !== null && hashSalted(salt, text) !== hash)
      this.addProblem("The label text differs from the rows.");
    this.#texts.add(hash);
  }

  #readCommit({ segment, first, last, hash, cut, instance }: CommitLine, line: string): void {
    const [terms, rows] = splitTexts(line, cut);
    const before = this.#position;
    if (segment !== before.segment + 1 || first !== before.seq + 1)
      this.addProblem(`Commit ${segment} does not follow entry ${before.seq}.`);
    if (chainHash(before.hash, { instance, terms, rows }) !== hash)
      this.addProblem(`The entries ${first} to ${last} were changed after they were written.`);
    else {
      this.#totals.add({ first, instance, terms, rows });
      if ((JSON.parse(rows) as unknown[]).length !== last - first + 1)
        this.addProblem(`Some of the entries ${first} to ${last} are missing.`);
      if (this.#header?.labels && [...textHashesIn(terms)].some((its) => !this.#texts.has(its)))
        this.addProblem(`The label texts of the entries ${first} to ${last} are missing.`);
    }
    this.#position = { segment, seq: last, hash };
  }

  #readFooter(said: FooterLine): void {
    this.#hasFooter = true;
    const { sha256, ...rest } = said;
    const { sha256: own, ...mine } = this.#totals.footer(
      this.#position,
      this.#digest.digest("hex"),
    );
    if (own !== sha256 || JSON.stringify(rest) !== JSON.stringify(mine))
      this.addProblem("The content of the archive does not match its footer.");
  }
}

/** Extracts the terms and the rows from the end of a line. */
function splitTexts(line: string, [terms, rows]: CommitLine["cut"]): [string, string] {
  const end = line.length - 1;
  const begin = end - rows - ',"rows":'.length;
  return [line.slice(begin - terms, begin), line.slice(end - rows, end)];
}

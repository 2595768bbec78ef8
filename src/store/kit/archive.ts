// Archives: ledger rows as compressed JSON lines with their proof. There is one format for all
// stores, so each store can read the archives of the others. An archive contains each commit in the
// form that the ledger's chain covers, the texts behind the hashes, and at its end the last hash
// and the totals. No other data is needed to verify it.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { ArchiveInfo, LedgerSum, LedgerTotal, Problem } from "../../plugin/index.ts";
import type { LedgerRow } from "../ledger-row.ts";
import { createTotals, isSettledRow } from "../totals.ts";
import {
  chainLink,
  hashBatch,
  hashedNoteChainLine,
  rowChainLine,
  rowColumns,
  termsColumns,
} from "./column-codec.ts";
import { commitHash, decodeCommit, textHashesIn, type CommitText } from "./commit-text.ts";
import { ERASED, hashSalted } from "./salted-text.ts";

/** Format name in the first line. */
const ARCHIVE_FORMAT = "tollgate ledger archive";
const ARCHIVE_VERSION = 2;
/** Archives of version 1 contain the ID of a meter with each amount. */
const OLDEST_ARCHIVE_VERSION = 1;
/** Maximum number of written texts that are kept in memory. Writing a text twice is harmless. */
const MAX_REMEMBERED_TEXTS = 100_000;
const MAX_PROBLEMS = 100;

/** A position in the chain: the last entry and the hash after it. */
export interface ChainPosition {
  readonly seq: number;
  readonly hash: string;
}

/** The point from which the chain of a node continues. */
export type NodeStart = readonly [node: number, n: number, head: string];

/** Parts of a batch that a node's chain covers in addition to the rows. */
export interface NodeBatch {
  readonly node: number;
  readonly n: number;
  /** For each row, the time of its call's reserve. */
  readonly startedAt: readonly number[];
  /** Kind, ID, and the hash of the text of each note. */
  readonly notes: readonly (readonly [kind: string, id: string, hash: string])[];
}

/** A commit as an archive contains it. Labels are hashes of their texts. */
export interface ArchivedCommit extends CommitText {
  readonly first: number;
  readonly last: number;
  /** The hash of the ledger's chain after this commit. */
  readonly hash: string;
  /** Place of the commit in its node's chain. Set if the ledger has several nodes. */
  readonly batch?: NodeBatch;
}

/** A text behind a hash. Both are null if the text was erased. */
export interface SaltedText {
  readonly salt: string | null;
  readonly text: string | null;
}

/** The rows that an archive is made of. */
export interface ArchiveSource {
  /** The position before the first commit. */
  readonly after: ChainPosition;
  readonly nodes?: readonly NodeStart[];
  readonly commits: AsyncIterable<ArchivedCommit> | Iterable<ArchivedCommit>;
  /** Finds the text behind a hash of the commit that was read last. If unset, texts are omitted. */
  readonly findText?: ((hash: string) => SaltedText) | undefined;
}

interface HeaderLine {
  readonly kind: string;
  readonly version: number;
  readonly after: ChainPosition;
  readonly nodes: readonly NodeStart[];
  readonly labels: boolean;
}
interface CommitLine extends Omit<ArchivedCommit, "terms" | "rows"> {
  /** Lengths of the terms text and the rows text, which are at the end of the line. */
  readonly cut: readonly [number, number];
}
interface TextLine extends SaltedText {
  readonly hash: string;
}
interface FooterLine {
  readonly end: ChainPosition;
  readonly rows: number;
  readonly from: number | null;
  readonly to: number | null;
  readonly total: Omit<LedgerSum, "costNano"> & { readonly costNano: string };
  /** Hash of all lines before this line. */
  readonly sha256: string;
}

/** Converts a total. Missing values become zero. */
export const toLedgerSum = (total: LedgerTotal | undefined): LedgerSum => ({
  calls: total?.calls ?? 0,
  usage: total?.usage ?? {},
  costNano: total?.costNano ?? 0n,
  unpriced: total?.unpriced ?? 0,
});

/** Totals that grow with each row. Used for writing and for reading. */
class ArchiveTotals {
  readonly #sums = createTotals([]);
  #rows = 0;
  #from: number | null = null;
  #to: number | null = null;

  add(row: LedgerRow): void {
    this.#rows++;
    if (this.#from === null || row.at < this.#from) this.#from = row.at;
    if (this.#to === null || row.at > this.#to) this.#to = row.at;
    if (isSettledRow(row, undefined)) this.#sums.add(row);
  }
  footer(end: ChainPosition, sha256: string): FooterLine {
    const total = toLedgerSum(this.#sums.totals()[0]);
    const [rows, from, to] = [this.#rows, this.#from, this.#to];
    return { end, rows, from, to, total: { ...total, costNano: String(total.costNano) }, sha256 };
  }
  facts(previousHash: string, lastHash: string): ArchiveInfo {
    const total = toLedgerSum(this.#sums.totals()[0]);
    const [from, to] = [this.#from ?? undefined, this.#to ?? undefined];
    return { rows: this.#rows, from, to, previousHash, lastHash, total };
  }
}

/** Writes an archive of complete commits, and returns its totals and hashes. */
export async function writeArchive(file: string, source: ArchiveSource): Promise<ArchiveInfo> {
  const { after, nodes = [], findText } = source;
  const totals = new ArchiveTotals();
  const newTexts = createTextLines(findText);
  let end = after;
  async function* lines(): AsyncGenerator<string, void> {
    const digest = createHash("sha256");
    const digested = (line: string): string => {
      digest.update(line);
      return line;
    };
    const [kind, version, labels] = [ARCHIVE_FORMAT, ARCHIVE_VERSION, findText !== undefined];
    yield digested(
      `${JSON.stringify({ kind, version, after, nodes, labels } satisfies HeaderLine)}\n`,
    );
    for await (const commit of source.commits) {
      for (const line of newTexts(commit)) yield digested(line);
      for (const row of decodeCommit(commit)) totals.add(row);
      end = { seq: commit.last, hash: commit.hash };
      yield digested(formatCommit(commit));
    }
    yield `${JSON.stringify(totals.footer(end, digest.digest("hex")))}\n`;
  }
  await pipeline(
    Readable.from(lines(), { highWaterMark: 64 }),
    createGzip({ level: 6 }),
    createWriteStream(file, { mode: 0o600 }),
  );
  return totals.facts(after.hash, end.hash);
}

function formatCommit({ terms, rows, first, last, hash, instance, batch }: ArchivedCommit): string {
  const cut: CommitLine["cut"] = [terms.length, rows.length];
  const head = { first, last, hash, cut, instance, ...(batch && { batch }) } satisfies CommitLine;
  return `${JSON.stringify(head).slice(0, -1)},"terms":${terms},"rows":${rows}}\n`;
}

/** Creates a function that returns the lines with the texts of a commit, each once. */
function createTextLines(findText: ArchiveSource["findText"]): (of: CommitText) => string[] {
  const writtenHashes = new Set<string>();
  return ({ terms }) => {
    const lines: string[] = [];
    for (const hash of findText ? textHashesIn(terms) : []) {
      if (writtenHashes.has(hash)) continue;
      if (writtenHashes.size >= MAX_REMEMBERED_TEXTS) writtenHashes.clear();
      writtenHashes.add(hash);
      const { salt, text } = findText!(hash);
      lines.push(`${JSON.stringify({ hash, salt, text } satisfies TextLine)}\n`);
    }
    return lines;
  };
}

/** Content of an archive that was read. */
export type ArchiveContent = ArchiveInfo & { readonly problems: readonly Problem[] };

/** Receives the rows of an archive, commit by commit. `first` is the number of the first row. */
export type ReceiveRows = (rows: readonly LedgerRow[], first: number) => void;

/**
 * Reads and verifies an archive line by line. Unreadable data ends the read and is reported as a
 * problem.
 * @param onRows Called with the rows of each commit that is unchanged.
 */
export async function readArchive(file: string, onRows?: ReceiveRows): Promise<ArchiveContent> {
  const reading = new ArchiveReader(onRows);
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
    // If the compressed data ends before the file does, the rest of the file is not read, so the
    // file is not closed. The stream is destroyed and its close awaited, because the file would
    // stay open if the thread ended before.
    packed.destroy();
    if (!packed.closed) await once(packed, "close");
  }
  if (rest !== "") yield rest;
}

class ArchiveReader {
  readonly #problems: Problem[] = [];
  readonly #digest = createHash("sha256");
  readonly #totals = new ArchiveTotals();
  readonly #texts = new Map<string, string | null>();
  readonly #nodes = new Map<number, { n: number; head: Buffer }>();
  readonly #onRows: ReceiveRows | undefined;
  #header: HeaderLine | undefined;
  #position: ChainPosition = { seq: 0, hash: "" };
  #hasFooter = false;
  #lineNumber = 0;

  constructor(onRows: ReceiveRows | undefined) {
    this.#onRows = onRows;
  }

  addProblem(message: string): void {
    if (this.#problems.length < MAX_PROBLEMS)
      this.#problems.push({ path: `/line/${this.#lineNumber}`, message });
  }

  readLine(text: string): void {
    this.#lineNumber++;
    try {
      const parsed = JSON.parse(text) as object;
      if (this.#hasFooter) return this.addProblem("The line follows the footer.");
      if ("end" in parsed) return this.#readFooter(parsed as FooterLine);
      this.#digest.update(`${text}\n`);
      if ("kind" in parsed) this.#readHeader(parsed as HeaderLine);
      else if ("salt" in parsed) this.#readText(parsed as TextLine);
      else this.#readCommit(parsed as CommitLine, text);
    } catch {
      this.addProblem("The line is not valid in an archive.");
    }
  }

  finish(): ArchiveContent {
    if (!this.#header) this.addProblem("The archive header is missing.");
    if (!this.#hasFooter) this.addProblem("The archive footer is missing.");
    const after = this.#header?.after.hash ?? "";
    return { ...this.#totals.facts(after, this.#position.hash), problems: this.#problems };
  }

  #readHeader(header: HeaderLine): void {
    const { kind, version, after, nodes } = header;
    const isReadable = version >= OLDEST_ARCHIVE_VERSION && version <= ARCHIVE_VERSION;
    if (this.#lineNumber !== 1 || kind !== ARCHIVE_FORMAT || !isReadable)
      return this.addProblem(
        `The archive is not of a version that can be read (${OLDEST_ARCHIVE_VERSION} to ${ARCHIVE_VERSION}).`,
      );
    this.#position = { seq: after.seq, hash: after.hash };
    for (const [node, n, head] of nodes)
      this.#nodes.set(node, { n, head: Buffer.from(head, "hex") });
    this.#header = header;
  }

  #readText({ hash, salt, text }: TextLine): void {
    if (salt !== null && text !== null && hashSalted(salt, text) !== hash)
      this.addProblem("The label text differs from the rows.");
    this.#texts.set(hash, text);
  }

  #readCommit({ cut, ...line }: CommitLine, text: string): void {
    const [terms, rows] = splitTexts(text, cut);
    const commit: ArchivedCommit = { ...line, terms, rows };
    const { first, last, hash } = commit;
    const before = this.#position;
    if (first !== before.seq + 1) this.addProblem(`Entry ${first} does not follow ${before.seq}.`);
    const decoded = decodeCommit(commit);
    this.#position = { seq: last, hash };
    if (this.#link(before.hash, commit, decoded) !== hash)
      return this.addProblem(
        `The entries ${first} to ${last} were changed after they were written.`,
      );
    for (const row of decoded) this.#totals.add(row);
    if ((JSON.parse(rows) as unknown[]).length !== last - first + 1)
      this.addProblem(`Some of the entries ${first} to ${last} are missing.`);
    if (this.#header?.labels && [...textHashesIn(terms)].some((its) => !this.#texts.has(its)))
      this.addProblem(`The label texts of the entries ${first} to ${last} are missing.`);
    this.#onRows?.(
      decoded.map((row) => ({ ...row, labels: this.#textsOf(row.labels) })),
      first,
    );
  }

  /** Returns labels with their texts. An archive without texts has only the hashes. */
  #textsOf(hashes: LedgerRow["labels"]): LedgerRow["labels"] {
    if (!this.#header?.labels) return hashes;
    const text = (its: string) => this.#texts.get(its) ?? JSON.stringify(ERASED);
    return Object.fromEntries(
      Object.entries(hashes).map(([name, its]) => [name, JSON.parse(text(its!)) as string]),
    );
  }

  /** Returns the chain hash after a commit. */
  #link(before: string, commit: ArchivedCommit, rows: readonly LedgerRow[]): string {
    const { batch } = commit;
    if (!batch) return commitHash(before, commit);
    const { node, n, startedAt, notes } = batch;
    const last = this.#nodes.get(node) ?? { n: 0, head: Buffer.alloc(0) };
    if (n !== last.n + 1)
      this.addProblem(`Batch ${n} of node ${node} does not follow batch ${last.n}.`);
    const head = hashBatch(last.head, [
      ...rows.map((row, i) =>
        rowChainLine([...rowColumns(row, startedAt[i]!), ...termsColumns(row)]),
      ),
      ...notes.map((note) => hashedNoteChainLine(...note)),
    ]);
    this.#nodes.set(node, { n, head });
    return chainLink(Buffer.from(before, "hex"), node, n, head).toString("hex");
  }

  #readFooter({ sha256, ...stated }: FooterLine): void {
    this.#hasFooter = true;
    const { sha256: own, ...mine } = this.#totals.footer(
      this.#position,
      this.#digest.digest("hex"),
    );
    if (own !== sha256 || JSON.stringify(stated) !== JSON.stringify(mine))
      this.addProblem("The content of the archive does not match its footer.");
  }
}

/** Extracts the terms and the rows from the end of a line. */
function splitTexts(line: string, [terms, rows]: CommitLine["cut"]): [string, string] {
  const end = line.length - 1;
  const begin = end - rows - ',"rows":'.length;
  return [line.slice(begin - terms, begin), line.slice(end - rows, end)];
}

// Verifies an archive without any other data. Each batch must follow its node's previous batch, and
// all batches must form one chain.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import type { ArchiveInfo, Problem } from "tollgate/plugin";
import {
  ARCHIVE_FORMAT,
  ARCHIVE_VERSION,
  type BatchLine,
  type HeaderLine,
  type FooterLine,
} from "./archive.ts";
import { chainLink } from "../read/global-chain.ts";
import {
  hashBatch,
  hashedNoteChainLine,
  rowChainLine,
  type ColumnValues,
} from "../rows/row-codec.ts";
import { ALL_COLUMNS } from "../rows/columns.ts";
import { ArchiveTotals } from "./archive-totals.ts";

type ArchiveResult = ArchiveInfo & { readonly problems: readonly Problem[] };

/** Reads an archive line by line. Unreadable data ends the read and is reported as a problem. */
export async function readArchive(file: string): Promise<ArchiveResult> {
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
  readonly #nodes = new Map<number, { n: number; head: Buffer }>();
  #header: HeaderLine | undefined;
  #head: Buffer = Buffer.alloc(0);
  #hasFooter = false;
  #lineNumber = 0;

  addProblem(message: string): void {
    if (this.#problems.length < 100)
      this.#problems.push({ path: `/line/${this.#lineNumber}`, message });
  }

  readLine(text: string): void {
    this.#lineNumber++;
    try {
      const said = JSON.parse(text) as object;
      if (this.#hasFooter) return this.addProblem("The line follows the footer.");
      if ("end" in said) return this.#readFooter(said as FooterLine);
      this.#digest.update(`${text}\n`);
      if ("kind" in said) this.#readHeader(said as HeaderLine);
      else this.#readBatch(said as BatchLine);
    } catch {
      this.addProblem("The line is not valid in an archive.");
    }
  }

  finish(): ArchiveResult {
    if (!this.#header) this.addProblem("The archive header is missing.");
    if (!this.#hasFooter) this.addProblem("The archive footer is missing.");
    const facts = this.#totals.facts(this.#header?.after ?? "", this.#head.toString("hex"));
    return { ...facts, problems: this.#problems };
  }

  #readHeader(begin: HeaderLine): void {
    if (
      this.#lineNumber !== 1 ||
      begin.kind !== ARCHIVE_FORMAT ||
      begin.version !== ARCHIVE_VERSION ||
      begin.store !== "postgres"
    )
      return this.addProblem(
        `The archive is not of this store and version (postgres, ${ARCHIVE_VERSION}).`,
      );
    this.#header = begin;
    this.#head = Buffer.from(begin.after, "hex");
    for (const [node, n, head] of begin.nodes)
      this.#nodes.set(node, { n, head: Buffer.from(head, "hex") });
  }

  #readBatch({ node, n, rows, notes }: BatchLine): void {
    const before = this.#nodes.get(node) ?? { n: 0, head: Buffer.alloc(0) };
    if (n !== before.n + 1)
      this.addProblem(`Batch ${n} of node ${node} does not follow batch ${before.n}.`);
    if (rows.some((row) => row.length !== ALL_COLUMNS.length))
      return this.addProblem("The columns differ from those of this version.");
    const lines = [
      ...rows.map((row) => rowChainLine(row as ColumnValues)),
      ...notes.map((note) => hashedNoteChainLine(...note)),
    ];
    const head = hashBatch(before.head, lines);
    this.#nodes.set(node, { n, head });
    this.#head = chainLink(this.#head, {
      node: String(node),
      n: String(n),
      hash: `\\x${head.toString("hex")}`,
    });
    for (const row of rows) this.#totals.add(row);
  }

  #readFooter({ end, sha256, ...rest }: FooterLine): void {
    this.#hasFooter = true;
    if (end !== this.#head.toString("hex"))
      this.addProblem("Rows were changed after they were written, or are missing.");
    const own = this.#digest.digest("hex");
    if (own !== sha256 || JSON.stringify(rest) !== JSON.stringify(this.#totals.footer()))
      this.addProblem("The content of the archive does not match its footer.");
  }
}

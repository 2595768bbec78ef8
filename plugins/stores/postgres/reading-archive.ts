// An archive is read with nothing but itself: each batch has to be the next one of its node, and all of them have to be one chain.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import type { ArchiveFacts, Problem } from "tollgate/plugin";
import { KIND, VERSION, type BatchLine, type BeginLine, type EndLine } from "./archive.ts";
import { linkOf } from "./links.ts";
import { hashOf, provedNoteLine, wholeLine, type Columns } from "./rows.ts";
import { COLUMNS } from "./columns.ts";
import { Tally } from "./tally.ts";

type Read = ArchiveFacts & { readonly problems: readonly Problem[] };

/** Line by line; what cannot be read ends it. */
export async function readArchive(file: string): Promise<Read> {
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
  readonly #nodes = new Map<number, { n: number; head: Buffer }>();
  #begin: BeginLine | undefined;
  #head: Buffer = Buffer.alloc(0);
  #ended = false;
  #n = 0;

  wrong(message: string): void {
    if (this.#problems.length < 100) this.#problems.push({ path: `/line/${this.#n}`, message });
  }

  line(text: string): void {
    this.#n++;
    try {
      const said = JSON.parse(text) as object;
      if (this.#ended) return this.wrong("It stands behind the end.");
      if ("end" in said) return this.#end(said as EndLine);
      this.#digest.update(`${text}\n`);
      if ("kind" in said) this.#start(said as BeginLine);
      else this.#batch(said as BatchLine);
    } catch {
      this.wrong("It is no line of an archive.");
    }
  }

  end(): Read {
    if (!this.#begin) this.wrong("It does not begin as an archive does.");
    if (!this.#ended) this.wrong("Its end is missing.");
    const facts = this.#tally.facts(this.#begin?.after ?? "", this.#head.toString("hex"));
    return { ...facts, problems: this.#problems };
  }

  #start(begin: BeginLine): void {
    if (
      this.#n !== 1 ||
      begin.kind !== KIND ||
      begin.version !== VERSION ||
      begin.store !== "postgres"
    )
      return this.wrong(`It is no archive of this store and version (postgres, ${VERSION}).`);
    this.#begin = begin;
    this.#head = Buffer.from(begin.after, "hex");
    for (const [node, n, head] of begin.nodes)
      this.#nodes.set(node, { n, head: Buffer.from(head, "hex") });
  }

  #batch({ node, n, rows, notes }: BatchLine): void {
    const before = this.#nodes.get(node) ?? { n: 0, head: Buffer.alloc(0) };
    if (n !== before.n + 1)
      this.wrong(`Batch ${n} of node ${node} does not follow on ${before.n}.`);
    if (rows.some((row) => row.length !== COLUMNS.length))
      return this.wrong("It has other columns.");
    const lines = [
      ...rows.map((row) => wholeLine(row as Columns)),
      ...notes.map((note) => provedNoteLine(...note)),
    ];
    const head = hashOf(before.head, lines);
    this.#nodes.set(node, { n, head });
    this.#head = linkOf(this.#head, {
      node: String(node),
      n: String(n),
      hash: `\\x${head.toString("hex")}`,
    });
    for (const row of rows) this.#tally.add(row);
  }

  #end({ end, sum, ...rest }: EndLine): void {
    this.#ended = true;
    if (end !== this.#head.toString("hex"))
      this.wrong("Its rows were changed after they were written, or some are missing.");
    const own = this.#digest.digest("hex");
    if (own !== sum || JSON.stringify(rest) !== JSON.stringify(this.#tally.said()))
      this.wrong("What stands above is not what the end says of it.");
  }
}

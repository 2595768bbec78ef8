// Rows of the ledger in a file of their own: lines of JSON, compressed. Each batch stands there as the chains have it, so the file proves itself:
// every batch by its node's chain, and all of them by the one chain up to the hash that the ledger has, or had.
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { ArchiveFacts, ArchiveRequest } from "tollgate/plugin";
import { readBase } from "./pruned.ts";
import { bytes } from "./exact.ts";
import { cutOf } from "./fold.ts";
import type { Ask, Row } from "./line.ts";
import { stretches } from "./links.ts";
import type { Columns } from "./rows.ts";
import { provedLabels, provedNote } from "./salts.ts";
import { COLUMNS } from "./columns.ts";
import { Tally } from "./tally.ts";

/** What the first line says. */
export const KIND = "tollgate ledger archive";
export const VERSION = 1;

/** Where a chain goes on. */
export type Begun = readonly [node: number, n: number, head: string];

export interface BeginLine {
  readonly kind: string;
  readonly version: number;
  readonly store: "postgres";
  /** The first entry's number, and the link before it. */
  readonly pos: number;
  readonly after: string;
  readonly nodes: readonly Begun[];
  readonly labels: boolean;
}

export interface BatchLine {
  readonly node: number;
  readonly n: number;
  readonly rows: readonly Columns[];
  /** Kind, name and what the chain has of the text. */
  readonly notes: readonly (readonly [kind: string, id: string, proved: string])[];
}

export interface EndLine {
  readonly end: string;
  readonly rows: number;
  readonly from: number | null;
  readonly to: number | null;
  readonly total: object;
  /** Of all lines before this one. */
  readonly sum: string;
}

/** All batches of which each entry is from before `before`, from the oldest that is there on. */
export async function archive(
  ask: Ask,
  s: string,
  file: string,
  { before, labels }: ArchiveRequest,
): Promise<ArchiveFacts> {
  const base = await readBase(ask, s);
  const from = base?.pos ?? 1;
  const most = Number.MAX_SAFE_INTEGER;
  const cut = await cutOf(ask, s, { from, before: Math.min(before, most), limit: Infinity, most });
  const after = base?.link ?? "";
  const tally = new Tally();
  let end = after;
  async function* lines(): AsyncGenerator<string, void> {
    const digest = createHash("sha256");
    const said = (line: object): string => {
      const text = `${JSON.stringify(line)}\n`;
      digest.update(text);
      return text;
    };
    const nodes = (base?.nodes ?? []).map(([node, n, head]): Begun => [node, n, head]);
    yield said({
      kind: KIND,
      version: VERSION,
      store: "postgres",
      pos: from,
      after,
      nodes,
      labels,
    });
    const head = Buffer.from(after, "hex");
    const to = cut?.to ?? from;
    for await (const stretch of cut ? stretches(ask, s, { from, to, head }) : []) {
      const texts = await textsOf(ask, s, stretch.batches);
      for (const batch of stretch.batches) {
        if (Number(batch["pos"]) >= to) break;
        const rows = texts.rows(batch).map((row) => (labels ? row : withoutLabels(row)));
        for (const row of rows) tally.add(row);
        end = bytes(batch["link"]!).toString("hex");
        const [node, n] = [Number(batch["node"]), Number(batch["n"])];
        yield said({ node, n, rows, notes: texts.notes(batch) } satisfies BatchLine);
      }
    }
    yield `${JSON.stringify({ end, ...tally.said(), sum: digest.digest("hex") } satisfies EndLine)}\n`;
  }
  await pipeline(
    Readable.from(lines(), { highWaterMark: 64 }),
    createGzip({ level: 6 }),
    createWriteStream(file, { mode: 0o600 }),
  );
  return tally.facts(after, end);
}

const LABELS = COLUMNS.indexOf("labels");
const SALT = COLUMNS.indexOf("salt");

/** The chain has hashes of labels: these are enough to prove the rest. */
const withoutLabels = (row: Columns): Columns =>
  row.with(LABELS, provedLabels(row[LABELS]!, row[SALT]!)).with(SALT, null);

/** Rows and notes of some batches. */
async function textsOf(ask: Ask, s: string, batches: readonly Row[]) {
  const values = [
    `{${batches.map(({ node }) => node).join(",")}}`,
    `{${batches.map(({ n }) => n).join(",")}}`,
  ];
  const of = `(SELECT * FROM unnest($1::int[], $2::bigint[]) AS o(node, n)) o`;
  const rows = await ask({
    text: `SELECT e.node, e.n, ${COLUMNS.map((name) => `e.${name}`).join(", ")} FROM ${of}
      JOIN ${s}.entry e ON e.node = o.node AND e.n = o.n ORDER BY e.node, e.n, e.i`,
    values,
  });
  const notes = await ask({
    text: `SELECT e.node, e.n, e.kind, e.id, e.text, e.salt FROM ${of}
      JOIN ${s}.note e ON e.node = o.node AND e.n = o.n ORDER BY e.node, e.n, e.i`,
    values,
  });
  const found = { rows: grouped(rows), notes: grouped(notes) };
  return {
    rows: (batch: Row) =>
      (found.rows.get(idOf(batch)) ?? []).map((row) => COLUMNS.map((name) => row[name] ?? null)),
    notes: (batch: Row) =>
      (found.notes.get(idOf(batch)) ?? []).map(
        ({ kind, id, text, salt }) => [kind!, id!, provedNote(salt!, text!)] as const,
      ),
  };
}

const idOf = ({ node, n }: Row): string => `${node}/${n}`;

function grouped(rows: readonly Row[]): ReadonlyMap<string, Row[]> {
  const of = new Map<string, Row[]>();
  for (const row of rows) {
    const found = of.get(idOf(row));
    if (found) found.push(row);
    else of.set(idOf(row), [row]);
  }
  return of;
}

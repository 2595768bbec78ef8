// What stands for rows once they are gone, worked out from the rows themselves: which of them may go, what they come to by quarters of an hour,
// and where the chains go on.
import type { PrunePlan } from "tollgate/plugin";
import { createSubtotals, type Subtotals } from "tollgate/store";
import {
  carriedHash,
  notesHash,
  readBase,
  sumsLink,
  type Anchor,
  type PrunedBase,
  type Carried,
} from "./pruned.ts";
import { bytes } from "./exact.ts";
import type { Ask, Row } from "./line.ts";
import { joined, rowOf, SELECTED, type Found } from "./rows.ts";
import { COLUMNS } from "./columns.ts";

/** Batches that are looked at at once, and rows that are read at once. */
const STRIDE = 2_000;
/** Entries that go in a second, about. */
const A_SECOND = 30_000;
const QUARTER_MS = 900_000;

/** Whole batches from the beginning on. */
export interface Cut {
  readonly from: number;
  /** The first entry that stays. */
  readonly to: number;
  readonly since: number;
  readonly till: number;
}

/** The oldest call that is open, by where its batch stands. */
export async function oldestOpen(
  ask: Ask,
  s: string,
): Promise<{ pos: number; attempt: string; at: number } | undefined> {
  const [row] = await ask({
    text: `SELECT b.pos, e.attempt, e.at FROM ${s}.open o
      JOIN ${s}.booked e ON e.attempt = o.attempt AND e.began = o.began AND e.kind = 0
      JOIN ${s}.batch b ON b.node = e.node AND b.n = e.n WHERE b.pos IS NOT NULL ORDER BY b.pos, e.i LIMIT 1`,
  });
  return row && { pos: Number(row["pos"]), attempt: row["attempt"]!, at: Number(row["at"]) };
}

/** Those of which each entry is from before `before`, and none is behind `limit`; `most`: entries. */
export async function cutOf(
  ask: Ask,
  s: string,
  of: {
    readonly from: number;
    readonly before: number;
    readonly limit: number;
    readonly most: number;
  },
): Promise<Cut | undefined> {
  const { from, before, limit, most } = of;
  let cut: Cut | undefined;
  for (let at = from, more = true; more;) {
    const batches = await ask({
      text: `SELECT b.pos, b.entries, min(e.at) AS since, max(e.at) AS till
        FROM (SELECT * FROM ${s}.batch WHERE pos >= $1 AND entries > 0 ORDER BY pos LIMIT $2) b
        JOIN ${s}.booked e ON e.node = b.node AND e.n = b.n GROUP BY b.pos, b.entries ORDER BY b.pos`,
      values: [at, STRIDE],
    });
    for (const batch of batches) {
      const [pos, since, till] = [batch["pos"], batch["since"], batch["till"]].map(Number) as [
        number,
        number,
        number,
      ];
      if (till >= before || pos >= limit) return cut;
      cut = {
        from,
        to: pos + Number(batch["entries"]),
        since: Math.min(since, cut?.since ?? Infinity),
        till: Math.max(till, cut?.till ?? -Infinity),
      };
      if (cut.to - from >= most) return cut;
    }
    more = batches.length === STRIDE;
    at = cut?.to ?? at;
  }
  return cut;
}

/** What a prune would do. */
export async function planOf(
  ask: Ask,
  s: string,
  before: number,
  bytesNow: number,
): Promise<PrunePlan> {
  const from = (await readBase(ask, s))?.pos ?? 1;
  const open = await oldestOpen(ask, s);
  const all = await cutOf(ask, s, { from, before, limit: Infinity, most: Infinity });
  const cut =
    all && open && open.pos < all.to
      ? await cutOf(ask, s, { from, before, limit: open.pos, most: Infinity })
      : all;
  const [chain] = await ask({ text: `SELECT pos FROM ${s}.chain` });
  const rows = cut ? cut.to - from : 0;
  const there = Math.max(1, Number(chain!["pos"]) - from);
  return {
    rows,
    bytes: Math.round((bytesNow * rows) / there),
    ms: Math.round((rows / A_SECOND) * 1_000),
    ...(cut && { from: cut.since, to: cut.till }),
    ...(open && cut?.to !== all?.to && { open: { attempt: open.attempt, at: open.at } }),
  };
}

/** What the database puts in the place of rows. */
export interface FoldedRows {
  readonly cut: Cut;
  readonly base: PrunedBase;
  readonly sums: readonly (readonly [n: number, quarter: number, text: string, hash: string])[];
}

export async function fold(ask: Ask, s: string, cut: Cut, at: number): Promise<FoldedRows> {
  const before = await readBase(ask, s);
  const sums = await sumsOf(ask, s, cut, before?.sums ?? 0);
  const carried = await ask({
    text: `SELECT e.node, e.n, e.i, ${COLUMNS.map((name) => `e.${name}`).join(", ")} FROM ${s}.carried_1($1, $2) c
      JOIN ${s}.entry e ON e.node = c.node AND e.n = c.n AND e.i = c.i ORDER BY 1, 2, 3`,
    values: [cut.from, cut.to],
  });
  const [last] = await ask({
    text: `SELECT encode(link, 'hex') AS link FROM ${s}.batch WHERE pos < $1 AND entries > 0 ORDER BY pos DESC LIMIT 1`,
    values: [cut.to],
  });
  return {
    cut,
    sums,
    base: {
      pos: cut.to,
      link: last!["link"]!,
      since: Math.min(cut.since, before?.since ?? Infinity),
      till: Math.max(cut.till, before?.till ?? -Infinity),
      rows: (before?.rows ?? 0) + cut.to - cut.from,
      at,
      sums: (before?.sums ?? 0) + sums.length,
      carried: carried.map((row): Carried => [
        Number(row["node"]),
        Number(row["n"]),
        Number(row["i"]),
        carriedHash(row),
      ]),
      nodes: await anchorsOf(ask, s, cut, before?.nodes ?? []),
    },
  };
}

async function sumsOf(
  ask: Ask,
  s: string,
  { from, to }: Cut,
  n: number,
): Promise<FoldedRows["sums"]> {
  const quarters = new Map<number, Subtotals>();
  for (let after = from - 1, more = true; more;) {
    const rows = await ask({
      text: `SELECT b.pos + e.i AS seq, ${SELECTED} FROM ${s}.batch b JOIN ${s}.entry e ON e.node = b.node AND e.n = b.n ${joined(s)}
        WHERE b.pos >= coalesce((SELECT max(pos) FROM ${s}.batch WHERE pos <= $1::bigint + 1), 0) AND b.pos < $2
          AND b.pos + e.i > $1::bigint AND e.kind <> 0 ORDER BY b.pos + e.i LIMIT $3`,
      values: [after, to, STRIDE],
    });
    for (const row of rows.map((found) => rowOf(found as Found))) {
      const quarter = Math.floor(row.at / QUARTER_MS) * QUARTER_MS;
      let of = quarters.get(quarter);
      if (!of) quarters.set(quarter, (of = createSubtotals("keys")));
      of.add(row);
    }
    more = rows.length === STRIDE;
    after = Number(rows.at(-1)?.["seq"] ?? after);
  }
  const [newest] = await ask({ text: `SELECT hash FROM ${s}.sums WHERE n = $1`, values: [n] });
  let before = newest?.["hash"] ?? "";
  return [...quarters]
    .sort(([a], [b]) => a - b)
    .map(([quarter, of]) => {
      const text = of.text();
      before = sumsLink(before, quarter, text);
      return [++n, quarter, text, before] as const;
    });
}

/** Up to where each node's batches are gone then. */
async function anchorsOf(
  ask: Ask,
  s: string,
  { from, to }: Cut,
  before: readonly Anchor[],
): Promise<readonly Anchor[]> {
  const rows: readonly Row[] = await ask({
    text: `SELECT DISTINCT ON (node) node, n, hash FROM ${s}.batch WHERE pos >= $1 AND pos < $2 ORDER BY node, n DESC`,
    values: [from, to],
  });
  const found = new Map(before.map((anchor) => [anchor[0], anchor]));
  for (const row of rows) {
    const [node, n] = [Number(row["node"]), Number(row["n"])];
    found.set(node, [
      node,
      n,
      bytes(row["hash"]!).toString("hex"),
      await notesHash(ask, s, node, n),
    ]);
  }
  return [...found.values()].sort(([a], [b]) => a - b);
}

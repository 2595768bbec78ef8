// What a node asks the database about slices, each in one statement.
import type { LimitCrossing } from "tollgate/plugin";
import { createBook, newMeter } from "tollgate/store";
import type { Ask, Row } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { BLANK } from "./replay.ts";
import { recalled } from "./slicing.ts";

/** How a node is apart from its database: for how long it goes on alone, and with what part of what is left of a budget. */
export interface Apart {
  readonly forMs: number;
  /** 0.02: two in a hundred. */
  readonly share: number;
}

/** A slice that is asked for. */
export interface Wanted {
  readonly id: string;
  readonly max: bigint;
  /** What this node uses in a while; null: a standing slice. */
  readonly want: bigint | null;
  /** What one call takes. */
  readonly take: bigint;
}

/** Other nodes are asked for theirs of these meters. Says how many have any. */
export async function recall(ask: Ask, s: string, ids: readonly string[]): Promise<number> {
  const [row] = await ask({
    text: `SELECT ${s}.recall_1($1::text[])::text AS many`,
    values: [texts(ids)],
  });
  return Number(row!["many"]);
}

/** Which of this node's another one needs, and how many nodes live. */
export async function wantedBack(ask: Ask, s: string, node: string) {
  const [row] = await ask({ text: recalled(s), values: [node] });
  return {
    live: Math.max(1, Number(row!["live"])),
    back: JSON.parse(row!["back"]!) as readonly string[],
  };
}

export async function areAny(ask: Ask, s: string): Promise<boolean> {
  const [row] = await ask({ text: `SELECT EXISTS (SELECT 1 FROM ${s}.slice)::text AS are` });
  return row!["are"] === "true";
}

/** What this node has, by meter. */
export async function read(ask: Ask, s: string, node: string) {
  const rows = await ask({
    text: `SELECT meter, amount FROM ${s}.slice WHERE node = $1`,
    values: [node],
  });
  return rows.map(({ meter, amount }) => [meter!, BigInt(amount!)] as const);
}

/** This node draws on these meters: on which of them `from` nodes do, and how many nodes live. */
export async function touched(
  ask: Ask,
  s: string,
  { node, ids, from }: { node: string; ids: readonly string[]; from: number },
) {
  const [row] = await ask({
    text: `SELECT live::text AS live, to_json(hot)::text AS hot FROM ${s}.touched_1($1, $2::text[], $3)`,
    values: [node, texts(ids), from],
  });
  return {
    live: Math.max(1, Number(row!["live"])),
    hot: new Set(JSON.parse(row!["hot"]!) as readonly string[]),
  };
}

/** `apart`: what is taken may be spent while the database is away. */
export const take = (
  ask: Ask,
  s: string,
  of: {
    readonly node: string;
    readonly apart: Pick<Apart, "share"> | undefined;
    readonly wanted: readonly Wanted[];
  },
) =>
  ask({
    text: `SELECT id, amount, level, held, max, peak FROM ${s}.slice_1($1, $2::boolean, $3::numeric, $4::text[], $5::numeric[], $6::numeric[], $7::numeric[])`,
    values: [
      of.node,
      String(of.apart !== undefined),
      String(of.apart?.share ?? 0),
      texts(of.wanted.map(({ id }) => id)),
      numbers(of.wanted.map(({ max }) => max)),
      numbers(of.wanted.map(({ want }) => want)),
      numbers(of.wanted.map(({ take: each }) => each)),
    ],
  });

/** What a node has set aside goes back, all of it or of these meters. A row for each, with what its meter says then. */
export const give = (
  ask: Ask,
  s: string,
  node: string,
  ids?: readonly string[],
): Promise<readonly Row[]> =>
  ask({
    text: `SELECT id, level, max, peak FROM ${s}.unslice_1($1, $2::text[])`,
    values: [node, ids === undefined ? null : texts(ids)],
  });

/** The same of nodes that do not live, but for what they may spend apart. */
export const giveDead = (ask: Ask, s: string): Promise<readonly Row[]> =>
  ask({ text: `SELECT id, level, max, peak FROM ${s}.unslice_dead_1()` });

/** What was crossed when slices were added up: `peak` is what the meter had come to before. */
export function crossedIn(rows: readonly Row[]): readonly LimitCrossing[] {
  const book = createBook(BLANK, () => "");
  for (const { id, level, max, peak } of rows)
    book.load({
      ...newMeter(id!),
      level: BigInt(level!),
      max: BigInt(max!),
      told: BigInt(peak!),
    });
  return book.untold();
}

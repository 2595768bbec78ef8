// The checkpoint of a compaction: the sums that replace rows, each chained to the previous one, and
// a note in the ledger's chain that covers both. Stores add data to a checkpoint that their own
// rows need.
import { hash } from "node:crypto";
import type { LedgerQuery, Problem, PrunePlan, TransferredRollups } from "../../plugin/index.ts";
import { createRollup, parseRollupGroups, type Rollup } from "../rollup.ts";
import type { SummableRow } from "../row-dimensions.ts";
import type { Totals } from "../totals.ts";

const QUARTER_HOUR_MS = 900_000;
/** Returns the start of a quarter of an hour. */
export const quarterStart = (at: number): number =>
  Math.floor(at / QUARTER_HOUR_MS) * QUARTER_HOUR_MS;

/** Fields that every checkpoint has. */
export interface CheckpointBase {
  /** Times when the first and the last compacted row were written. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Number of compacted rows. */
  readonly rows: number;
  /** Time when the checkpoint was built. */
  readonly at: number;
  /** Number of rollups that replace them. */
  readonly rollups: number;
}

/** A job that was open at the end of the compacted rows, and the amounts that its lines took. */
export type RetainedJob = readonly [attempt: string, lineAmounts: readonly string[]];

/** The content of a compaction note in the chain: hashes of the checkpoint and its rollups. */
export interface CheckpointHashes {
  readonly checkpoint: string;
  readonly rollups: string;
}

/** A checkpoint rollup: its number, its quarter of an hour, its text, and its hash. */
export type CheckpointRollup = readonly [n: number, quarter: number, text: string, hash: string];

/** Hashes a text. */
export const hashText = (text: string): string => hash("sha256", text);

/** Hashes a rollup together with the hash of its predecessor. */
const rollupHash = (before: string, quarter: number, text: string): string =>
  hash("sha256", `${before}\n${quarter}\n${text}`);

/**
 * Numbers and chains rollups.
 * @param n Number of earlier rollups, the last of which has the hash `last`.
 */
export function chainRollups(
  sums: Iterable<readonly [quarter: number, text: string]>,
  n = 0,
  last = "",
): CheckpointRollup[] {
  return Array.from(sums, ([quarter, text]): CheckpointRollup => {
    last = rollupHash(last, quarter, text);
    return [++n, quarter, text, last];
  });
}

/** Sums up compacted rows by quarter of an hour. */
export class CheckpointSums {
  readonly #quarters = new Map<number, Rollup>();

  /** Adds a settle or a correction. */
  add(row: SummableRow): void {
    const quarter = quarterStart(row.at);
    let rollup = this.#quarters.get(quarter);
    if (!rollup) this.#quarters.set(quarter, (rollup = createRollup("keys")));
    rollup.add(row);
  }

  /** Returns the rollups, which continue the rollups of the previous checkpoint. */
  rollups(n: number, last: string): CheckpointRollup[] {
    const sorted = [...this.#quarters].sort(([a], [b]) => a - b);
    return chainRollups(
      sorted.map(([quarter, rollup]) => [quarter, rollup.serialize()] as const),
      n,
      last,
    );
  }
}

/** Returns the fields of a checkpoint that continues `before`. */
export const extendCheckpoint = (
  before: CheckpointBase | undefined,
  of: CheckpointBase,
): CheckpointBase => ({
  firstAt: Math.min(of.firstAt, before?.firstAt ?? Infinity),
  lastAt: Math.max(of.lastAt, before?.lastAt ?? -Infinity),
  rows: (before?.rows ?? 0) + of.rows,
  at: of.at,
  rollups: (before?.rollups ?? 0) + of.rollups,
});

/** Returns the checkpoint of an imported ledger, with its chained rollups and their last hash. */
export function checkpointOfImport({ rows, since, until, sums }: TransferredRollups, at: number) {
  const rollups = chainRollups(sums);
  const base: CheckpointBase = {
    firstAt: since,
    lastAt: until,
    rows,
    at,
    rollups: rollups.length,
  };
  return { base, rollups, rollupHash: rollups.at(-1)?.[3] ?? "" };
}

/** Parses a checkpoint. Returns undefined if the text was changed and is not JSON. */
export function parseCheckpoint<C extends CheckpointBase>(text: string): C | undefined {
  try {
    return JSON.parse(text) as C;
  } catch {
    return undefined;
  }
}

const MAX_TIME_MS = 9e15;

/**
 * Adds checkpoint rollups to totals. They count in all queries except those for single rows. A
 * quarter of an hour counts if it starts within the range.
 * @param read Returns the rollups whose quarter is in a range.
 */
export function addCheckpointRollups(
  totals: Totals,
  query: LedgerQuery,
  read: (from: number, to: number) => Iterable<readonly [quarter: number, text: string]>,
): void {
  const { attempt, upstreamId, state, from = -MAX_TIME_MS, to = MAX_TIME_MS } = query;
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return;
  for (const [quarter, text] of read(from, to))
    for (const [dimensions, total] of parseRollupGroups(text))
      totals.addGroup(dimensions, total, quarter, query);
}

/** Verifies that rollups follow each other. Call `add` for each of them in order. */
export class RollupChain {
  /** Hash and number of the last rollup. */
  hash = "";
  n = 0;
  readonly #path: string;

  /**
   * Starts before the first rollup.
   * @param path Path of the rollups in problems.
   */
  constructor(path: string) {
    this.#path = path;
  }

  *add(n: number, quarter: number, text: string, its: string): Generator<Problem, void> {
    if (rollupHash(this.hash, quarter, text) !== its)
      yield {
        path: `${this.#path}/${n}`,
        message: "The totals were changed after they were written.",
      };
    this.hash = its;
    this.n = n;
  }
}

/**
 * Verifies that exactly the reserves in the checkpoint are retained, unchanged.
 * @param named Identities and hashes in the checkpoint.
 * @param found Identities and hashes of the reserves that exist.
 */
export function* verifyRetained<Id>(
  path: string,
  named: Iterable<readonly [Id, string]>,
  found: Iterable<readonly [Id, string]>,
): Generator<Problem, void> {
  const missing = new Map(named);
  for (const [id, its] of found) {
    if (missing.get(id) !== its)
      yield { path: `${path}/${id}`, message: "The reserve differs from its checkpoint." };
    missing.delete(id);
  }
  for (const id of missing.keys())
    yield {
      path: `${path}/${id}`,
      message: "The reserve is in the checkpoint, but it is missing.",
    };
}

/**
 * Estimates the effect of a compaction.
 * @param all Number of rows that the ledger has, and its size in bytes.
 */
export const estimatePrune = (
  range: { readonly rows: number; readonly firstAt: number; readonly lastAt: number } | undefined,
  all: { readonly rows: number; readonly bytes: number },
  rowsPerSecond: number,
  open: PrunePlan["open"],
): PrunePlan => {
  const rows = range?.rows ?? 0;
  return {
    rows,
    bytes: Math.round((all.bytes * rows) / Math.max(1, all.rows)),
    ms: Math.round((rows / rowsPerSecond) * 1_000),
    ...(range && { from: range.firstAt, to: range.lastAt }),
    ...(open && { open: { attempt: open.attempt, at: open.at } }),
  };
};

// Verification for stores that keep complete rows. It recomputes all data that is derived from the
// rows: open calls, the usage of calendar windows, and the checkpoint that replaces older rows.
import type { Problem } from "../../plugin/index.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { RollupChain, verifyRetained } from "./checkpoint.ts";
import { LedgerReplay, type ReplayedCall } from "./ledger-replay.ts";
import type { LedgerBackend, NumberedRow, RowCheckpoint } from "./row-backend.ts";

/**
 * Adds a row to a replay. Reserves up to `compactedUpTo` are retained. Returns false if the row is a
 * settle without a reserve.
 */
export function replayRow(
  backend: Pick<LedgerBackend, "readReserve">,
  replay: LedgerReplay<number>,
  [seq, row]: NumberedRow,
  compactedUpTo: number,
): boolean | Promise<boolean> {
  if (row.kind === "settle") return replay.settle(row) !== undefined;
  if (row.kind === "adjust")
    return backend.readReserve(row.attempt).then((reserve) => {
      replay.adjust(row, reserve);
      return true;
    });
  if (seq <= compactedUpTo) replay.retain(row, seq);
  else replay.reserve(row, seq);
  return true;
}

/**
 * Verifies a ledger of complete rows. Returns the problems that it finds. Calls can be written
 * during the verification. The store must not prune or erase during it.
 */
export async function verifyRows(backend: LedgerBackend): Promise<readonly Problem[]> {
  const base = await backend.readCheckpoint();
  // Rows that are written from now on are not in the snapshot, so they are not verified.
  const { head, openCalls, meters } = await backend.readSnapshot();
  const problems = [...(await verifyRollups(backend, base))];
  const replay = new LedgerReplay<number>(base?.windows, base?.jobs);
  const retained: number[] = [];
  let [last, latest] = [0, base?.lastAt ?? 0];
  /**
   * Returns a promise only if it has to wait, so that a store in memory is verified in one step.
   */
  const add = (entry: NumberedRow): Promise<void> | undefined => {
    const [seq, { attempt, at }] = entry;
    if (seq <= last) problems.push({ path: `/entry/${attempt}`, message: "The order is wrong." });
    last = seq;
    if (seq <= (base?.last ?? 0)) retained.push(seq);
    else latest = Math.max(latest, at);
    const report = (isKnown: boolean) => {
      if (!isKnown)
        problems.push({ path: `/entry/${attempt}`, message: "The settle has no reserve." });
    };
    const isKnown = replayRow(backend, replay, entry, base?.last ?? 0);
    return typeof isKnown === "boolean" ? void report(isKnown) : isKnown.then(report);
  };
  const rows = backend.scanRows(0);
  if (Symbol.iterator in rows)
    for (const entry of rows) {
      if (entry[0] > head) break;
      const waiting = add(entry);
      if (waiting) await waiting;
    }
  else
    for await (const entry of rows) {
      if (entry[0] > head) break;
      await add(entry);
    }
  const unhashed = (seqs: readonly number[]) => seqs.map((seq) => [seq, ""] as const);
  problems.push(
    ...verifyRetained("/retained", unhashed(base?.retained ?? []), unhashed(retained)),
    ...verifyOpenCalls(openCalls, replay.open, base?.last ?? 0),
    ...replay.verifyWindows(meters, latest, wallClock()),
  );
  return problems;
}

async function verifyRollups(
  backend: LedgerBackend,
  base: RowCheckpoint | undefined,
): Promise<readonly Problem[]> {
  const chain = new RollupChain("/rollups");
  const problems: Problem[] = [];
  for (const rollup of await backend.readRollups()) problems.push(...chain.add(...rollup));
  if (chain.hash !== (base?.rollupHash ?? "") || chain.n !== (base?.rollups ?? 0))
    problems.push({ path: "/rollups", message: "The totals differ from the checkpoint." });
  return problems;
}

/**
 * Compares the open calls of the store with the open calls of the rows. Calls whose reserves were
 * compacted have ended, because compaction stops at the oldest open call.
 */
function* verifyOpenCalls(
  listed: ReadonlyMap<string, unknown>,
  open: ReadonlyMap<string, ReplayedCall<number>>,
  compactedUpTo: number,
): Generator<Problem, void> {
  const isOpen = (attempt: string) => (open.get(attempt)?.data ?? 0) > compactedUpTo;
  for (const attempt of listed.keys())
    if (!isOpen(attempt))
      yield {
        path: `/open_call/${attempt}`,
        message: "The call is listed as open, but is settled.",
      };
  for (const attempt of open.keys())
    if (isOpen(attempt) && !listed.has(attempt))
      yield {
        path: `/open_call/${attempt}`,
        message: "The call is not settled, but is not listed as open.",
      };
}

// Ends a call: its usage and cost, its record, and its ledger row. If the ledger does not accept
// the row, this is logged.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Fault } from "../../model/error.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Price } from "../../model/facts.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type { Settle } from "../../plugin/store/store.ts";
import type { HostCall } from "../exchange/call.ts";
import type { Stamped } from "../generation.ts";
import type { CallTally } from "./call-tally.ts";

/** Maximum time in milliseconds that a client waits for the ledger to settle. */
export const SETTLE_TIMEOUT_MS = 2_000;

/** Settles a call once, with its finish reason or with the fault that ended it. Never rejects. */
export function settleCall(
  tally: CallTally,
  { finish, fault }: { finish?: FinishReason; fault?: Fault },
): Promise<void> {
  const { command, record } = tally.settle({
    at: wallClock(),
    outcome: fault?.kind ?? "ok",
    finish,
    fault,
    cut: fault !== undefined,
  });
  addCallRecord(tally.call, record);
  const row = writeSettleRow(tally.call, command, tally.otherPrices);
  tally.markSettled(record, row);
  return row;
}

/**
 * Adds a record in order. The last record must belong to the call that answered, or whose failure
 * the client receives.
 */
function addCallRecord({ isSuperseded, exchange }: HostCall, record: CallRecord): void {
  const { records } = exchange.state.billing;
  const { last } = exchange.state.calls;
  const belongsBeforeLast = isSuperseded && last !== undefined && records.at(-1)?.n === last.n;
  if (belongsBeforeLast) records.splice(-1, 0, record);
  else records.push(record);
}

/** Returns the record of a call that a hook answered without calling the provider. */
export const createUncalledRecord = ({
  attemptId,
  n,
  isHedge,
  candidate,
  startedAt,
  startMs,
}: HostCall): CallRecord => ({
  attemptId,
  n,
  ...(isHedge && { hedge: isHedge }),
  candidate,
  state: "void",
  usage: {},
  costNano: 0n,
  startMs,
  ms: { total: Math.round(performance.now() - startedAt) },
});

/**
 * Settles a call that a hook answered. Nothing was used and nothing is billed. The row's outcome is
 * "middleware". Never rejects.
 */
export function settleHookResponse(tally: CallTally, finish: FinishReason): Promise<void> {
  const { call } = tally;
  const record = createUncalledRecord(call);
  const { attemptId, usage, costNano, ms } = record;
  addCallRecord(call, record);
  const settle = {
    do: "settle",
    at: wallClock(),
    attempt: attemptId,
    state: "void",
    usage,
    costNano,
  } as const;
  const row = writeSettleRow(call, { ...settle, outcome: "middleware", finish, ms }, []);
  tally.markSettled(record, row);
  return row;
}

/** Writes the settle row. Never rejects. */
export function writeSettleRow(
  call: HostCall,
  command: Stamped<Settle>,
  prices: readonly Price[],
): Promise<void> {
  const { exchange } = call;
  const { gen } = exchange.state;
  const row = gen.ledger.settle(command, prices);
  exchange.jobLine?.onSettle?.(row);
  return row.catch((err: unknown) =>
    gen.log.error({ request: exchange.id, err }, "ledger rejected settle row"),
  );
}

/** Waits for a row, for at most the time that a client may wait. */
export function waitForRow(row: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, SETTLE_TIMEOUT_MS).unref();
    // A timer of each request would keep it in memory until the time is over.
    row.then(
      () => {
        clearTimeout(timer);
        resolve();
      },
      (problem: unknown) => {
        clearTimeout(timer);
        reject(problem as Error);
      },
    );
  });
}

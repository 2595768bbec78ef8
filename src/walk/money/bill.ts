// The end of a call, in one place: what it used and cost, its record, its row in the ledger, and a line in the log where the
// ledger does not take it.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/wall-clock.ts";
import type { Fault } from "../../model/error.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Price } from "../../model/facts.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type { Settle } from "../../plugin/store.ts";
import type { HostCall } from "../call.ts";
import type { Stamped } from "./ledger.ts";
import type { Tally } from "./tally.ts";

/** A ledger that takes longer than this to settle keeps no client waiting. */
export const SETTLE_MS = 2_000;

/** Settles a call once: it came to its finish, or a fault cut it off. Never rejects. */
export function settleCall(
  tally: Tally,
  { finish, fault }: { finish?: FinishReason; fault?: Fault },
): Promise<void> {
  const { command, record } = tally.settle({
    at: wallClock(),
    outcome: fault?.kind ?? "ok",
    finish,
    fault,
    cut: fault !== undefined,
  });
  noteRecord(tally.call, record);
  const row = billed(tally.call, command, tally.otherPrices);
  tally.closed(record, row);
  return row;
}

/** Records are in order, and the last one is that of the call which answered or whose failure the client is told. */
function noteRecord({ lost, exchange }: HostCall, record: CallRecord): void {
  const { calls, last } = exchange["~"];
  const behind = lost && last !== undefined && calls.at(-1)?.n === last.n;
  if (behind) calls.splice(-1, 0, record);
  else calls.push(record);
}

/** The record of a call that a hook answered, and whose provider was not asked. */
export const unasked = ({
  attempt,
  n,
  hedge,
  candidate,
  started,
  startMs,
}: HostCall): CallRecord => ({
  attempt,
  n,
  ...(hedge && { hedge }),
  candidate,
  state: "void",
  usage: {},
  costNano: 0n,
  startMs,
  ms: { total: Math.round(performance.now() - started) },
});

/** Settles such a call: nothing was used, nothing is billed, and the row says by what it was answered. Never rejects. */
export function settleUnasked(tally: Tally, finish: FinishReason): Promise<void> {
  const { call } = tally;
  const record = unasked(call);
  const { attempt, usage, costNano, ms } = record;
  noteRecord(call, record);
  const settle = {
    do: "settle",
    at: wallClock(),
    attempt,
    state: "void",
    usage,
    costNano,
  } as const;
  const row = billed(call, { ...settle, outcome: "middleware", finish, ms }, []);
  tally.closed(record, row);
  return row;
}

/** Its row; never rejects. */
export function billed(
  call: HostCall,
  command: Stamped<Settle>,
  prices: readonly Price[],
): Promise<void> {
  const { gen } = call.exchange["~"];
  return gen.ledger
    .settle(command, prices)
    .catch((err: unknown) =>
      gen.log.error({ request: call.exchange.id, err }, "the ledger did not take a settle row"),
    );
}

/** As long as a client waits for it. */
export const inTime = (row: Promise<void>): Promise<void> =>
  Promise.race([row, sleep(SETTLE_MS, undefined, { ref: false })]);

import { setTimeout as sleep } from "node:timers/promises";
import type { Price } from "../../model/facts.ts";
import type { Settle } from "../../plugin/store.ts";
import type { HostCall } from "../call.ts";
import type { Stamped } from "./ledger.ts";

/** Barrier B3: a ledger that takes longer than this to settle keeps nobody waiting. */
export const SETTLE_MS = 2_000;

/** A call that failed, told to the ledger. */
export function billed(
  call: HostCall,
  command: Stamped<Settle>,
  prices: readonly Price[],
): Promise<void> {
  const { gen } = call.exchange["~"];
  return Promise.race([
    gen.ledger.settle(command, prices),
    sleep(SETTLE_MS, undefined, { ref: false }),
  ]).catch((err: unknown) =>
    gen.log.error({ request: call.exchange.id, err }, "a settle row was not taken"),
  );
}

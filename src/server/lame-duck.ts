// The first phase of a graceful shutdown. A load balancer sends requests until it has queried
// /readyz again, so the port stays open until then.
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../lib/log/log.ts";

/**
 * Default shutdown delay in milliseconds. A load balancer that queries every 1 or 2 s has seen the
 * change before that.
 */
const DEFAULT_ANNOUNCE_MS = 5_000;

/**
 * Additional time after the drain time, in milliseconds. It includes 10 s for the ledger, in case
 * the store is unavailable or must be reopened. Workers use part of this time before the primary.
 */
const SHUTDOWN_MARGIN_MS = { alone: 20_000, workers: 35_000 };

/** Time in milliseconds for a response to an operator's program that is still being sent. */
export const ADMIN_CLOSE_GRACE_MS = 1_000;

type ShutdownTimes = GatewayConfig["shutdown"];

/** Returns the maximum duration of a shutdown in milliseconds. */
export const maxShutdownMs = (
  { announceMs = DEFAULT_ANNOUNCE_MS, timeoutMs }: ShutdownTimes,
  several: boolean,
): number =>
  announceMs + timeoutMs + (several ? SHUTDOWN_MARGIN_MS.workers : SHUTDOWN_MARGIN_MS.alone);

export class LameDuck {
  readonly #canceled = new AbortController();

  /**
   * Waits for load balancers. `readyzWasQueried`: whether /readyz was ever queried. If it was not
   * and the config sets no delay, there is no wait.
   */
  async waitForBalancers(
    { announceMs }: ShutdownTimes,
    readyzWasQueried: boolean,
    log: Log,
  ): Promise<void> {
    const ms = announceMs ?? (readyzWasQueried ? DEFAULT_ANNOUNCE_MS : 0);
    if (ms === 0 || this.#canceled.signal.aborted) return;
    log.info({ ms }, "shutdown delay started");
    await sleep(ms, undefined, { signal: this.#canceled.signal }).catch(() => {});
  }

  /** Ends the wait. */
  cancel(): void {
    this.#canceled.abort();
  }
}

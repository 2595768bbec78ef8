// The beginning of a stop. A balancer sends requests until it has asked /readyz again: until then all are served, and only
// then the port closes.
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../lib/log/log.ts";

/** Where gateway.yaml does not say how long: a balancer that asks every second or two has heard it by then. */
const DEFAULT_ANNOUNCE_MS = 5_000;

/** After the drain time. The ledger has ten seconds of them for a store that is away, or has to be opened again; workers have theirs first. */
const SHUTDOWN_MARGIN_MS = { alone: 20_000, workers: 35_000 };

/** For an answer to an operator's program that is just being written. */
export const ADMIN_CLOSE_GRACE_MS = 1_000;

type ShutdownTimes = Pick<GatewayConfig, "shutdownAnnounceMs" | "shutdownTimeoutMs">;

/** How long a whole stop may take. */
export const maxShutdownMs = (
  { shutdownAnnounceMs = DEFAULT_ANNOUNCE_MS, shutdownTimeoutMs }: ShutdownTimes,
  several: boolean,
): number =>
  shutdownAnnounceMs +
  shutdownTimeoutMs +
  (several ? SHUTDOWN_MARGIN_MS.workers : SHUTDOWN_MARGIN_MS.alone);

export class LameDuck {
  readonly #canceled = new AbortController();

  /** `asked`: something asks /readyz here. Where nothing does, and the file says nothing, there is nothing to wait for. */
  async waitForBalancers(
    { shutdownAnnounceMs }: ShutdownTimes,
    readyzWasAsked: boolean,
    log: Log,
  ): Promise<void> {
    const ms = shutdownAnnounceMs ?? (readyzWasAsked ? DEFAULT_ANNOUNCE_MS : 0);
    if (ms === 0 || this.#canceled.signal.aborted) return;
    log.info({ ms }, "/readyz says 503; all are served until the port closes");
    await sleep(ms, undefined, { signal: this.#canceled.signal }).catch(() => {});
  }

  /** It is not waited for any longer. */
  cancel(): void {
    this.#canceled.abort();
  }
}

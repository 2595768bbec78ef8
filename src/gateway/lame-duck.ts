// The beginning of a stop. A balancer sends requests until it has asked /readyz again: until then all are served, and only
// then the port closes.
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayConfig } from "../config/types.ts";
import type { Log } from "../lib/log.ts";

/** Where gateway.yaml does not say how long: a balancer that asks every second or two has heard it by then. */
const ANNOUNCE_MS = 5_000;

/** After the drain time. The ledger has ten seconds of them for a store that is away, or has to be opened again; workers have theirs first. */
const END_MS = { alone: 20_000, workers: 35_000 };

/** For an answer to an operator's program that is just being written. */
export const ADMIN_MS = 1_000;

type Times = Pick<GatewayConfig, "announceMs" | "drainMs">;

/** How long a whole stop may take. */
export const endMs = ({ announceMs = ANNOUNCE_MS, drainMs }: Times, several: boolean): number =>
  announceMs + drainMs + (several ? END_MS.workers : END_MS.alone);

export class LameDuck {
  readonly #hurry = new AbortController();

  /** `asked`: something asks /readyz here. Where nothing does, and the file says nothing, there is nothing to wait for. */
  async announce({ announceMs }: Times, asked: boolean, log: Log): Promise<void> {
    const ms = announceMs ?? (asked ? ANNOUNCE_MS : 0);
    if (ms === 0 || this.#hurry.signal.aborted) return;
    log.info({ ms }, "/readyz says 503; all are served until the port closes");
    await sleep(ms, undefined, { signal: this.#hurry.signal }).catch(() => {});
  }

  /** It is not waited for any longer. */
  hurry(): void {
    this.#hurry.abort();
  }
}

// Whether the gateway can accept requests, as one state for all its processes. The process that
// owns the store determines the state and sends every change to the others, so that `/readyz`,
// `status`, the console, and metrics agree.
import type { HealthState } from "../../plugin/gateway-stats.ts";
import type { LedgerQueue } from "../ledger/ledger-queue-api.ts";

/** Reason why the ledger accepts no rows, and its start (Unix milliseconds). */
export interface LedgerOutage {
  readonly reason: string;
  readonly since: number;
  /** Whether the store reported that it cannot be reached. */
  readonly isUnreachable: boolean;
}

type OnLedgerChange = (trouble: LedgerOutage | undefined) => void;

export class LedgerAvailability {
  readonly #listeners = new Set<OnLedgerChange>();
  #outage: LedgerOutage | undefined;

  get outage(): LedgerOutage | undefined {
    return this.#outage;
  }

  /**
   * Sets the state. Called by the process that owns the store, and by other processes with the
   * state that it sent.
   */
  set(failure: LedgerOutage | undefined): void {
    this.#outage = failure;
    for (const listener of this.#listeners) listener(failure);
  }

  onChange(listener: OnLedgerChange): void {
    this.#listeners.add(listener);
  }
}

/**
 * Returns the health state. A draining gateway is reported as draining regardless of its ledger,
 * because it should receive no more requests.
 */
export function healthStateOf(of: {
  readonly draining: boolean;
  readonly open: boolean;
  readonly trouble: LedgerOutage | undefined;
}): HealthState {
  if (of.draining) return "draining";
  if (!of.open) return "starting";
  return of.trouble ? "ledger_unavailable" : "ready";
}

/** Applies a state that the owner of the store sent. Called in a process that borrows the store. */
export function followLedgerAvailability(
  {
    ledgerAvailability,
    ledgerQueue,
  }: { readonly ledgerAvailability: LedgerAvailability; readonly ledgerQueue: LedgerQueue },
  failure: LedgerOutage | undefined,
): void {
  ledgerAvailability.set(failure);
  if (failure?.isUnreachable) ledgerQueue.markUnreachable(failure.reason);
  else if (!failure) ledgerQueue.probe();
}

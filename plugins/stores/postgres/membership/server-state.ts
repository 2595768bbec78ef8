// Tracks data that each database response contains in addition: the database time, and whether keys
// or accounts have changed. Decisions use the database clock, never this node's clock.
import type { StoreEvent } from "tollgate/plugin";

/**
 * How long the fastest round trip is used to estimate the clock offset, in milliseconds. The
 * fastest trip gives the best estimate.
 */
const BEST_TRIP_TTL_MS = 60_000;

export class ServerState {
  onEvent: (news: StoreEvent) => void = () => {};
  #seenVersions: readonly [keys: string, accounts: string] | undefined;
  #bestOffset:
    | { readonly tripMs: number; readonly offset: number; readonly until: number }
    | undefined;

  /** Returns the estimated database time, in milliseconds. */
  databaseNow(): number {
    return Math.floor(Date.now() + (this.#bestOffset?.offset ?? 0));
  }

  /** Number of milliseconds by which this machine's clock is ahead of the database's clock. */
  get clockAheadMs(): number {
    return -(this.#bestOffset?.offset ?? 0);
  }

  /**
   * Updates the clock offset.
   * @param t Database time in a response.
   * @param tripMs Duration of the round trip.
   */
  observeClock(t: number, tripMs: number): void {
    const now = performance.now();
    if (this.#bestOffset && this.#bestOffset.until > now && this.#bestOffset.tripMs < tripMs)
      return;
    this.#bestOffset = {
      tripMs,
      offset: t - Date.now() + tripMs / 2,
      until: now + BEST_TRIP_TTL_MS,
    };
  }

  /** Compares the change counters of keys and accounts, such as "3 1", and reports changes. */
  observeVersions(text: string): void {
    const [keys, accounts] = text.split(" ") as [string, string];
    const before = this.#seenVersions;
    this.#seenVersions = [keys, accounts];
    if (!before) return;
    if (before[0] !== keys) this.onEvent({ type: "keys_changed" });
    if (before[1] !== accounts) this.onEvent({ type: "accounts_changed" });
  }
}

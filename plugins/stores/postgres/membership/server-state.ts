// What each answer of the database says besides: its time, and whether keys or accounts have changed. The node's own clock decides nothing.
import type { StoreEvent } from "tollgate/plugin";

/** The quickest round trip of the last minute says best how the two clocks differ. */
const BEST_TRIP_TTL_MS = 60_000;

export class ServerState {
  onEvent: (news: StoreEvent) => void = () => {};
  #seenVersions: readonly [keys: string, accounts: string] | undefined;
  #bestOffset:
    | { readonly tripMs: number; readonly offset: number; readonly until: number }
    | undefined;

  /** The database's time, as far as it can be told from here. */
  databaseNow(): number {
    return Math.floor(Date.now() + (this.#bestOffset?.offset ?? 0));
  }

  /** How far this machine's clock is before the database's, in milliseconds. */
  get clockAheadMs(): number {
    return -(this.#bestOffset?.offset ?? 0);
  }

  /** `t`: what the database's clock said in an answer that took so long. */
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

  /** "3 1": how often keys and accounts have changed. */
  observeVersions(text: string): void {
    const [keys, accounts] = text.split(" ") as [string, string];
    const before = this.#seenVersions;
    this.#seenVersions = [keys, accounts];
    if (!before) return;
    if (before[0] !== keys) this.onEvent({ type: "keys_changed" });
    if (before[1] !== accounts) this.onEvent({ type: "accounts_changed" });
  }
}

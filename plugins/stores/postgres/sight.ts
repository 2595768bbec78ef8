// What each answer of the database says besides: its time, and whether keys or accounts have changed. The node's own clock decides nothing.
import type { StoreNews } from "tollgate/plugin";

/** The quickest round trip of the last minute says best how the two clocks differ. */
const FRESH_MS = 60_000;

export class Sight {
  hear: (news: StoreNews) => void = () => {};
  #versions: readonly [keys: string, accounts: string] | undefined;
  #best: { readonly tripMs: number; readonly offset: number; readonly until: number } | undefined;

  /** The database's time, as far as it can be told from here. */
  now(): number {
    return Math.floor(Date.now() + (this.#best?.offset ?? 0));
  }

  /** How far this machine's clock is before the database's, in milliseconds. */
  get ahead(): number {
    return -(this.#best?.offset ?? 0);
  }

  /** `t`: what the database's clock said in an answer that took so long. */
  clock(t: number, tripMs: number): void {
    const now = performance.now();
    if (this.#best && this.#best.until > now && this.#best.tripMs < tripMs) return;
    this.#best = { tripMs, offset: t - Date.now() + tripMs / 2, until: now + FRESH_MS };
  }

  /** "3 1": how often keys and accounts have changed. */
  versions(text: string): void {
    const [keys, accounts] = text.split(" ") as [string, string];
    const before = this.#versions;
    this.#versions = [keys, accounts];
    if (!before) return;
    if (before[0] !== keys) this.hear({ type: "keys" });
    if (before[1] !== accounts) this.hear({ type: "accounts" });
  }
}

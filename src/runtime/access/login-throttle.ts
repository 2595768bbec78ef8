// Limits wrong credentials at the admin listener. After 10 different ones per minute from one
// address, all credentials from that address are rejected until the minute ends. A repeated
// credential counts once, so that a program with an expired token does not lock out others at its
// address.
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digestKey } from "../../lib/api-key.ts";
import { networkPrefixOf } from "../../lib/net/network-prefix.ts";
import { fail } from "../../model/error.ts";

const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;
const MAX_SECRET_LENGTH = 1_024;

export class LoginThrottle {
  readonly #now: () => number;
  readonly #failures = new BoundedMap<string, { words: Set<string>; until: number }>(MAX_ADDRESSES);

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Throws if the address is locked out. Called before a credential is checked: valid ones are
   * rejected too, or an attacker could continue to guess.
   */
  assertAllowed(address: string): void {
    const found = this.#recentFailures(address);
    if (found && found.words.size >= MAX_FAILURES)
      fail("rate_limited", "Too many failed sign-in attempts from this address.", {
        code: "too_many_tries",
        retryAfterMs: found.until - this.#now(),
      });
  }

  recordFailure(address: string, word: string): void {
    const found = this.#recentFailures(address) ?? {
      words: new Set(),
      until: this.#now() + WINDOW_MS,
    };
    found.words.add(digestKey(word.slice(0, MAX_SECRET_LENGTH)));
    this.#failures.set(clientPrefixOf(address), found);
  }

  #recentFailures(address: string) {
    const found = this.#failures.get(clientPrefixOf(address));
    return found && found.until > this.#now() ? found : undefined;
  }
}

/**
 * Returns the key that an address is counted under: the network prefix for IPv6, because one client
 * has many IPv6 addresses.
 */
const clientPrefixOf = (address: string): string =>
  address.includes(".") ? address : (networkPrefixOf(address) ?? address);

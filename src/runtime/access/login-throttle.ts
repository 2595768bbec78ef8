// Wrong words at the admin listener: ten a minute from one address, and then none of its words is looked at until the minute is over.
// The same one again is no other guess: a program whose token has ended locks out no other one beside it.
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

  /** Before a word is looked at: right ones are refused too, or guessing would go on. */
  assertAllowed(address: string): void {
    const found = this.#recentFailures(address);
    if (found && found.words.size >= MAX_FAILURES)
      fail("rate_limited", "Too many wrong tries from this address.", {
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

/** One client has many addresses of IPv6. */
const clientPrefixOf = (address: string): string =>
  address.includes(".") ? address : (networkPrefixOf(address) ?? address);

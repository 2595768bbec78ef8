// Wrong words at the admin listener: ten a minute from one address, and then none of its words is looked at until the minute is over.
// The same one again is no other guess: a program whose token has ended locks out no other one beside it.
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digest } from "../../lib/key.ts";
import { networkOf } from "../../lib/network.ts";
import { fail } from "../../model/error.ts";

const MOST = 10;
const WINDOW_MS = 60_000;
const ADDRESSES = 10_000;
const LONGEST = 1_024;

export class Tries {
  readonly #now: () => number;
  readonly #wrong = new BoundedMap<string, { words: Set<string>; until: number }>(ADDRESSES);

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Before a word is looked at: right ones are refused too, or guessing would go on. */
  check(address: string): void {
    const found = this.#found(address);
    if (found && found.words.size >= MOST)
      fail("rate_limited", "Too many wrong tries from this address.", {
        code: "too_many_tries",
        retryAfterMs: found.until - this.#now(),
      });
  }

  wrong(address: string, word: string): void {
    const found = this.#found(address) ?? { words: new Set(), until: this.#now() + WINDOW_MS };
    found.words.add(digest(word.slice(0, LONGEST)));
    this.#wrong.set(clientOf(address), found);
  }

  #found(address: string) {
    const found = this.#wrong.get(clientOf(address));
    return found && found.until > this.#now() ? found : undefined;
  }
}

/** One client has many addresses of IPv6. */
const clientOf = (address: string): string =>
  address.includes(".") ? address : (networkOf(address) ?? address);

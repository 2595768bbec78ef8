// Sessions of the console: an opaque word in a cookie, of which only the hash is kept, and one-time words that are traded for one.
// They are in memory: a restart ends all of them.
import { randomBytes } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digest } from "../../lib/key.ts";
import type { Principal } from "../control/giver.ts";

/** A session as it may be shown: its id opens nothing. */
export interface ShownSession extends Principal {
  readonly id: string;
  readonly address: string;
  readonly began: number;
  readonly used: number;
  readonly until: number;
}

interface OpenSession extends ShownSession {
  used: number;
}

const IDLE_MS = 30 * 60_000;
const LONGEST_MS = 12 * 3_600_000;
const WORD_MS = 60_000;
/** Of each: operators are few, and the oldest goes first. */
const MOST = 1_000;

const word = (): string => randomBytes(32).toString("base64url");

export class Sessions {
  readonly #now: () => number;
  /** By the hash of the cookie's word. */
  readonly #open = new BoundedMap<string, OpenSession>(MOST);
  readonly #words = new BoundedMap<string, { holder: Principal; until: number }>(MOST);

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The cookie's word, which is shown to nothing but the one client. */
  begin(holder: Principal, address: string): { word: string; session: ShownSession } {
    const now = this.#now();
    const until = Math.min(now + LONGEST_MS, holder.until ?? Infinity);
    const id = randomBytes(6).toString("hex");
    const session = { ...holder, id, address, began: now, used: now, until };
    const secret = word();
    this.#open.set(digest(secret), session);
    return { word: secret, session };
  }

  /** Undefined: there is none, or it is over. Asking keeps it from being idle. */
  find(secret: string): ShownSession | undefined {
    const hash = digest(secret);
    const session = this.#open.get(hash);
    if (!session) return undefined;
    if (!this.#lives(session)) {
      this.#open.delete(hash);
      return undefined;
    }
    session.used = this.#now();
    return session;
  }

  list(): ShownSession[] {
    return this.#open
      .entries()
      .map(([, session]) => session)
      .filter((session) => this.#lives(session));
  }

  /** Ends sessions, and invitations that were not redeemed yet, which have no id. Returns how many sessions it ended. */
  end(which: (session: Principal & { readonly id?: string | undefined }) => boolean): number {
    let ended = 0;
    for (const [hash, { holder }] of this.#words.entries())
      if (which(holder)) this.#words.delete(hash);
    for (const [hash, session] of this.#open.entries())
      if (which(session)) {
        this.#open.delete(hash);
        ended++;
      }
    return ended;
  }

  /** A word that opens one session, once, within a minute. */
  invite(holder: Principal): { word: string; until: number } {
    const secret = word();
    const until = this.#now() + WORD_MS;
    this.#words.set(digest(secret), { holder, until });
    return { word: secret, until };
  }

  /** Used up by being asked for. */
  redeem(secret: string): Principal | undefined {
    const hash = digest(secret);
    const found = this.#words.get(hash);
    this.#words.delete(hash);
    return found && found.until > this.#now() ? found.holder : undefined;
  }

  #lives({ used, until }: OpenSession): boolean {
    const now = this.#now();
    return until > now && used + IDLE_MS > now;
  }
}

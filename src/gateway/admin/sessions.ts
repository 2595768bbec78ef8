// Sessions of the console: an opaque word in a cookie, of which only the hash is kept, and one-time words that are traded for one.
// They are in memory: a restart ends all of them.
import { randomBytes } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digest } from "../../lib/key.ts";
import type { Role } from "../../plugin/role.ts";

/** Whose session it is. `by`: what it was begun with, and ends with: "token:4fGh", "file:anna", "shell". */
export interface SessionHolder {
  readonly name: string;
  readonly role: Role;
  readonly within?: string | undefined;
  readonly by: string;
  /** Of one of the identity provider's: the group that its role is of. */
  readonly group?: string | undefined;
  /** It ends by then at the latest. */
  readonly until?: number | undefined;
}

/** A session as it may be shown: its id opens nothing. */
export interface ShownSession extends SessionHolder {
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
  readonly #words = new BoundedMap<string, { holder: SessionHolder; until: number }>(MOST);

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The cookie's word, which is shown to nothing but the one client. */
  begin(holder: SessionHolder, address: string): { word: string; session: ShownSession } {
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

  /** How many of them there were. */
  end(which: (session: ShownSession) => boolean): number {
    let ended = 0;
    for (const [hash, session] of this.#open.entries())
      if (which(session)) {
        this.#open.delete(hash);
        ended++;
      }
    return ended;
  }

  /** A word that opens one session, once, within a minute. */
  invite(holder: SessionHolder): { word: string; until: number } {
    const secret = word();
    const until = this.#now() + WORD_MS;
    this.#words.set(digest(secret), { holder, until });
    return { word: secret, until };
  }

  /** Used up by being asked for. */
  redeem(secret: string): SessionHolder | undefined {
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

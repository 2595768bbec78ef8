// Keeps the console's sessions and the one-time codes that open them. A session is an opaque token
// in a cookie. The gateway keeps only its hash. All data is in memory, so a restart ends all
// sessions.
import { randomBytes } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digestKey } from "../../lib/api-key.ts";
import type { Principal } from "./principal.ts";

/** A session as operators see it. The ID cannot be used to authenticate. */
export interface ShownSession extends Principal {
  readonly id: string;
  readonly address: string;
  readonly startedAt: number;
  readonly lastUsedAt: number;
  readonly expiresAt: number;
}

interface SessionState extends ShownSession {
  lastUsedAt: number;
}

const IDLE_TIMEOUT_MS = 30 * 60_000;
const MAX_AGE_MS = 12 * 3_600_000;
const INVITATION_TTL_MS = 60_000;
/**
 * Maximum number of sessions, and of invitations. There are few operators. The oldest entry is
 * dropped first.
 */
const MAX_SESSIONS = 1_000;

const createToken = (): string => randomBytes(32).toString("base64url");

export class Sessions {
  readonly #now: () => number;
  /** Open sessions by the hash of the cookie's token. */
  readonly #open = new BoundedMap<string, SessionState>(MAX_SESSIONS);
  readonly #invitations = new BoundedMap<string, { holder: Principal; until: number }>(
    MAX_SESSIONS,
  );

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Starts a session. Returns its token, which only this client may receive. */
  start(principal: Principal, address: string): { token: string; session: ShownSession } {
    const now = this.#now();
    const until = Math.min(now + MAX_AGE_MS, principal.expiresAt ?? Infinity);
    const id = randomBytes(6).toString("hex");
    const session = {
      ...principal,
      id,
      address,
      startedAt: now,
      lastUsedAt: now,
      expiresAt: until,
    };
    const secret = createToken();
    this.#open.set(digestKey(secret), session);
    return { token: secret, session };
  }

  /**
   * Returns the session of a token, or undefined if there is none or it has ended. Each call resets
   * the idle timeout.
   */
  find(secret: string): ShownSession | undefined {
    const hash = digestKey(secret);
    const session = this.#open.get(hash);
    if (!session) return undefined;
    if (!this.#isAlive(session)) {
      this.#open.delete(hash);
      return undefined;
    }
    session.lastUsedAt = this.#now();
    return session;
  }

  list(): ShownSession[] {
    return this.#open
      .entries()
      .map(([, session]) => session)
      .filter((session) => this.#isAlive(session));
  }

  /**
   * Ends the matching sessions and unredeemed invitations, which have no ID. Returns the number of
   * sessions that it ended.
   */
  end(which: (session: Principal & { readonly id?: string | undefined }) => boolean): number {
    let ended = 0;
    for (const [hash, { holder }] of this.#invitations.entries())
      if (which(holder)) this.#invitations.delete(hash);
    for (const [hash, session] of this.#open.entries())
      if (which(session)) {
        this.#open.delete(hash);
        ended++;
      }
    return ended;
  }

  /** Creates a one-time code that opens a session within 1 minute. */
  invite(principal: Principal): { code: string; expiresAt: number } {
    const secret = createToken();
    const until = this.#now() + INVITATION_TTL_MS;
    this.#invitations.set(digestKey(secret), { holder: principal, until });
    return { code: secret, expiresAt: until };
  }

  /** Returns the principal of a valid code. Each lookup invalidates the code. */
  redeem(secret: string): Principal | undefined {
    const hash = digestKey(secret);
    const found = this.#invitations.get(hash);
    this.#invitations.delete(hash);
    return found && found.until > this.#now() ? found.holder : undefined;
  }

  #isAlive({ lastUsedAt, expiresAt }: SessionState): boolean {
    const now = this.#now();
    return expiresAt > now && lastUsedAt + IDLE_TIMEOUT_MS > now;
  }
}

// Sessions of people who signed in. A refresh token is used once. Each refresh asks the identity
// provider again, so a person who was removed there gets no further access token.
import { randomBytes } from "node:crypto";
import {
  getFault,
  isAccessToken,
  type AccessTokens,
  type Context,
  type OidcClient,
} from "tollgate/plugin";
import type { SignedInPerson } from "./device-grants.ts";
import type { People, PersonData } from "./people.ts";
import type { Seal, Sealed, SealedRecords } from "./sealed-records.ts";

export interface SessionData {
  readonly keyId: string;
  /** Issuer URL of the identity provider. No other provider gets `providerToken`. */
  readonly issuer: string;
  /** Subject at the identity provider. */
  readonly subject: string;
  /** Number of the refresh token that is valid now. */
  readonly generation: number;
  readonly rotatedAt: number;
  /** Time at which the identity provider last confirmed the person. */
  readonly checkedAt: number;
  readonly providerToken: string;
  /** Time until which another request asks the identity provider. */
  readonly busyUntil?: number | undefined;
}
type Session = Sealed<SessionData>;

/** Response of the token endpoint. */
export interface IssuedTokens {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly email?: string;
}

export type RefreshProblem = "invalid_grant" | "temporarily_unavailable";

export interface SessionsOptions {
  readonly ctx: Pick<Context, "log" | "reportEvent">;
  readonly records: SealedRecords<SessionData>;
  readonly seal: Seal;
  readonly tokens: AccessTokens;
  readonly people: People;
  readonly oidc: Pick<OidcClient, "refresh">;
  /** Issuer URL of the identity provider. */
  readonly oidcIssuer: string;
  /** Issuer of the access tokens. */
  readonly issuer: string;
  readonly tokenTtlMs: number;
  readonly sessionTtlMs: number;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
}

const PREFIX = "tgr_";
const PURPOSE = "refresh token";
const MAX_TOKEN_LENGTH = 400;
/**
 * Time in which a refresh token is accepted again, because several processes of a client share it
 * and a response can be lost.
 */
const REUSE_GRACE_MS = 30_000;
/** Age up to which a confirmation of the identity provider is used again. */
const CONFIRMATION_MS = 30_000;
/** A refresh at the identity provider consists of up to three requests of 5 s each. */
const BUSY_MS = 20_000;
/** Clients wait for about 3.5 s. */
const MAX_WAIT_MS = 3_000;
const POLL_MS = 100;
const CLOCK_SKEW_MS = 60_000;

export class Sessions {
  readonly #of: SessionsOptions;

  constructor(of: SessionsOptions) {
    this.#of = of;
  }

  /** Starts a session. Throws the fault `forbidden` if the person has no access. */
  async start({ claims, refreshToken }: SignedInPerson): Promise<IssuedTokens> {
    const { people, records, now, oidcIssuer, sessionTtlMs } = this.#of;
    const person = await people.admit(claims);
    const id = `ses_${randomBytes(16).toString("hex")}`;
    // Without a token of the identity provider, it cannot be asked again.
    if (refreshToken === undefined) return this.#issue(person, id, undefined);
    await records.create(id, {
      key: person.keyId,
      data: {
        keyId: person.keyId,
        issuer: oidcIssuer,
        subject: String(claims["sub"]),
        generation: 1,
        rotatedAt: now(),
        checkedAt: now(),
        providerToken: refreshToken,
      },
      expiresAt: now() + sessionTtlMs,
    });
    return this.#issue(person, id, 1);
  }

  async refresh(token: string): Promise<IssuedTokens | RefreshProblem> {
    const opened = this.#openToken(token);
    if (!opened) return "invalid_grant";
    const until = performance.now() + MAX_WAIT_MS;
    while (performance.now() < until) {
      const session = await this.#of.records.find(opened.id);
      if (!session) return "invalid_grant";
      if (session.data.issuer !== this.#of.oidcIssuer) {
        const { keyId: key } = session.data;
        this.#of.ctx.log.info({ key }, "session of previous identity provider ended");
        return this.#end(session);
      }
      if (opened.generation !== session.data.generation)
        return this.#refreshAgain(session, opened.generation);
      const done = await this.#tryRefresh(session);
      if (done !== "again") return done;
      await this.#of.sleep(POLL_MS);
    }
    return "temporarily_unavailable";
  }

  /** Ends the session of a refresh token or access token. Unknown tokens are ignored. */
  async revoke(token: string): Promise<void> {
    const access = this.#openAccessToken(token);
    const id = access?.session ?? this.#openToken(token)?.id;
    const session = id === undefined ? undefined : await this.#of.records.find(id);
    if (session) await this.#end(session);
    else if (access)
      await this.#of.people.endSession(access.key, access.session, this.#lastExpiry());
  }

  /**
   * Answers a token that was used before. Several clients may send one token at the same time, and
   * all of them get the token that is valid now.
   */
  async #refreshAgain(
    session: Session,
    generation: number,
  ): Promise<IssuedTokens | RefreshProblem> {
    const { data, id } = session;
    if (!this.#isPredecessor(session, generation)) {
      this.#of.ctx.log.warn({ key: data.keyId }, "refresh token used twice");
      this.#of.ctx.reportEvent("refresh_token_reused", { key: data.keyId });
      return this.#end(session);
    }
    const person = await this.#findAdmitted(data.keyId);
    return person ? this.#issue(person, id, data.generation) : this.#end(session);
  }

  async #tryRefresh(session: Session): Promise<IssuedTokens | RefreshProblem | "again"> {
    const { records, people, oidc, ctx, now } = this.#of;
    const { keyId, subject, checkedAt, busyUntil = 0, providerToken } = session.data;
    const age = now() - checkedAt;
    if (age >= 0 && age < CONFIRMATION_MS) {
      const person = await this.#findAdmitted(keyId);
      return person ? this.#rotate(session, person, {}) : this.#end(session);
    }
    if (busyUntil > now()) return "again";
    // Providers replace their tokens too, so only one request at a time may use one.
    let busy = await records.replace(session, { ...session.data, busyUntil: now() + BUSY_MS });
    if (!busy) return "again";
    let { data } = busy;
    try {
      const refreshed = await oidc.refresh(providerToken);
      if (!refreshed) {
        ctx.log.info({ key: keyId }, "session ended at identity provider");
        return await this.#end(busy);
      }
      // The old token may be invalid now, so the new token is stored before anything else can fail.
      data = { ...data, providerToken: refreshed.refreshToken };
      const stored = await records.replace(busy, data);
      if (!stored) return "again";
      busy = stored;
      const person = await people.admit(await refreshed.readClaims(subject));
      return await this.#rotate(busy, person, { checkedAt: now(), busyUntil: undefined });
    } catch (error) {
      if (getFault(error)?.kind === "forbidden") return this.#end(busy);
      ctx.log.warn({ err: error, key: keyId }, "identity provider refresh failed");
      await records.replace(busy, { ...data, busyUntil: undefined });
      return "temporarily_unavailable";
    }
  }

  async #rotate(
    session: Session,
    person: PersonData,
    change: Partial<SessionData>,
  ): Promise<IssuedTokens | "again"> {
    const { data, id } = session;
    const { keyId } = person;
    const generation = data.generation + 1;
    // The ID of the key may come from a claim that changes, such as the email address.
    if (keyId !== data.keyId) await this.#of.people.endSession(data.keyId, id, this.#lastExpiry());
    const changed = { ...data, ...change, keyId, generation, rotatedAt: this.#of.now() };
    const saved = await this.#of.records.replace(session, changed);
    return saved ? this.#issue(person, id, generation) : "again";
  }

  /** Ends a session: its refresh tokens and its access tokens are rejected. */
  async #end({ id, data }: Session): Promise<"invalid_grant"> {
    await this.#of.people.endSession(data.keyId, id, this.#lastExpiry());
    await this.#of.records.delete(id);
    return "invalid_grant";
  }

  /** Returns whether the token was replaced by the current one a short time ago. */
  #isPredecessor({ data }: Session, generation: number): boolean {
    // The clock of the gateway that replaced it may be ahead.
    const age = Math.abs(this.#of.now() - data.rotatedAt);
    return generation === data.generation - 1 && age < REUSE_GRACE_MS;
  }

  async #findAdmitted(keyId: string): Promise<PersonData | undefined> {
    const { people } = this.#of;
    return (await people.isAdmitted(keyId)) ? people.find(keyId) : undefined;
  }

  #issue(person: PersonData, session: string, generation: number | undefined): IssuedTokens {
    const { tokens, seal, now, tokenTtlMs, issuer } = this.#of;
    const { keyId, subject, email, name, groups } = person;
    const token = (claimed: readonly string[]) =>
      tokens.create({
        key: keyId,
        session,
        expiresAt: now() + tokenTtlMs,
        claims: { iss: issuer, sub: subject, email, name, groups: claimed },
      });
    return {
      access_token: token(groups.slice(0, MAX_TOKEN_GROUPS)),
      token_type: "Bearer",
      expires_in: Math.floor(tokenTtlMs / 1_000),
      ...(generation !== undefined && {
        refresh_token: PREFIX + seal.seal(PURPOSE, JSON.stringify([session, generation])),
      }),
      ...(email !== undefined && { email }),
    };
  }

  #openToken(token: string): { readonly id: string; readonly generation: number } | undefined {
    if (!token.startsWith(PREFIX) || token.length > MAX_TOKEN_LENGTH) return undefined;
    const text = this.#of.seal.open(PURPOSE, token.slice(PREFIX.length));
    if (text === undefined) return undefined;
    const [id, generation] = JSON.parse(text) as [string, number];
    return { id, generation };
  }

  #openAccessToken(token: string): { readonly key: string; readonly session: string } | undefined {
    try {
      return isAccessToken(token) ? this.#of.tokens.open(token) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Returns the time from which no token of a session that ends now is accepted. */
  #lastExpiry(): number {
    return this.#of.now() + this.#of.tokenTtlMs + CLOCK_SKEW_MS;
  }
}

/** Groups in an access token, which is a header of each request. */
const MAX_TOKEN_GROUPS = 20;

// Access tokens: short-lived tokens that a frontend issues to a person who signed in. A token
// refers to the person's key, so its permissions, limits, and revocation are those of the key. All
// gateways on the store accept it.
import { createHmac, timingSafeEqual } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { createFault } from "../../model/error.ts";
import type { Opt } from "../../model/values.ts";
import type { Context } from "../context.ts";
import type { KeyRecord } from "../store/account.ts";

/** Content of an access token. */
export interface AccessToken {
  /** ID of the person's key. */
  readonly key: string;
  /** ID of the session, which ends when the person signs out. */
  readonly session: string;
  /** Time from which the token is rejected, in Unix milliseconds. */
  readonly expiresAt: number;
  /** Claims for the client, such as `sub`, `email`, and `groups`. The gateway does not read them. */
  readonly claims?: Opt<{ readonly [name: string]: string | readonly string[] | undefined }>;
}

/** The first part of every token: the header {"alg":"HS256","typ":"tollgate+jwt"}. */
const HEADER = Buffer.from('{"alg":"HS256","typ":"tollgate+jwt"}').toString("base64url");
/** Maximum length of a token in characters. All headers of a request must fit into 16 KiB. */
const MAX_LENGTH = 8_192;
const MAX_CACHED = 10_000;
/** Accepted difference between the clocks of two gateways on the store. */
const CLOCK_SKEW_MS = 30_000;

/** Whether a credential has the form of an access token. Its signature may be invalid. */
export const isAccessToken = (credential: string): boolean => credential.startsWith(`${HEADER}.`);

interface Payload {
  readonly key: string;
  readonly sid: string;
  readonly iat: number;
  readonly exp: number;
}

/**
 * Issues and checks access tokens. Create one instance in `setup`.
 *
 *     const tokens = new AccessTokens(ctx);
 *     const token = tokens.create({ key: "gateway:ann", session, expiresAt: Date.now() + 3_600_000 });
 */
export class AccessTokens {
  readonly #secret: Uint8Array;
  readonly #keySecret: Uint8Array;
  readonly #now: () => number;
  /** Tokens whose signature was checked. */
  readonly #opened = new BoundedMap<string, Payload>(MAX_CACHED);

  /** The secrets are those of the fleet. `now` returns the time, like `Date.now`. */
  constructor(ctx: Pick<Context, "deriveSecret">, now: () => number = wallClock) {
    this.#secret = ctx.deriveSecret("access tokens");
    this.#keySecret = ctx.deriveSecret("keys of access tokens");
    this.#now = now;
  }

  /**
   * Returns the digest of the key that tokens for the ID refer to. Write the key with
   * `ctx.keys.write` before you issue a token. No secret has this digest, so the key can be used
   * only with access tokens.
   */
  keyDigest(key: string): string {
    return createHmac("sha256", this.#keySecret).update(key).digest("hex");
  }

  /** Returns a signed token. Throws if the claims make it too long for a header. */
  create({ key, session, expiresAt, claims }: AccessToken): string {
    const payload = {
      ...claims,
      key,
      sid: session,
      iat: Math.floor(this.#now() / 1_000),
      exp: Math.floor(expiresAt / 1_000),
    };
    const text = `${HEADER}.${Buffer.from(JSON.stringify(payload)).toString("base64url")}`;
    const token = `${text}.${this.#sign(text)}`;
    if (token.length > MAX_LENGTH)
      throw createFault("internal", "The claims are too long for an access token.");
    return token;
  }

  /**
   * Returns the content of a token that `isAccessToken` recognizes. Throws the fault for the client
   * if the token is forged or has expired. It does not check the key: see `check`.
   */
  open(token: string): Pick<AccessToken, "key" | "session" | "expiresAt"> {
    const { key, sid, iat, exp } = this.#opened.get(token) ?? this.#verify(token);
    const now = this.#now();
    if (exp * 1_000 + CLOCK_SKEW_MS <= now)
      reject("The access token has expired.", { code: "token_expired" });
    if (iat * 1_000 - CLOCK_SKEW_MS > now) reject("The access token is not valid yet.");
    return { key, session: sid, expiresAt: exp * 1_000 };
  }

  /**
   * Returns the key, if it exists and the session has not ended. Throws the fault for the client
   * otherwise. `found` is the result of `ctx.keys.findByDigest`.
   */
  check(session: string, found: KeyRecord | undefined): KeyRecord {
    if (!found || found.endedSessions?.some(({ id }) => id === session))
      return reject("Access was revoked, or the session has ended.", { code: "session_ended" });
    return found;
  }

  #verify(token: string): Payload {
    const end = token.lastIndexOf(".");
    const text = token.slice(0, end);
    const given = Buffer.from(token.slice(end + 1));
    const own = Buffer.from(this.#sign(text));
    if (token.length > MAX_LENGTH || given.length !== own.length || !timingSafeEqual(given, own))
      return reject("The signature of the access token is invalid.");
    const payload = JSON.parse(
      Buffer.from(text.slice(HEADER.length + 1), "base64url").toString(),
    ) as Payload;
    this.#opened.set(token, payload);
    return payload;
  }

  #sign(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("base64url");
  }
}

function reject(why: string, more = { code: "invalid_token" }): never {
  throw createFault("unauthenticated", `${why} Sign in again.`, more);
}

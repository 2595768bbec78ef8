// Identifies the principal of a request to the admin listener: the holder of a token from
// gateway.yaml or from the store, or of a session. Client API keys are not accepted.
import type { IncomingMessage } from "node:http";
import type { AdminConfig, AdminToken } from "../../config/gateway-config.ts";
import { digestKey, equalDigests, parseKey } from "../../lib/api-key.ts";
import { fail, getFault } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { CommandPrincipal, Principal } from "./principal.ts";
import { readBearerToken } from "../http/bearer.ts";
import { withTimeout } from "../ledger/queued-command.ts";
import { assertSameOrigin, readSessionToken } from "./session-cookie.ts";
import { Sessions } from "./sessions.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { networkPrefixOf } from "../../lib/net/network-prefix.ts";

/** Maximum token length, in characters. Longer than any valid token. */
const MAX_TOKEN_LENGTH = 1_024;
const TIMEOUT_MS = 5_000;

export interface AdminPrincipalsOptions {
  /** Returns the admin section of the current gateway.yaml. */
  readonly adminConfig: () => AdminConfig | undefined;
  /** Finds a record in the store by the digest of its secret. */
  readonly findRecord: (digest: string) => Promise<KeyRecord | undefined>;
  readonly now: () => number;
}

export class AdminPrincipals {
  readonly sessions: Sessions;
  readonly #options: AdminPrincipalsOptions;
  readonly #throttle: LoginThrottle;
  /** Lookups by request, because several routes of the listener identify the same request. */
  readonly #byRequest = new WeakMap<IncomingMessage, Promise<CommandPrincipal>>();

  constructor(options: AdminPrincipalsOptions) {
    this.#options = options;
    this.sessions = new Sessions(options.now);
    this.#throttle = new LoginThrottle(options.now);
  }

  /** Returns the principal of a request. Throws the error that the client receives. */
  identify(req: IncomingMessage): Promise<CommandPrincipal> {
    const known = this.#byRequest.get(req);
    if (known) return known;
    const lookup = this.#identify(req);
    this.#byRequest.set(req, lookup);
    return lookup;
  }

  /** Identifies a command at the control socket by its Authorization header. */
  async identifyToken(authorization: string): Promise<CommandPrincipal> {
    return {
      ...(await this.#identifyToken(readBearerToken({ authorization }) ?? "", "")),
      channel: "socket",
    };
  }

  /**
   * Identifies the credential of a sign-in: a one-time code from `tollgate console`, or a token.
   */
  async login(
    req: IncomingMessage,
    credentials: { readonly code?: string; readonly token?: string },
  ): Promise<Principal> {
    const { code, token } = credentials;
    if (token !== undefined) return this.#identifyToken(token, this.clientAddressOf(req));
    this.#throttle.assertAllowed(this.clientAddressOf(req));
    const principal = this.sessions.redeem(code ?? "");
    if (principal) return principal;
    this.#throttle.recordFailure(this.clientAddressOf(req), code ?? "");
    return fail("unauthenticated", "This login link was already used or has expired.", {
      code: "invalid_code",
    });
  }

  /** Runs a login that an identity provider vouches for. A failed login counts as a wrong code. */
  async identifyByProvider(
    req: IncomingMessage,
    secret: string,
    login: () => Promise<Principal>,
  ): Promise<Principal> {
    this.#throttle.assertAllowed(this.clientAddressOf(req));
    try {
      return await login();
    } catch (error) {
      if (getFault(error)?.kind === "unauthenticated")
        this.#throttle.recordFailure(this.clientAddressOf(req), secret);
      throw error;
    }
  }

  /**
   * Returns the client's address. Behind a proxy, the address is the last entry of
   * `x-forwarded-for`.
   */
  clientAddressOf(req: IncomingMessage): string {
    const forwarded = this.#options.adminConfig()?.behindProxy
      ? req.headers["x-forwarded-for"]
      : undefined;
    const last = [forwarded].flat().join().split(",").at(-1)?.trim();
    return last || (req.socket.remoteAddress ?? "");
  }

  isSecure(req: IncomingMessage): boolean {
    if ("encrypted" in req.socket) return true;
    if (!this.#options.adminConfig()?.behindProxy) return false;
    return (req.headers["x-forwarded-proto"] ?? "https") === "https";
  }

  async #identify(req: IncomingMessage): Promise<CommandPrincipal> {
    const address = this.clientAddressOf(req);
    const secret = readBearerToken(req.headers);
    if (secret !== undefined) {
      return { ...(await this.#identifyToken(secret, address)), channel: "token", address };
    }
    const secure = this.isSecure(req);
    const token = readSessionToken(req, secure);
    const session = token === undefined ? undefined : this.sessions.find(token);
    if (!session || !this.#isStillGranted(session))
      return fail(
        "unauthenticated",
        token === undefined
          ? "Send an admin token as Authorization: Bearer <token>."
          : "Your session has expired. Sign in again.",
        { code: token === undefined ? "invalid_admin_token" : "session_over" },
      );
    assertSameOrigin(req, secure);
    const { name, role, account, credentialId, group, expiresAt } = session;
    return { name, role, account, credentialId, group, expiresAt, channel: "session", address };
  }

  async #identifyToken(secret: string, address: string): Promise<Principal> {
    this.#throttle.assertAllowed(address);
    const found = secret.length > MAX_TOKEN_LENGTH ? undefined : await this.#findByToken(secret);
    if (found) return found;
    this.#throttle.recordFailure(address, secret);
    return fail("unauthenticated", "Invalid or expired admin token.", {
      code: "invalid_admin_token",
    });
  }

  async #findByToken(secret: string): Promise<Principal | undefined> {
    const presented = digestKey(secret);
    // Every token is compared, so that response times reveal nothing.
    const [inFile] = this.#fileTokens().filter(({ token }) =>
      equalDigests(digestKey(token), presented),
    );
    if (inFile)
      return {
        name: `admin:${inFile.name}`,
        role: inFile.role,
        credentialId: fileCredentialId(inFile),
      };
    if (!parseKey(secret, "ta")) return undefined;
    const record = await withStoreTimeout(this.#options.findRecord(presented));
    return record && equalDigests(record.digest, presented)
      ? toPrincipal(record, this.#options.now())
      : undefined;
  }

  /**
   * Whether gateway.yaml still grants the rights that the session started with: the token with the
   * same value and role, or the identity provider's group with the same role and account.
   */
  #isStillGranted({ credentialId, role, group, account }: Principal): boolean {
    if (credentialId.startsWith("oidc:")) {
      const oidc = this.#options.adminConfig()?.oidc;
      return (
        oidc !== undefined &&
        credentialId.startsWith(oidcCredentialId(oidc.issuer, "")) &&
        oidc.roles.some(
          (each) => each.group === group && each.role === role && each.account === account,
        )
      );
    }
    if (!credentialId.startsWith("file:")) return true;
    return this.#fileTokens().some(
      (each) => fileCredentialId(each) === credentialId && each.role === role,
    );
  }

  #fileTokens() {
    return this.#options.adminConfig()?.tokens ?? [];
  }
}

const withStoreTimeout = <T>(work: Promise<T>): Promise<T> => withTimeout(TIMEOUT_MS, work);

/**
 * Credential ID of a token in gateway.yaml. A token with a new value is a new credential, even
 * under the same name.
 */
const fileCredentialId = ({ name, token }: AdminToken): string =>
  `file:${name}#${digestKey(token).slice(0, 8)}`;
/**
 * Credential ID of a user of the identity provider. Neither an issuer nor a subject contains a
 * space.
 */
export const oidcCredentialId = (issuer: string, subject: string): string =>
  `oidc:${issuer} ${subject}`;
export const tokenCredentialId = (id: string): string => `token:${id}`;

/** Returns undefined if the record is a client key, or if the token expired or was revoked. */
function toPrincipal(record: KeyRecord, now: number): Principal | undefined {
  const { id, name, admin, account, expires, revoked } = record;
  const hasPassed = (at: number | undefined) => at !== undefined && at <= now;
  if (admin === undefined || hasPassed(expires) || hasPassed(revoked)) return undefined;
  return {
    name: `admin:${name ?? id}`,
    role: admin,
    account,
    credentialId: tokenCredentialId(id),
    expiresAt: expires,
  };
}

// Limits wrong credentials at the admin listener. After 10 different wrong credentials per minute
// from one address, all credentials from that address are rejected until the minute ends. A
// repeated credential counts once, so that a program with an expired token does not block other
// clients at its address.

const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;
const MAX_SECRET_LENGTH = 1_024;

class LoginThrottle {
  readonly #now: () => number;
  readonly #failures = new BoundedMap<string, { words: Set<string>; until: number }>(MAX_ADDRESSES);

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Throws if the address is blocked. Called before a credential is checked. Valid credentials are
   * rejected too, because an attacker could otherwise continue to guess.
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

// Whose request it is at the admin listener: that of the holder of a token of gateway.yaml or of the store, or of a session. Keys for models open
// nothing here.
import type { IncomingMessage } from "node:http";
import type { AdminConfig, AdminToken } from "../../config/types.ts";
import { digest, equal, parse } from "../../lib/key.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Giver, Principal } from "../control/giver.ts";
import { bearer } from "../http/bearer.ts";
import { within } from "../services/queued-command.ts";
import { mustBeOurPage, sessionWord } from "./cookie.ts";
import { Sessions } from "./sessions.ts";
import { Tries } from "./tries.ts";

/** Longer than any token that is taken. */
const LONGEST = 1_024;
const PATIENCE_MS = 5_000;

export interface HoldersOf {
  /** Of the current gateway.yaml. */
  readonly admin: () => AdminConfig | undefined;
  /** From the store, by its digest. */
  readonly record: (digest: string) => Promise<KeyRecord | undefined>;
  readonly now: () => number;
}

export class Holders {
  readonly sessions: Sessions;
  readonly #of: HoldersOf;
  readonly #tries: Tries;
  /** What was looked up of a request; the listener's routes ask once more. */
  readonly #known = new WeakMap<IncomingMessage, Promise<Giver>>();

  constructor(of: HoldersOf) {
    this.#of = of;
    this.sessions = new Sessions(of.now);
    this.#tries = new Tries(of.now);
  }

  /** Fails with what its client is to be told. */
  giver(req: IncomingMessage): Promise<Giver> {
    const known = this.#known.get(req);
    if (known) return known;
    const asked = this.#giver(req);
    this.#known.set(req, asked);
    return asked;
  }

  /** At the control socket, with an Authorization header. */
  async presented(authorization: string): Promise<Giver> {
    return { ...(await this.#token(bearer({ authorization }) ?? "", "")), door: "socket" };
  }

  /** By what a login brings: a word of `tollgate console`, or a token. */
  async login(
    req: IncomingMessage,
    said: { readonly word?: string; readonly token?: string },
  ): Promise<Principal> {
    const { word, token } = said;
    if (token !== undefined) return this.#token(token, this.address(req));
    this.#tries.check(this.address(req));
    const holder = this.sessions.redeem(word ?? "");
    if (holder) return holder;
    this.#tries.wrong(this.address(req), word ?? "");
    return fail("unauthenticated", "This link was used already, or its minute is over.", {
      code: "invalid_word",
    });
  }

  /** A login that another one vouches for: what is wrong counts as a wrong word does. */
  async vouched(
    req: IncomingMessage,
    said: string,
    login: () => Promise<Principal>,
  ): Promise<Principal> {
    this.#tries.check(this.address(req));
    try {
      return await login();
    } catch (error) {
      if (faultOf(error)?.kind === "unauthenticated") this.#tries.wrong(this.address(req), said);
      throw error;
    }
  }

  /** Behind a proxy, what the proxy says of its client. */
  address(req: IncomingMessage): string {
    const forwarded = this.#of.admin()?.behindProxy ? req.headers["x-forwarded-for"] : undefined;
    const last = [forwarded].flat().join().split(",").at(-1)?.trim();
    return last || (req.socket.remoteAddress ?? "");
  }

  isSecure(req: IncomingMessage): boolean {
    if ("encrypted" in req.socket) return true;
    if (!this.#of.admin()?.behindProxy) return false;
    return (req.headers["x-forwarded-proto"] ?? "https") === "https";
  }

  async #giver(req: IncomingMessage): Promise<Giver> {
    const address = this.address(req);
    const secret = bearer(req.headers);
    if (secret !== undefined) {
      return { ...(await this.#token(secret, address)), door: "token", address };
    }
    const secure = this.isSecure(req);
    const word = sessionWord(req, secure);
    const session = word === undefined ? undefined : this.sessions.find(word);
    if (!session || !this.#stands(session))
      return fail(
        "unauthenticated",
        word === undefined
          ? "Send an admin token as Authorization: Bearer <token>."
          : "This session is over. Sign in again.",
        { code: word === undefined ? "invalid_admin_token" : "session_over" },
      );
    mustBeOurPage(req, secure);
    const { name, role, within, by, group, until } = session;
    return { name, role, within, by, group, until, door: "session", address };
  }

  async #token(secret: string, address: string): Promise<Principal> {
    this.#tries.check(address);
    const found = secret.length > LONGEST ? undefined : await this.#holder(secret);
    if (found) return found;
    this.#tries.wrong(address, secret);
    return fail("unauthenticated", "This is no admin token, or it has ended.", {
      code: "invalid_admin_token",
    });
  }

  async #holder(secret: string): Promise<Principal | undefined> {
    const presented = digest(secret);
    // Every token is compared, so that the time tells nothing.
    const [inFile] = this.#inFile().filter(({ token }) => equal(digest(token), presented));
    if (inFile) return { name: `admin:${inFile.name}`, role: inFile.role, by: byFile(inFile) };
    if (!parse(secret, "ta")) return undefined;
    const record = await withinPatience(this.#of.record(presented));
    return record && equal(record.digest, presented) ? holderOf(record, this.#of.now()) : undefined;
  }

  /**
   * Whether gateway.yaml still grants what the session was opened with: the token with the same value and role, or the identity
   * provider's group with the same role and account.
   */
  #stands({ by, role, group, within }: Principal): boolean {
    if (by.startsWith("oidc:")) {
      const oidc = this.#of.admin()?.oidc;
      return (
        oidc !== undefined &&
        by.startsWith(byIssuer(oidc.issuer, "")) &&
        oidc.roles.some(
          (each) => each.group === group && each.role === role && each.account === within,
        )
      );
    }
    if (!by.startsWith("file:")) return true;
    return this.#inFile().some((each) => byFile(each) === by && each.role === role);
  }

  #inFile() {
    return this.#of.admin()?.tokens ?? [];
  }
}

const withinPatience = <T>(work: Promise<T>): Promise<T> => within(PATIENCE_MS, work);

/** A token whose value was replaced is another credential, even under its old name. */
const byFile = ({ name, token }: AdminToken): string => `file:${name}#${digest(token).slice(0, 8)}`;
/** Neither an issuer nor a subject contains a space. */
export const byIssuer = (issuer: string, subject: string): string => `oidc:${issuer} ${subject}`;
export const byToken = (id: string): string => `token:${id}`;

/** Undefined: it is a key, or has ended. */
function holderOf(record: KeyRecord, now: number): Principal | undefined {
  const { id, name, admin, account, expires, revoked } = record;
  const over = (at: number | undefined) => at !== undefined && at <= now;
  if (admin === undefined || over(expires) || over(revoked)) return undefined;
  return {
    name: `admin:${name ?? id}`,
    role: admin,
    within: account,
    by: byToken(id),
    until: expires,
  };
}

import type { Privacy } from "../model/facts.ts";
import type { HeadersOut, Json, Opt } from "../model/values.ts";
import type { Limit } from "./store/limit.ts";

/**
 * A client and its permissions. The host enforces them, so every authentication plugin gets all of
 * these checks.
 */
export interface Identity {
  /** Stable ID of the client, which ledger rows refer to. */
  id: string;
  /** Display name. */
  name?: Opt<string>;
  /**
   * Models that the client may use, as patterns in which each `*` matches any text. Default: all.
   */
  models?: Opt<readonly string[]>;
  /** Names of the frontends that the client may use. Default: all. */
  frontends?: Opt<readonly string[]>;
  /**
   * Tools that the client may call, as patterns `<server>/<tool>` in which each `*` matches any
   * text. Default: all.
   */
  tools?: Opt<readonly string[]>;
  /** Minimum privacy of the client's requests. Default: `off`. */
  privacy?: Opt<Privacy>;
  /**
   * Limits of the client. The host counts them for each call, in the same transaction as the ledger
   * row. No other middleware is needed for this.
   */
  limits?: Opt<readonly Limit[]>;
  /** Labels for the client's ledger rows and request records. */
  labels?: Opt<HeadersOut>;
  /**
   * Account that the client is charged to: its name under `accounts:` in gateway.yaml, or the ID
   * that `tollgate accounts create` returned.
   *
   * The host adds the limits of that account and of all its parent accounts, and narrows the other
   * fields. Models, frontends, and tools must be allowed by all these accounts, the strictest privacy
   * applies, and labels are combined. `x.identity` is the result. If the account does not exist or is closed,
   * each request is rejected with a 403.
   */
  account?: Opt<string>;
  /**
   * IDs of the account and all its parent accounts, the outermost first. The host sets it in
   * `x.identity`. Unset if the client has no account.
   */
  accountPath?: Opt<readonly string[]>;
  /**
   * SHA-256 of the client's API key, in hexadecimal. Client secrets refer to the key by it. Unset
   * if the client is identified in another way.
   */
  digest?: Opt<string>;
  /**
   * Claims of the access token that identified the client. Unset if the client was identified in
   * another way, such as by an API key.
   */
  accessToken?: Opt<{
    /** Issuer of the token. */
    readonly issuer: string;
    /** Subject of the token. */
    readonly subject: string;
    /** Audiences of the token. One of them was accepted by the middleware. */
    readonly audience: readonly string[];
    /** Scopes of the token. */
    readonly scopes: readonly string[];
    /** SHA-256 of the token, in hexadecimal. */
    readonly digest: string;
  }>;
  /**
   * The client secret that the client presented in place of its key. The host rejects an expired
   * secret, except on a connection that is already open. It also rejects the secret on routes
   * without `acceptsClientSecrets`.
   */
  clientSecret?: Opt<ClientSecret>;
}

/** A client secret that identifies a client. */
export interface ClientSecret {
  /** Name of the frontend that created it. No other frontend accepts it. */
  readonly frontend: string;
  /** Time from which it opens no connection, in Unix milliseconds. */
  readonly expiresAt: number;
  /** Data of the frontend, such as the settings of a session. */
  readonly data: Json;
}

// Accounts of the store. An account is shared by several keys: an organization, a team, a project,
// or a person. Operators create these accounts with commands. The accounts in gateway.yaml are not
// stored here.
import type { Privacy } from "../../model/facts.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { Limit } from "./limit.ts";
import type { Identity } from "../identity.ts";
import type { Role } from "../role.ts";

/** A complete account, as a store keeps it. An unset member restricts nothing. */
export interface AccountRecord {
  /** ID of the account. Keys and ledger rows refer to it, so it never changes. */
  id: string;
  /** ID of the parent account, which may be an account in gateway.yaml. */
  parent?: Opt<string>;
  /** Display name. */
  name?: Opt<string>;
  /** Limits that all keys of the account, and all accounts nested under it, share. */
  limits?: Opt<readonly Limit[]>;
  /**
   * Defaults for new keys in the account, and in nested accounts without defaults. Existing keys do
   * not change.
   */
  defaults?: Opt<KeyDefaults>;
  /**
   * Models that keys of the account may use, as patterns in which each `*` matches any text.
   * Default: all.
   */
  models?: Opt<readonly string[]>;
  /** Names of the frontends that keys of the account may use. Default: all. */
  frontends?: Opt<readonly string[]>;
  /**
   * Tools that keys of the account may call, as patterns `<server>/<tool>` in which each `*` matches
   * any text. Default: all.
   */
  tools?: Opt<readonly string[]>;
  /** Minimum privacy of requests of the account. Default: `off`. */
  privacy?: Opt<Privacy>;
  /** Labels for ledger rows of the account's keys. */
  labels?: Opt<HeadersOut>;
  /** Whether clients can see the remaining amounts of the account's limits. Default: `numbers`. */
  discloseLimits?: Opt<LimitDisclosure>;
  /** Creation time, in Unix milliseconds. */
  created: number;
  /**
   * Time at which the account was closed, in Unix milliseconds. From that time on, the keys of the
   * account and of all nested accounts are rejected.
   */
  closedAt?: Opt<number>;
  /** Version of the record: 1 for a new account, increased by 1 with every change. */
  version: number;
}

/** Defaults for new keys of an account. */
export interface KeyDefaults {
  /** Default limits. A limit applies if the key is created without a limit of the same unit. */
  limits: readonly KeyLimit[];
}

/** A limit of a key, without its scope, which the host sets. */
export type KeyLimit = Omit<Limit, "scope">;

/**
 * Information about the account's limits that clients with a key of the account receive. `full`
 * (default): the limit, its remaining amount, and its reset time, in refusals, headers, and
 * reports. `hidden`: only the rejection and the retry time.
 */
export type LimitDisclosure = "full" | "hidden";

/** The stored form of a key: the digest of its secret, and the identity that the secret proves. */
export interface KeyRecord extends Identity {
  /** SHA-256 of the secret, in hex. */
  digest: string;
  /** Creation time, in Unix milliseconds. */
  created: number;
  /** Time from which the key is rejected, in Unix milliseconds. Default: never. */
  expires?: Opt<number>;
  /** Time at which the key was revoked, in Unix milliseconds. Unset if it was not. */
  revoked?: Opt<number>;
  /**
   * Version of the record, increased by 1 with every change. Unset if the key was never changed.
   */
  version?: Opt<number>;
  /**
   * Sessions of a person who signed in that ended before their access tokens expire. Their tokens
   * are rejected. Unset for a key with a secret.
   */
  endedSessions?: Opt<readonly EndedSession[]>;
  /**
   * Role of an admin token on the admin listener. Unset for a key for models. An admin token cannot
   * be used as a key for models. Stores keep this member like all others.
   */
  admin?: Opt<Role>;
}

/** A session that ended before its last access token expires. */
export interface EndedSession {
  /** ID of the session. */
  readonly id: string;
  /** Time at which its last access token expires, in Unix milliseconds. */
  readonly until: number;
}

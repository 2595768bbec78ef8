import type { Opt } from "../../model/values.ts";
import type { Identity } from "../identity.ts";
import type { Role } from "../role.ts";

/**
 * A key as the store keeps it: the digest of its secret, and the identity that the secret proves.
 */
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
   * Role of an admin token on the admin listener. Unset for a key for models. An admin token is
   * never a key for models, so the host finds no client with it. Stores keep this member like every
   * other one.
   */
  admin?: Opt<Role>;
}

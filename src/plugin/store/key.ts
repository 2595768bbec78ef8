import type { Opt } from "../../model/values.ts";
import type { Identity } from "../identity.ts";
import type { Role } from "../role.ts";

/** A key as the store keeps it: the digest of its secret, and the identity that it proves. */
export interface KeyRecord extends Identity {
  /** SHA-256 of the secret, in hex. */
  digest: string;
  /** Creation time, in Unix milliseconds. */
  created: number;
  /** Time from which the key is rejected, in Unix milliseconds. Default: never. */
  expires?: Opt<number>;
  /** Time at which the key was revoked, in Unix milliseconds. Unset if it was not. */
  revoked?: Opt<number>;
  /** One more with every change; absent: it was never changed. */
  version?: Opt<number>;
  /**
   * What its holder may do on the admin listener, as an admin token. Absent: it is a key, for models. A token is never a key: the host
   * finds no client by it. A store keeps it like every other member.
   */
  admin?: Opt<Role>;
}

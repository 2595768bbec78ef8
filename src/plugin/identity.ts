import type { Privacy } from "../model/facts.ts";
import type { HeadersOut, Opt } from "../model/values.ts";
import type { Limit } from "./store/limit.ts";

/** What a client may do: data that the host enforces, so that every auth plugin gets all of it. */
export interface Identity {
  /** Stable ID of the client, which ledger rows refer to. */
  id: string;
  /** Display name. */
  name?: Opt<string>;
  /** Patterns, in which each `*` stands for any text. Default: all. */
  models?: Opt<readonly string[]>;
  /** Names of the frontends that the client may use. Default: all. */
  frontends?: Opt<readonly string[]>;
  /** Minimum privacy of the client's requests. Default: `off`. */
  privacy?: Opt<Privacy>;
  /** Counted by the host for each call, in one step with its row, whichever middleware is mounted. */
  limits?: Opt<readonly Limit[]>;
  /** Labels for the client's ledger rows and request records. */
  labels?: Opt<HeadersOut>;
  /**
   * The account that it draws on, by its name under `accounts:` in gateway.yaml or as `tollgate accounts create` gave it. The host
   * adds the limits of that account and of all accounts above it, and narrows the rest: models and frontends are those that all of
   * them allow, privacy is the strictest, labels add up. `x.identity` is what comes of it. A name that is not there, or whose account
   * has ended, is a 403 for each of its requests.
   */
  account?: Opt<string>;
}

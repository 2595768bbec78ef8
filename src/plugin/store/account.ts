// What several keys share: an organisation, a team in it, a project, a person. One that an operator made with a command is the store's;
// those that gateway.yaml has are not here.
import type { Privacy } from "../../model/facts.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { Limit } from "./limit.ts";

/** An account as a store keeps it, whole. What is absent restricts nothing. */
export interface AccountRecord {
  /** What keys name, for good: rows of the ledger say it too. */
  id: string;
  /** The account that it stands in, which may be one of gateway.yaml. */
  parent?: Opt<string>;
  /** What people call it. */
  name?: Opt<string>;
  /** What all of its keys, and all accounts in it, may use together. */
  limits?: Opt<readonly Limit[]>;
  /** What a key has that is made in it, or in an account in it which says nothing of that. A key that is there already stays as it is. */
  defaults?: Opt<KeyDefaults>;
  /** Patterns, in which each `*` stands for any text. */
  models?: Opt<readonly string[]>;
  /** Names of the frontends that keys of the account may use. Default: all. */
  frontends?: Opt<readonly string[]>;
  /** Minimum privacy of requests of the account. Default: `off`. */
  privacy?: Opt<Privacy>;
  /** Labels for ledger rows of the account's keys. */
  labels?: Opt<HeadersOut>;
  /** Whether clients can see what is left of the account's limits. Default: `numbers`. */
  discloseLimits?: Opt<LimitDisclosure>;
  /** Unix milliseconds. */
  created: number;
  /** From then on its keys, and those of all accounts in it, are refused. */
  closedAt?: Opt<number>;
  /** 1 for one that is new, and one more with every change. */
  version: number;
}

/** Of new keys. */
export interface KeyDefaults {
  /** Each where the key is made without a limit of that unit. */
  limits: readonly KeyLimit[];
}

/** A limit of a key: the host says whose it is. */
export type KeyLimit = Omit<Limit, "scope">;

/**
 * What clients whose keys draw on the account are told of its own limits. numbers, by default: which limit, what is left of it and when
 * it is back, in refusals, headers and reports. nothing: that a request is refused, and when to come again.
 */
export type LimitDisclosure = "full" | "hidden";

// Ledger entries, pages of entries, and totals.
import type { ForwardingMode, Privacy } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { CallState } from "../call.ts";

/** The client's request, where it differs from the call. */
export interface ClientRequestInfo {
  /** Model name, as the client wrote it. */
  model: string;
  /** Name of the frontend in gateway.yaml. */
  frontend: string;
  /** ID of the protocol that the client spoke. */
  protocol: string;
  /** Whether bytes were forwarded unchanged or translated. */
  mode: ForwardingMode;
  /** Whether the client requested a stream. */
  stream: boolean;
  /** Basis of the data policy that applied to the call. */
  policyBasis?: Opt<string>;
  /** Keyed hash of the arguments. Set for calls that are not calls of models. */
  argumentsHash?: Opt<string>;
}

/**
 * Part of a bill. It is used if the call was billed at the price of another model or tier, or at
 * several prices.
 */
export interface BillPart {
  /** Model that was billed, as the provider names it. */
  model: string;
  /** Service tier that was billed. */
  tier?: Opt<string>;
  /** Units that were billed at this price. */
  usage: Usage;
  /** Hash of the price row; null if no price is known. */
  price: string | null;
  /** Cost in billionths of a US dollar; null if no price is known. */
  costNano: bigint | null;
}

/**
 * Target of a call: the mounted provider, the provider's name of the model, the protocol, and the
 * name of the credential.
 */
export interface CallTarget {
  /** Name of the provider in gateway.yaml. */
  provider: string;
  /** The provider's name of the model. */
  model: string;
  /** ID of the provider's protocol; null for a native endpoint. */
  protocol: string | null;
  /** Name of the credential. */
  credential: string;
}

/**
 * Time from the start of a call to the headers, to the first token, and to the end, in
 * milliseconds.
 */
export type CallDurations = Opt<{ headers?: Opt<number>; firstToken?: Opt<number>; total: number }>;

/**
 * One row of the ledger. A `settle` row with the outcome `recovered` was written by recovery, for a
 * call whose owner ended before it.
 */
export interface LedgerEntry {
  /** Position in the ledger. Later rows have higher numbers. */
  seq: number;
  /** Whether the row reserves budget, settles a call, or corrects its cost. */
  kind: "reserve" | "settle" | "adjust";
  /** ID of the call. */
  attempt: string;
  /** ID of the request that the call belongs to. */
  request: string;
  /** Time at which the row was written, in Unix milliseconds. */
  at: number;
  /** ID of the key. */
  key: string;
  /** Provider, model, protocol, and credential of the call. */
  target: CallTarget;
  /** Units that the call used. Empty for a reserve. */
  usage: Usage;
  /**
   * Cost in billionths of a US dollar; null if it is not known. For an adjustment, the difference.
   */
  costNano: bigint | null;
  /** Certainty of the cost; `open` until the call is settled. */
  state: CallState | "open";
  /**
   * How the call ended: `ok`, an error kind, `recovered`, `abandoned`, or `adjusted`. `open` for a
   * reserve.
   */
  outcome: string;
  /** The provider's ID of the response. */
  upstreamId?: string;
  /** Labels of the key, its accounts, and hooks. */
  labels: HeadersOut;
  /**
   * Path of the account when the call was reserved. Moving the account later does not change it.
   */
  account?: Opt<string>;
  /** Position of the call within its request, from 1. */
  n?: Opt<number>;
  /** Privacy of the request. */
  privacy?: Opt<Privacy>;
  /** Hash of the price row; null if no price is known. */
  price?: Opt<string | null>;
  /** Reserved amount in billionths of a US dollar; null if no price is known. */
  holdNano?: Opt<bigint | null>;
  /** Cost that the provider reported, in billionths of a US dollar. */
  upstreamCostNano?: Opt<bigint>;
  /** Parts of the bill, if it was billed at several prices. */
  parts?: Opt<readonly BillPart[]>;
  /** Request of the client. */
  clientRequest?: Opt<ClientRequestInfo>;
  /** Reason why the response ended. */
  finish?: Opt<string>;
  /** Durations of the call. */
  ms?: CallDurations;
  /** Reason for an adjustment, as the operator gave it. */
  reason?: Opt<string>;
  /** Name of the actor that made an adjustment, such as `operator`. */
  actor?: Opt<string>;
  /** ID of the instance that wrote the row. */
  instance?: Opt<string>;
  /** ID of the own call of the job that the call belongs to. For the job's own call, its own ID. */
  job?: Opt<string>;
}

/** Filter for ledger entries. Members that are not set restrict nothing. */
export interface LedgerQuery {
  /** ID of the key. */
  key?: Opt<string>;
  /**
   * Account, including all accounts that were nested under it at the time: its ID, or IDs joined by
   * "/".
   */
  account?: Opt<string>;
  /** ID of the call. */
  attempt?: Opt<string>;
  /** The provider's ID of the response. */
  upstreamId?: Opt<string>;
  /** Start of the period, included, in Unix milliseconds. */
  from?: Opt<number>;
  /** End of the period, not included, in Unix milliseconds. */
  to?: Opt<number>;
  /** Certainty of the cost; `open` for calls that are not settled. */
  state?: Opt<LedgerEntry["state"]>;
  /** Name of the provider in gateway.yaml. */
  provider?: Opt<string>;
  /**
   * Model with its provider, as totals name it ("openai/gpt-5"), or only the provider's name of the
   * model.
   */
  model?: Opt<string>;
  /** Label name and value, such as "team=web". */
  label?: Opt<string>;
  /** Name of the credential. */
  credential?: Opt<string>;
  /** Name of the frontend that the client called. */
  frontend?: Opt<string>;
  /** How the call ended, such as `ok` or `rate_limited`. */
  outcome?: Opt<string>;
}

/** Page of a list that is requested. */
export interface PageRequest {
  /**
   * Value of `next` of an earlier page. For entries, the `seq` of any entry is valid too. Entries
   * are listed in the order of `seq`, and no entry is ever inserted before a listed entry. A caller
   * that continues after the last entry therefore receives all later entries, whichever instance
   * writes them.
   */
  after?: Opt<string>;
  /** Maximum number of items. Default: the store's. */
  limit?: Opt<number>;
}

/** One page of a list. If `next` is set, more pages follow. */
export interface ResultPage<T> {
  /** Items of this page, in order. */
  items: readonly T[];
  /** Value for `after` to get the next page. Unset on the last page. */
  next?: Opt<string>;
}

/** Sum of the settled entries of one group. */
export interface LedgerTotal {
  /** Values that define the group, by dimension. `TotalsBy` lists the dimensions. */
  by: HeadersOut;
  /** Number of calls. */
  calls: number;
  /** Units that the calls used. */
  usage: Usage;
  /** Total cost in billionths of a US dollar, without calls that have no known price. */
  costNano: bigint;
  /** Number of calls without a known price. */
  unpriced: number;
  /**
   * Number of calls with an estimated cost. If unset, it was not counted, and the host queries
   * these calls separately.
   */
  estimated?: Opt<number>;
}

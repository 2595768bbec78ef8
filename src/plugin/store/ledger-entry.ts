// What a ledger is read as: entries, listings of them, and their sums.
import type { ForwardingMode, Privacy } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { CallState } from "../call.ts";

/** What the client asked for, where it differs from what was tried. */
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
  /** What the promise about data stands on. */
  policyBasis?: Opt<string>;
}

/** When billed at another model's or tier's price, or at several. */
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

/** What is asked: the provider as mounted, the provider's own name of the model, the wire, and the credential's name. */
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

/** How long a call took to its answer's head, to its first content and in all, in milliseconds. */
export type CallDurations = Opt<{ headers?: Opt<number>; firstToken?: Opt<number>; total: number }>;

/** `settle` with outcome `recovered`: what recovery wrote for a call whose owner died. */
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
  /** Cost in billionths of a US dollar; null if it is not known. For an adjustment, the difference. */
  costNano: bigint | null;
  /** How certain the cost is; `open` until the call is settled. */
  state: CallState | "open";
  /** How the call ended: `ok`, an error kind, `recovered`, or `adjusted`. `open` for a reserve. */
  outcome: string;
  /** The provider's ID of the response. */
  upstreamId?: string;
  /** Labels of the key, its accounts, and hooks. */
  labels: HeadersOut;
  /** As its reserve said it: an account that has moved since changes no row. */
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
  /** Parts of the bill, if not all of it was billed at one price. */
  parts?: Opt<readonly BillPart[]>;
  /** What the client requested. */
  clientRequest?: Opt<ClientRequestInfo>;
  /** Why the response ended. */
  finish?: Opt<string>;
  /** Durations of the call. */
  ms?: CallDurations;
  /** Reason for an adjustment, as the operator gave it. */
  reason?: Opt<string>;
  /** Name of the actor that made an adjustment, such as `operator`. */
  actor?: Opt<string>;
  /** Which process wrote it. */
  instance?: Opt<string>;
}

/** Which entries are meant. Members that are absent restrict nothing. */
export interface LedgerQuery {
  /** ID of the key. */
  key?: Opt<string>;
  /** Of this account and of all that stood below it at the time: its name, or names joined by "/". */
  account?: Opt<string>;
  /** ID of the call. */
  attempt?: Opt<string>;
  /** The provider's ID of the response. */
  upstreamId?: Opt<string>;
  /** Start of the period, included, in Unix milliseconds. */
  from?: Opt<number>;
  /** End of the period, not included, in Unix milliseconds. */
  to?: Opt<number>;
  /** How certain the cost is; `open` for calls that are not settled. */
  state?: Opt<LedgerEntry["state"]>;
  /** Name of the provider in gateway.yaml. */
  provider?: Opt<string>;
  /** As sums say it, with its provider ("openai/gpt-5"), or the provider's name of it alone. */
  model?: Opt<string>;
  /** Name and value: "team=web". */
  label?: Opt<string>;
  /** Name of the credential. */
  credential?: Opt<string>;
  /** Where the client asked. */
  frontend?: Opt<string>;
  /** How the call ended, such as `ok` or `rate_limited`. */
  outcome?: Opt<string>;
}

/** Which part of a listing is wanted. */
export interface PageRequest {
  /**
   * A listing's `next`; for entries the seq of any entry will do. Entries are listed in the order of their seq, and none is ever
   * added below one that was listed: a caller that reads on from the last one misses nothing, whichever instance writes.
   */
  after?: Opt<string>;
  /** Maximum number of items. Default: the store's. */
  limit?: Opt<number>;
}

/** One part of a listing. With `next`, more follows after it. */
export interface ResultPage<T> {
  /** Items of this page, in order. */
  items: readonly T[];
  /** Value for `after` to get the next page. Unset on the last page. */
  next?: Opt<string>;
}

/** Settled entries of one group, added up. */
export interface LedgerTotal {
  /** Values that define the group, by the name of the dimension in `TotalsBy`. */
  by: HeadersOut;
  /** Number of calls. */
  calls: number;
  /** Units that the calls used. */
  usage: Usage;
  /** Total cost in billionths of a US dollar, without calls that have no known price. */
  costNano: bigint;
  /** Number of calls without a known price. */
  unpriced: number;
  /** How many of the calls are estimates. Absent: not counted, and the host asks once more, for these alone. */
  estimated?: Opt<number>;
}

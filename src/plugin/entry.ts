// What a ledger is read as: entries, listings of them, and their sums.
import type { Lane, Privacy } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersOut, Opt } from "../model/values.ts";
import type { CallState } from "./call.ts";

/** What the client asked for, where it differs from what was tried. */
export interface RequestFacts {
  model: string;
  frontend: string;
  protocol: string;
  lane: Lane;
  stream: boolean;
  /** What the promise about data stands on. */
  basis?: Opt<string>;
}

/** When billed at another model's or tier's price, or at several. */
export interface BillPart {
  model: string;
  tier?: Opt<string>;
  usage: Usage;
  price: string | null;
  costNano: bigint | null;
}

/** What is asked: the provider as mounted, the provider's own name of the model, the wire, and the credential's name. */
export interface Target {
  provider: string;
  model: string;
  protocol: string | null;
  credential: string;
}

/** How long a call took to its answer's head, to its first content and in all, in milliseconds. */
export type CallMs = Opt<{ head?: Opt<number>; content?: Opt<number>; total: number }>;

/** `settle` with outcome `presumed`: what recovery wrote for a call whose owner died. */
export interface Entry {
  seq: number;
  kind: "reserve" | "settle" | "adjust";
  attempt: string;
  request: string;
  at: number;
  key: string;
  target: Target;
  usage: Usage;
  costNano: bigint | null;
  state: CallState | "open";
  outcome: string;
  upstreamId?: string;
  labels: HeadersOut;
  /** As its reserve said it: an account that has moved since changes no row. */
  account?: Opt<string>;
  n?: Opt<number>;
  privacy?: Opt<Privacy>;
  price?: Opt<string | null>;
  holdNano?: Opt<bigint | null>;
  upstreamCostNano?: Opt<bigint>;
  parts?: Opt<readonly BillPart[]>;
  asked?: Opt<RequestFacts>;
  finish?: Opt<string>;
  ms?: CallMs;
  /** Of an adjustment. */
  reason?: Opt<string>;
  actor?: Opt<string>;
  /** Which process wrote it. */
  instance?: Opt<string>;
}

/** Which entries are meant. Members that are absent restrict nothing. */
export interface LedgerQuery {
  key?: Opt<string>;
  /** Of this account and of all that stood below it at the time: its name, or names joined by "/". */
  account?: Opt<string>;
  attempt?: Opt<string>;
  upstreamId?: Opt<string>;
  from?: Opt<number>;
  to?: Opt<number>;
  state?: Opt<Entry["state"]>;
  provider?: Opt<string>;
  /** As sums say it, with its provider ("openai/gpt-5"), or the provider's name of it alone. */
  model?: Opt<string>;
  /** Name and value: "team=web". */
  label?: Opt<string>;
  credential?: Opt<string>;
  /** Where the client asked. */
  frontend?: Opt<string>;
  outcome?: Opt<string>;
}

/** Which part of a listing is wanted. */
export interface PageRequest {
  /**
   * A listing's `next`; for entries the seq of any entry will do. Entries are listed in the order of their seq, and none is ever
   * added below one that was listed: a caller that reads on from the last one misses nothing, whichever instance writes.
   */
  after?: Opt<string>;
  limit?: Opt<number>;
}

/** One part of a listing. With `next`, more follows after it. */
export interface ResultPage<T> {
  items: readonly T[];
  next?: Opt<string>;
}

/** Settled entries of one group, added up. */
export interface Total {
  by: HeadersOut;
  calls: number;
  usage: Usage;
  costNano: bigint;
  unpriced: number;
  /** How many of the calls are estimates. Absent: not counted, and the host asks once more, for these alone. */
  estimated?: Opt<number>;
}

// Messages in, messages out, all structured-cloneable: a thread, another process or a test may stand between.
import type { Price, Privacy } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { AccountRecord } from "./account.ts";
import type { AuditLog } from "./audit.ts";
import type { CallState } from "../call.ts";
import type {
  BillPart,
  CallDurations,
  LedgerEntry,
  LedgerQuery,
  PageRequest,
  ClientRequestInfo,
  ResultPage,
  CallTarget,
  LedgerTotal,
} from "./ledger-entry.ts";
import type { InstanceInfo, InstanceState, StoreEvent, StoreInstance } from "./store-instance.ts";
import type { LedgerMaintenance, StoreSize } from "./ledger-maintenance.ts";
import type { ThresholdOutbox, Limit, LimitUsage, ThresholdReached, LimitState } from "./limit.ts";
import type { KeyRecord } from "./key.ts";
import type { LedgerTransfer } from "./ledger-transfer.ts";
import type { Problem } from "../problem.ts";

/** What it is read as. */
export type * from "./ledger-entry.ts";

/**
 * Keeps keys, limits and the ledger. Only the primary process calls it; workers' batches are carried there. `open`
 * comes first; `apply` is never called again before the last one has ended; reads may overlap. A rejection of
 * `apply` means that nothing was written, and the host asks again or refuses new calls until the store answers.
 *
 * A store may belong to one process, which locks out all others, or to several gateways, its instances, at once. The members
 * `lease`, `shared` and `instances` and what `hear` is told are for the second kind; a store of one process leaves them out.
 */
export interface Store {
  /**
   * An instance is taken for dead when nothing was heard of it for `ms`; the host says `alive` every `beatMs`. Read once, when opened.
   * Absent: an instance lives until its process ends, and no sign of life is asked for.
   */
  lease?: Opt<{ readonly durationMs: number; readonly heartbeatMs: number }>;
  /**
   * Lock, or join; recover, and presume what dead owners left open: `recovered` calls. The host calls it before all else, and again
   * after it was fenced. `epoch` is greater than that of every instance before: a token that fences. `instance` is new with every
   * process; the same one again is a re-open, and its calls stay open, unless they were recovered meanwhile. `hear` is called at any time after that, with what this gateway has to know and cannot see by
   * itself; it returns at once and never throws. A rejection ends the start; of a store with a `lease` one that is no fault, or
   * `unavailable`, is tried again until it opens: what it stands on may come up later than the gateway.
   */
  open(
    instance: StoreInstance,
    onEvent?: (news: StoreEvent) => void,
  ): Promise<{ epoch: number; recovered: number }>;
  /**
   * One transaction, in order, durable when it resolves. A denial is a verdict, a rejection means nothing happened; repeats change nothing.
   * Rejected as `invalid`: a command that cannot be obeyed (a settle without its reserve). Rejected otherwise: try again later.
   * Rejected as `unavailable` with the code `not_available_offline`: one of its commands cannot be taken while what the store stands on is away, and others may
   * be; the host finds out which, as it does for `invalid`, and its client may come again. Never of a settle.
   *
   * The fence: an instance that was taken for dead while it lived is refused whatever it asks for, as `conflict` with the code
   * `fenced`. The host opens the store again and tells the same batch again. What it settles then of calls that were recovered is
   * the truth that comes late: a correction of each, once.
   */
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  /** One key, by the SHA-256 of its secret. Asked while a client waits: after 5 s the host refuses it. */
  findKey(digest: string): Promise<KeyRecord | undefined>;
  /** All keys, revoked ones too, in the order in which they were made. */
  listKeys(page?: PageRequest): Promise<ResultPage<KeyRecord>>;
  /**
   * All accounts that were made by a command, ended ones too, by id. Read when a gateway starts, and again when the store tells that
   * another instance has changed some. A store without it keeps none: commands say so, and gateway.yaml has all that there are.
   */
  listAccounts?(page?: PageRequest): Promise<ResultPage<AccountRecord>>;
  /**
   * What these limits have counted at that moment, in their order. It takes nothing and leaves no row. Asked when an operator or a client
   * wants to know what is left; a rejection is told as numbers that are not known. A store without it has limits that hold all the
   * same, and reports without what is left of them.
   */
  readLimits?(limits: readonly Limit[], at: number): Promise<readonly LimitUsage[]>;
  /** Rows of the ledger that fit the query, in the order in which they were written. */
  listEntries(
    query: LedgerQuery,
    page?: PageRequest,
    of?: ReadOptions,
  ): Promise<ResultPage<LedgerEntry>>;
  /**
   * Settled entries, added up by group. A `model` is said with its provider: two providers may have one of the same name. A call
   * stands under each of its labels; by `account` it stands under its own and under each above it, as "acme" and "acme/research".
   * Days and hours are those of `zone`, an IANA name such as "Europe/Berlin"; UTC when it is absent. `createTotals` and `matches` of
   * `tollgate/store` do all of it, so a store need not know what there is to group by.
   */
  sumEntries(
    query: LedgerQuery & { by: readonly TotalsBy[]; zone?: Opt<string> },
    of?: ReadOptions,
  ): Promise<readonly LedgerTotal[]>;
  /** A pinned price row: any entry can be computed again. */
  findPrice?(hash: string): Promise<Price | undefined>;
  /** What operators have done. Absent: nothing of that is kept, and the host says so when it starts. */
  audit?: Opt<AuditLog>;
  /** Reads all that was written and says what of it cannot be true. Asked by `tollgate ledger verify`. */
  verify?(): Promise<readonly Problem[]>;
  /**
   * A value that is decided once for all instances, and for good: the first one that asks for it has `make` called, and what that
   * gives is the answer that all get, also after a restart. The host keeps the first key in it, by its digest. Two instances that ask
   * at once may both make one; one of the two is kept. A `make` that rejects decides nothing, and its error is the caller's.
   */
  getOrCreateShared?(name: string, make: () => Promise<Uint8Array>): Promise<Uint8Array>;
  /** How much room it takes, and how much there is. Asked for readings, and may take its time; a rejection leaves it out there. */
  readSize?(): Promise<StoreSize>;
  /** Those that live, and those that died of late; for commands and readings, which go without them when it rejects. */
  listInstances?(): Promise<readonly InstanceState[]>;
  /** Once disposed of, it may be opened by another process as the same instance: so a gateway is replaced while it serves. With a `lease` none has to wait. */
  supportsHandoff?: Opt<true>;
  /** Crossings of limits until they are told, so that no crash keeps one to itself. Absent: a kill in that moment may lose one. */
  thresholds?: Opt<ThresholdOutbox>;
  /** What it can do for a ledger that grows old: copies, archives, sums in place of rows, erasure. Read whenever an operator asks for it. */
  maintenance?: Opt<LedgerMaintenance>;
  /** How it moves to another kind of store, and from one. Absent: it does not. */
  transfer?: Opt<LedgerTransfer>;
}

/**
 * What sums are grouped by. `accounts` is the whole of where a key stood, once, and `labels` is all labels of a call, as JSON: a call is
 * in one group of each. `state` is that of the bill, or "adjusted" for corrections; `price` is the hash of the pinned row.
 */
export type TotalsBy =
  | "key"
  | "account"
  | "accounts"
  | "provider"
  | "model"
  | "credential"
  | "frontend"
  | "outcome"
  | "state"
  | "price"
  | "day"
  | "hour"
  | "label"
  | "labels";
/** `signal`: the answer is not wanted any more. A store that can stops; one that cannot goes on, and the host waits for it. */
export interface ReadOptions {
  /** Aborts when the result is no longer needed. */
  signal?: Opt<AbortSignal>;
}

/**
 * One command of a batch. Everything in it is plain data, so that it may cross a thread or a process. `at` is what its row says; a
 * store of several instances counts limits by a clock of its own, so that a gateway whose clock is wrong moves no limit.
 */
export type StoreCommand = { at: number } & (
  | Reserve
  /** What a crash would be recovered from. Best effort: an attempt that is not open is passed over. */
  | { do: "progress"; attempt: string; usage: Usage; costNano?: Opt<bigint | null> }
  | Settle
  /** Adds a correction to the cost of a settled call. `costNano` is the difference and may be negative. */
  | { do: "adjust"; attempt: string; costNano: bigint; reason: string; actor: string }
  /**
   * A key's record, whole. Of a key that is there it is rejected as `invalid`, with the code `version_conflict`, when its `version` is not the
   * one after the store's, or when it has none and the store's has one: of two gateways that change a key at once, one is told so, and a
   * key that was revoked stays that. The same record once more changes nothing.
   */
  | { do: "key"; key: KeyRecord }
  /**
   * An account, whole, sent to stores that have `accounts`. Rejected as `invalid`, and nothing of the batch happened: `version_conflict`,
   * when its version is not the one after the store's, so that two gateways overwrite nothing of one another; `account_cycle`, when it
   * would stand in itself. The same record once more changes nothing.
   */
  | { do: "account"; account: AccountRecord }
  /** The row behind a hash that reserves pin; rows never change. */
  | { do: "price"; hash: string; price: Price }
  /**
   * Renews the lease, and settles what instances whose lease is over have left open. Sent every `beatMs`, and to see whether the store
   * answers. `about`: what the instance says of itself now, in place of what it said before; `at` is its clock. Absent: nothing new.
   */
  | { do: "heartbeat"; info?: Opt<InstanceInfo> }
);

/** Opens a call before a byte is sent: the row and all its claims are taken together or not at all. */
export interface Reserve {
  /** Marks a reserve. */
  do: "reserve";
  /** ID of the call, unique in the ledger. */
  attempt: string;
  /** ID of the request that the call belongs to. */
  request: string;
  /** Position of the call within its request, from 1. */
  number: number;
  /** ID of the key. */
  key: string;
  /** Provider, model, protocol, and credential of the call. */
  target: CallTarget;
  /** Privacy of the request. */
  privacy: Privacy;
  /** Labels for the rows of the call. */
  labels: HeadersOut;
  /** Where its key stood among the accounts, from the outermost on: "acme/research". */
  account?: Opt<string>;
  /** Limits that the call counts against, and how much to take from each. */
  claims: readonly (Limit & { take: bigint })[];
  /** Reserved amount in billionths of a US dollar; null if no price is known. */
  holdNano: bigint | null;
  /** The pinned row's hash; null = unpriced. */
  price: string | null;
  /** What the client requested. */
  clientRequest?: Opt<ClientRequestInfo>;
}

/** Closes a call: what it came to. Gives back what was held above that. The same settle again changes nothing. */
export interface Settle {
  /** Marks a settle. */
  do: "settle";
  /** ID of the call, as its reserve has it. */
  attempt: string;
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /** Cost in billionths of a US dollar; null if no price is known. */
  costNano: bigint | null;
  /** How the call ended: `ok`, an error kind, or `middleware`. */
  outcome: string;
  /** The provider's ID of the response. */
  upstreamId?: string;
  /** Cost that the provider reported, in billionths of a US dollar. */
  upstreamCostNano?: bigint;
  /** Parts of the bill, if not all of it was billed at one price. */
  parts?: readonly BillPart[];
  /** Why the response ended. */
  finish?: Opt<string>;
  /** Durations of the call. */
  ms?: CallDurations;
}

/**
 * The answer to one command of a batch, at the same place in the list. A denial names the limit that refused. `crossed`: on the
 * command that did it, and on no other, so that each crossing is told once.
 */
export type CommandResult =
  /** The command took effect. `limits`: for a reserve, the limits that it counted against. */
  | { ok: true; limits?: readonly LimitState[]; thresholds?: readonly ThresholdReached[] }
  /** A limit is used up. `retryAfterMs` is the earliest time for a new attempt, in milliseconds. */
  | { ok: false; denied: LimitState; retryAfterMs: number };

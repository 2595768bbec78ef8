// Interface of stores. All arguments and results support structured cloning, so a thread, another
// process, or a test can be between the host and the store.
import type { Price, Privacy } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { AccountRecord, KeyRecord } from "./account.ts";
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
import type { JobReserve, JobStore } from "./job.ts";
import type { InstanceInfo, InstanceState, StoreEvent, StoreInstance } from "./store-instance.ts";
import type { LedgerMaintenance, StoreSize } from "./ledger-maintenance.ts";
import type { ThresholdOutbox, Limit, LimitUsage, ThresholdReached, LimitState } from "./limit.ts";
import type { LedgerTransfer } from "./ledger-transfer.ts";
import type { Problem } from "../problem.ts";

/** Types that the ledger is read with. */
export type * from "./ledger-entry.ts";

/**
 * Keeps keys, limits, and the ledger. Only the primary process calls it; batches of workers are
 * forwarded to that process. `open` is called first. `apply` is called only after the previous call
 * has ended. Reads may overlap. If `apply` rejects, nothing was written, and the host retries or
 * rejects new calls until the store responds.
 *
 * A store is used either by one process, which locks out all others, or by several gateways at the
 * same time, its instances. The members `lease`, `getOrCreateShared`, and `listInstances`, and the
 * events, are for stores of the second kind. A store of one process omits them.
 */
export interface Store {
  /**
   * Lease of an instance. The instance counts as dead if no heartbeat was received for
   * `durationMs`. The host sends a heartbeat every `heartbeatMs`. The member is read once, when the
   * store is opened. Default: an instance lives until its process ends, and no heartbeat is sent.
   */
  lease?: Opt<{ readonly durationMs: number; readonly heartbeatMs: number }>;
  /**
   * Opens the store: locks it, or joins the other instances. Recovers open calls of dead instances.
   * `recovered` is their number. The host calls it before all other methods, and again after this
   * instance was fenced.
   *
   * `epoch` is a fencing token, which is greater than the epochs of all earlier instances.
   * `instance` is new for every process. The same `instance` reopens the store, and its calls stay
   * open unless they were recovered in the meantime. `onEvent` may be called at any time after
   * that, with events that this gateway cannot detect itself. `onEvent` returns immediately and
   * never throws.
   *
   * If it rejects, the gateway does not start. With a `lease`, a rejection that is not a fault, or
   * an `unavailable` fault, is retried until the store opens, because the database may start later
   * than the gateway.
   */
  open(
    instance: StoreInstance,
    onEvent?: (news: StoreEvent) => void,
  ): Promise<{ epoch: number; recovered: number }>;
  /**
   * Applies a batch as one transaction, in order. The batch is durable when the promise resolves. A
   * denial is a result. A rejection means that nothing was written. Repeating a batch has no
   * effect.
   *
   * - Rejected as `invalid`: a command cannot be applied, such as a settle without its reserve.
   * - Rejected as `unavailable` with the code `not_available_offline`: one of the commands cannot
   *   be accepted while the database is unavailable, and others may be. The host finds out which
   *   one, as it does for `invalid`, and the client may retry. A settle never causes it.
   * - Any other rejection: retry later.
   *
   * Fencing: every call of an instance whose lease expired while it was running rejects as
   * `conflict` with the code `fenced`. The host opens the store again and sends the same batch
   * again. A settle of a call that was recovered in the meantime then becomes one correction of
   * that call. The same applies to a call that was settled as `abandoned`: its reserve was applied
   * after the caller had received an error, and the caller repeated it.
   */
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  /**
   * Returns the key with this SHA-256 of its secret. A client waits for this method: after 5 s, the
   * host rejects the request.
   */
  findKey(digest: string): Promise<KeyRecord | undefined>;
  /** Returns all keys, including revoked keys, in the order of their creation. */
  listKeys(page?: PageRequest): Promise<ResultPage<KeyRecord>>;
  /**
   * Returns all accounts that commands created, including closed accounts, by ID. Called when a
   * gateway starts, and again when the store reports that another instance changed accounts. A
   * store without this method has no accounts: commands report that, and only the accounts in
   * gateway.yaml exist.
   */
  listAccounts?(page?: PageRequest): Promise<ResultPage<AccountRecord>>;
  /**
   * Returns the usage of these limits at that moment, in the same order. The method reserves
   * nothing and writes no row. Called when an operator or a client requests the remaining amounts.
   * If it rejects, the amounts are reported as unknown. Without this method, limits are still
   * enforced, and reports contain no remaining amounts.
   */
  readLimits?(limits: readonly Limit[], at: number): Promise<readonly LimitUsage[]>;
  /**
   * Returns the rows of the ledger that match the query, in the order in which they were written.
   */
  listEntries(
    query: LedgerQuery,
    page?: PageRequest,
    of?: ReadOptions,
  ): Promise<ResultPage<LedgerEntry>>;
  /**
   * Returns the sums of settled entries by group. `model` includes the provider, because two
   * providers can have a model with the same name. A call is counted under each of its labels. With
   * `account`, a call is counted under its own account and each parent, such as "acme" and
   * "acme/research". Days and hours are in `zone`, an IANA name such as "Europe/Berlin". Default:
   * UTC. `createTotals` and `matches` of `tollgate/store` implement these rules, so a store need
   * not know the dimensions.
   */
  sumEntries(
    query: LedgerQuery & { by: readonly TotalsBy[]; zone?: Opt<string> },
    of?: ReadOptions,
  ): Promise<readonly LedgerTotal[]>;
  /** Returns a pinned price row, with which the cost of an entry can be computed again. */
  findPrice?(hash: string): Promise<Price | undefined>;
  /**
   * Audit log of operators' commands. Default: no audit log is kept, and the host reports this at
   * startup.
   */
  audit?: Opt<AuditLog>;
  /**
   * Reads everything that was written and returns inconsistencies. `tollgate ledger verify` calls
   * it.
   */
  verify?(): Promise<readonly Problem[]>;
  /**
   * Returns a value that is decided once for all instances and never changes, even after a restart.
   * The first caller's `make` creates it. The host uses it for the first key, by its digest. If two
   * instances call it concurrently, both may create a value, and one of the values is kept. If
   * `make` rejects, no value is stored, and the caller receives the error.
   */
  getOrCreateShared?(name: string, make: () => Promise<Uint8Array>): Promise<Uint8Array>;
  /**
   * Returns the storage that the store uses and the storage that is available. Called for live
   * stats. It may be slow. If it rejects, the stats do not contain the storage.
   */
  readSize?(): Promise<StoreSize>;
  /**
   * Returns the live instances and those that died recently. Commands and live stats call it, and
   * omit the instances if it rejects.
   */
  listInstances?(): Promise<readonly InstanceState[]>;
  /**
   * Whether another process can open the store as the same instance after this process disposed of
   * it. This allows a gateway to be replaced while it serves requests. With a `lease`, no process
   * has to wait for the other.
   */
  supportsHandoff?: Opt<true>;
  /**
   * Reached thresholds until they are delivered, so that no threshold is lost in a crash. Without
   * this member, a threshold may be lost if the process is killed before its delivery.
   */
  thresholds?: Opt<ThresholdOutbox>;
  /** Records of jobs. Without it, the gateway accepts no jobs. */
  jobs?: Opt<JobStore>;
  /**
   * Maintenance operations for a growing ledger: backup, archive, pruning, and erasure. Read
   * whenever an operator requests one.
   */
  maintenance?: Opt<LedgerMaintenance>;
  /** Transfer to and from another kind of store. Without it, the store cannot be moved. */
  transfer?: Opt<LedgerTransfer>;
}

/**
 * Dimensions by which totals are grouped. With `accounts`, a call counts once, under the full path
 * of its account. With `labels`, it counts once, under all its labels as JSON. `state` is the state
 * of the bill, or "adjusted" for corrections. `price` is the hash of the pinned price row.
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
/**
 * Options of a read. If `signal` aborts, the result is no longer needed. A store should stop the
 * read if it can. Otherwise, the read continues, and the host waits for it.
 */
export interface ReadOptions {
  /** Aborts when the result is no longer needed. */
  signal?: Opt<AbortSignal>;
}

/**
 * One command of a batch. It is plain data, so it can be sent to a thread or a process. `at` is the
 * time of its row. A store of several instances counts limits by its own clock, so that a gateway
 * with a wrong clock does not shift limits.
 */
export type StoreCommand = { at: number } & (
  | Reserve
  /**
   * Saves the progress of an open call, from which it is settled after a crash. Best effort: an
   * attempt that is not open is ignored.
   */
  | { do: "progress"; attempt: string; usage: Usage; costNano?: Opt<bigint | null> }
  | Settle
  /**
   * Adds a correction to the cost of a settled call. `costNano` is the difference and may be
   * negative.
   */
  | { do: "adjust"; attempt: string; costNano: bigint; reason: string; actor: string }
  /**
   * Writes a complete key record. A change of an existing key is rejected as `invalid` with the
   * code `version_conflict` if its `version` does not follow the stored one. The rejection also
   * applies if the record has no version and the stored key has one. If two gateways change a key
   * at the same time, one gateway gets this error, and a revoked key stays revoked. Writing the
   * same record again has no effect.
   */
  | { do: "key"; key: KeyRecord }
  /**
   * Writes a complete account record. It is sent only to stores with `listAccounts`. Writing the
   * same record again has no effect. In two cases, the whole batch is rejected as `invalid`:
   *
   * - `version_conflict`: its version does not follow the stored one, so another gateway has changed
   *   the account.
   * - `account_cycle`: the account would be nested under itself.
   */
  | { do: "account"; account: AccountRecord }
  /**
   * Changes what a member of a group has used, for an operator. Only the windows that exist at `at`
   * change. Reservations of open calls remain. `limits` are limits of members, with the scope that
   * calls use. A store without groups rejects the command as `invalid`.
   */
  | { do: "member"; limits: readonly Limit[]; change: MemberChange }
  /** Writes the price row for a hash that reserves refer to. Price rows never change. */
  | { do: "price"; hash: string; price: Price }
  /**
   * Renews the lease, and settles open calls of instances whose lease expired. It is sent every
   * `heartbeatMs`, and to test whether the store responds. `info` replaces the description that the
   * instance reported before; `at` is the instance's clock. Default: unchanged.
   */
  | { do: "heartbeat"; info?: Opt<InstanceInfo> }
);

/**
 * A change of what a member has used.
 *
 * - `reset`: the member has used nothing.
 * - `raise`: the member may use more in the current window.
 */
export type MemberChange = { readonly type: "reset" } | MemberRaise;

/**
 * Subtracts an amount from the usage of a member. Only limits per day, week, and month, and in total
 * can be raised. For a member without usage, the command is rejected as `invalid` with the code
 * `no_such_member`.
 */
export interface MemberRaise {
  /** Marks a raise. */
  readonly type: "raise";
  /**
   * Unique ID of the change. A repetition of the last changes has no effect, whatever the member has
   * used in between. A store of several instances therefore keeps their IDs together with the usage.
   */
  readonly id: string;
  /** Amount that the member may use in addition. */
  readonly amount: bigint;
  /**
   * Usage that the operator read. If the member has used less by now, the command is rejected as
   * `invalid` with the code `version_conflict`.
   */
  readonly from: bigint;
}

/**
 * Opens a call before any byte is sent. The row and all its claims are written together or not at
 * all.
 */
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
  /** Path of the key's account, starting at the outermost account, such as "acme/research". */
  account?: Opt<string>;
  /** Limits that the call counts against, with the amount to take from each. */
  claims: readonly (Limit & { take: bigint })[];
  /** Reserved amount in billionths of a US dollar; null if no price is known. */
  holdNano: bigint | null;
  /** Hash of the pinned price row. `null` if the call is unpriced. */
  price: string | null;
  /** Request of the client. */
  clientRequest?: Opt<ClientRequestInfo>;
  /**
   * Job that the call belongs to. It is sent only to stores with `jobs`.
   *
   * - The job's own reserve claims the sum of its lines. Its claims count in calendar windows only,
   *   because a rate drains while the job runs. Recovery leaves its call open.
   * - A line has no claims. It takes amounts from the job's reservation, in the windows in which
   *   the job was created. It is rejected as `invalid` with the code `job_not_open` if the job's call
   *   is not open. A line that is settled as `void` returns its amounts to the job. Any other settle
   *   releases the rest of them.
   * - The job's own settle releases what no line took. If it is `void`, it counts nothing.
   */
  job?: Opt<JobReserve>;
}

/**
 * Closes a call with its final cost. Releases the rest of the reservation. Repeating the same
 * settle changes nothing.
 */
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
  /** ID that the provider assigned to the response. */
  upstreamId?: string;
  /** Cost that the provider reported, in billionths of a US dollar. */
  upstreamCostNano?: bigint;
  /** Parts of the bill, if parts of it were billed at different prices. */
  parts?: readonly BillPart[];
  /** Reason why the response ended. */
  finish?: Opt<string>;
  /** Durations of the call. */
  ms?: CallDurations;
}

/**
 * Result of one command of a batch, at the same position. A denial contains the limit that was
 * exhausted. `thresholds` is set only on the result of the command that reached them, so that each
 * is reported once.
 */
export type CommandResult =
  /** The command took effect. `limits`: for a reserve, the limits that it counted against. */
  | { ok: true; limits?: readonly LimitState[]; thresholds?: readonly ThresholdReached[] }
  /**
   * A limit is used up. `retryAfterMs` is the earliest time for a new attempt, in milliseconds.
   * `isFull`: the group of the limit's scope has its maximum number of members.
   */
  | { ok: false; denied: LimitState; retryAfterMs: number; isFull?: Opt<true> };

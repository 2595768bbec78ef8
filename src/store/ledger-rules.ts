// The ledger's rules, as pure logic: the input is commands, and the output is rows and results. All
// stores share these rules and differ only in the journal, which stores the rows. An attempt
// changes from none to reserved to settled. After that, only adjustments follow.
//
// A batch is applied completely or not at all. After an exception, or if the journal could not
// commit, `rollback()` reverts all changes.
import {
  fail,
  type StoreCommand,
  type KeyRecord,
  type Limit,
  type LimitUsage,
  type ThresholdReached,
  type Price,
  type Reserve,
  type Settle,
  type CommandResult,
} from "../plugin/index.ts";
import { isAccountChange, isKeyChange, type AccountRepository } from "./accounts.ts";
import { createCallTable, type CallEntry, type OpenCalls } from "./open-calls.ts";
import { MeterTable } from "./meter-table.ts";
import * as meters from "./meter.ts";
import type { Meter, MeterAmount, Claim } from "./meter.ts";
import {
  adjustRow,
  LATE_SETTLE,
  LEDGER_ACTOR,
  isProvisional,
  type CallRows,
  type LedgerRow,
} from "./ledger-row.ts";
import {
  changeLineAmounts,
  isJobCall,
  lineTake,
  reservedAmounts,
  returnedToJob,
  settledUsage,
} from "./job-lines.ts";

type Timed<C> = C & { readonly at: number };
type CommandOf<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

/**
 * Fields of a reserve that the rules need. Only the journal uses the other fields, so a store may
 * use its own form for them.
 */
export type ReserveInput = Timed<Pick<Reserve, "do" | "attempt" | "claims" | "job">>;
/** Fields of a settle that the rules need. */
export type SettleInput = Timed<
  Readonly<Pick<Settle, "do" | "attempt" | "state" | "usage" | "costNano" | "outcome">>
>;
/** All other commands. */
export type OtherCommand = Exclude<StoreCommand, { do: "reserve" | "settle" }>;

/** A call between its reserve and its settle. A journal creates it and may add its own fields. */
export interface OpenCall extends CallEntry {
  /** Amounts that the call took from each meter. */
  readonly meterAmounts: readonly MeterAmount[];
  /** ID of the own call of the job that the call belongs to. */
  readonly job?: string | undefined;
  /** For a job's own call: amounts that its lines took, in the order of `meterAmounts`. */
  readonly lineAmounts?: readonly bigint[] | undefined;
}

/**
 * Storage of rows: the part that a store implements. The rules call it synchronously from `apply`,
 * command by command, within the batch's transaction. An exception ends the batch, which must then
 * be rolled back.
 */
export interface LedgerJournal<R extends ReserveInput, S extends SettleInput, C extends OpenCall> {
  /** Writes a reserve. Returns undefined if the journal already has the attempt's reserve. */
  reserve(command: R, taken: readonly MeterAmount[]): C | undefined;
  settle(call: C, command: S): void;
  /** Writes an adjustment. Returns false if the journal already has this row. */
  adjust(row: LedgerRow): boolean;
  /** Whether the journal has a reserve of this attempt whose call is not open. */
  hasReserve(attempt: string): boolean;
  /** Returns the reserve of a call that is not open, and its settle. */
  closedCall(attempt: string): CallRows | undefined;
  progress(call: C, command: CommandOf<"progress">): void;
  /**
   * Stores the amounts that the lines of a job took, and sets them on its call. If unset, the store
   * supports no jobs.
   */
  setLineAmounts?(job: C, amounts: readonly bigint[]): void;
  putKey(record: KeyRecord): void;
  /**
   * Returns the stored key, including changes by this batch. If unset, changes of keys are never
   * rejected.
   */
  getKey?(digest: string): KeyRecord | undefined;
  /** Storage of accounts. If unset, the store keeps no accounts. */
  readonly accounts?: AccountRepository | undefined;
  putPrice(hash: string, price: Price): void;
  recordHeartbeat(at: number): void;
}

/**
 * Limits, open calls, and the ledger's rules over a journal. A store checks each command of a
 * batch, applies all commands, commits its journal, and calls `commit`. If any step fails, it calls
 * `rollback`, and the batch has no effect.
 */
export interface LedgerRules<
  R extends ReserveInput = ReserveInput,
  S extends SettleInput = SettleInput,
  C extends OpenCall = OpenCall,
> {
  /**
   * Applies a command that was checked before. Throws `invalid` for a command that is not allowed.
   * The whole batch must then be rolled back.
   */
  apply(command: R | S | OtherCommand): CommandResult;
  /** Returns the usage of these limits in their order. Does not change the meters. */
  limitUsage(limits: readonly Limit[], at: number): readonly LimitUsage[];
  /** Reverts the batch. */
  rollback(): void;
  /** Confirms that the batch is durable. */
  commit(): void;
  /**
   * Returns the meters that the current batch changed. A store that persists meters writes them
   * with its rows.
   */
  changedMeters(): Iterable<Meter>;
  /**
   * Removes meters that no longer have any effect, and returns their ids. A store that persists
   * meters deletes them.
   */
  dropIdleMeters(): readonly string[];
  /** Loads a stored meter. Called at startup, before calls are restored. */
  loadMeter(meter: Meter): void;
  /**
   * Sets the number of members of a group whose meters are not loaded. For a store that loads only
   * the meters of one batch.
   */
  setMembersElsewhere(group: string, count: number): void;
  /** Restores an open call and adds its reserved amounts to its meters. */
  restoreCall(call: C): void;
  /**
   * Returns reached thresholds without a recorded delivery. After a crash, the next owner delivers
   * them.
   */
  undeliveredThresholds(): readonly ThresholdReached[];
  /** Marks thresholds as delivered. Like `apply`, this is a change that the store commits. */
  markDelivered(crossings: readonly ThresholdReached[]): void;
  readonly openCalls: OpenCalls<C>;
  readonly meters: ReadonlyMap<string, Meter>;
}

/**
 * Creates the rules over a journal. `instance` returns the id of the writing process and is called
 * for each correction.
 */
export const createLedgerRules = <
  R extends ReserveInput,
  S extends SettleInput,
  C extends OpenCall,
>(
  journal: LedgerJournal<R, S, C>,
  instance: () => string,
): LedgerRules<R, S, C> => new JournaledLedgerRules(journal, instance);

const NO_AMOUNTS: readonly MeterAmount[] = [];
/** Retry delay for a full group. When its next member leaves is not computed. */
const FULL_GROUP_RETRY_MS = 60_000;

class JournaledLedgerRules<
  R extends ReserveInput,
  S extends SettleInput,
  C extends OpenCall,
> implements LedgerRules<R, S, C> {
  readonly #journal: LedgerJournal<R, S, C>;
  readonly #instance: () => string;
  readonly #calls = createCallTable<C>();
  readonly #meterTable = new MeterTable();
  /** Calls that this batch opened and closed. */
  #openedInBatch: C[] = [];
  #closedInBatch: C[] = [];

  constructor(journal: LedgerJournal<R, S, C>, instance: () => string) {
    this.#journal = journal;
    this.#instance = instance;
  }

  get openCalls(): OpenCalls<C> {
    return this.#calls;
  }

  get meters(): ReadonlyMap<string, Meter> {
    return this.#meterTable.meters;
  }

  apply(command: R | S | OtherCommand): CommandResult {
    switch (command.do) {
      case "reserve":
        return this.#reserve(command);
      case "settle":
        return this.#settle(command);
      case "progress":
        return this.#progress(command);
      case "adjust":
        return this.#adjust(command);
      case "key":
        return this.#putKey(command);
      case "account":
        return this.#putAccount(command);
      case "member":
        return this.#changeMember(command);
      case "price":
        this.#journal.putPrice(command.hash, command.price);
        return ALLOWED;
      case "heartbeat":
        this.#journal.recordHeartbeat(command.at);
        return ALLOWED;
    }
  }

  #changeMember({ limits, change, at }: CommandOf<"member">): CommandResult {
    const t = this.#meterTable.advanceTo(at);
    for (const { scope, unit, per } of limits) {
      const meter = this.#meterTable.meters.get(meters.meterId(scope, unit, per, t));
      // A store may have created the meter only to lock it.
      const isPresent = meter !== undefined && meter.at > 0;
      if (change.type === "raise") {
        if (!isPresent)
          fail("invalid", "The member has no usage in this window, so it cannot be raised.", {
            code: "no_such_member",
          });
        if (!meter!.changes.includes(change.id))
          meters.raiseMember(this.#meterTable.markChanged(meter!), change, t);
      } else if (isPresent) meters.resetMember(this.#meterTable.markChanged(meter));
    }
    return ALLOWED;
  }

  limitUsage(limits: readonly Limit[], at: number): readonly LimitUsage[] {
    const t = this.#meterTable.timeFor(at);
    return limits.map((limit) => meters.limitUsage(limit, t, this.#meterTable.meters));
  }

  rollback(): void {
    // A call that was opened and closed in the same batch is first added and then removed.
    for (const call of this.#closedInBatch) this.#calls.add(call);
    for (const call of this.#openedInBatch) this.#calls.remove(call);
    this.#meterTable.rollback();
    this.#clearBatch();
  }

  commit(): void {
    this.#meterTable.commit();
    this.#clearBatch();
  }

  changedMeters(): Iterable<Meter> {
    return this.#meterTable.changedMeters;
  }

  dropIdleMeters(): readonly string[] {
    return this.#meterTable.dropIdle();
  }

  loadMeter(meter: Meter): void {
    this.#meterTable.add(meter);
  }

  setMembersElsewhere(group: string, count: number): void {
    this.#meterTable.setMembersElsewhere(group, count);
  }

  restoreCall(call: C): void {
    this.#calls.add(call);
    for (const [id, amount] of reservedAmounts(call)) this.#meterTable.restoreTake(id, amount);
  }

  undeliveredThresholds(): readonly ThresholdReached[] {
    return [...this.#meterTable.meters.values()].flatMap(meters.undeliveredThresholds);
  }

  markDelivered(crossings: readonly ThresholdReached[]): void {
    for (const { scope, unit, per, resetsAt, used } of crossings) {
      const meter = this.#meterTable.meters.get(meters.meterId(scope, unit, per, resetsAt - 1));
      // The meter of a past window may have been dropped.
      if (meter) meters.markDelivered(this.#meterTable.markChanged(meter), { used });
    }
  }

  #reserve(c: R): CommandResult {
    if (c.job && !this.#journal.setLineAmounts)
      return fail("invalid", "This store does not support jobs.", { code: "no_jobs" });
    if (c.job && c.job.attempt !== c.attempt) return this.#reserveLine(c, c.job);
    const t = this.#meterTable.advanceTo(c.at);
    const claims = meters.mergeClaims(c.claims, t, this.#meterTable.meters);
    if (this.#calls.get(c.attempt)) return allowedByClaims(claims, t);
    const denied = this.#findFullGroup(claims, t) ?? findDenial(claims, t);
    if (denied) return this.#journal.hasReserve(c.attempt) ? allowedByClaims(claims, t) : denied;
    const taken = claims.length === 0 ? NO_AMOUNTS : claims.map(meters.toMeterAmount);
    const call = this.#journal.reserve(c, taken);
    if (call) {
      for (const claim of claims) {
        this.#meterTable.markChanged(claim.meter);
        meters.takeClaim(claim, t);
      }
      this.#calls.add(call);
      this.#openedInBatch.push(call);
    }
    return allowedByClaims(claims, t);
  }

  /**
   * Returns the denial of a claim whose member would be one too many. All new members of the call
   * need a place, because the call takes all its claims or none.
   */
  #findFullGroup(claims: readonly Claim[], t: number): CommandResult | undefined {
    let joining: Map<string, Set<string>> | undefined;
    for (const claim of claims) {
      const { meter, maxMembers } = claim;
      const { member } = meter;
      if (!member || maxMembers === undefined || this.#meterTable.isMember(member, meter, t))
        continue;
      joining ??= new Map();
      let scopes = joining.get(member.group);
      if (!scopes) joining.set(member.group, (scopes = new Set()));
      scopes.add(member.scope);
      if (!this.#meterTable.hasPlaces(member.group, scopes.size, maxMembers, t))
        return {
          ok: false,
          denied: meters.limitState(claim, meters.readMeter(claim, t)),
          retryAfterMs: FULL_GROUP_RETRY_MS,
          isFull: true,
        };
    }
    return undefined;
  }

  /** Moves a line's amounts from the job's call to a separate call. */
  #reserveLine(c: R, { attempt, take = {} }: NonNullable<R["job"]>): CommandResult {
    if (this.#calls.get(c.attempt)) return ALLOWED;
    const job = this.#openJob(attempt);
    if (!job)
      return this.#journal.hasReserve(c.attempt)
        ? ALLOWED
        : fail("invalid", `The job of ${c.attempt} is not open.`, { code: "job_not_open" });
    this.#meterTable.advanceTo(c.at);
    const taken = lineTake(job, take, (id) => this.#meterTable.changeById(id).unit);
    const call = this.#journal.reserve(c, taken);
    if (!call) return ALLOWED;
    for (const [id] of taken) this.#meterTable.changeById(id).openCalls++;
    this.#changeLineAmounts(
      job,
      taken.map(([, amount]) => amount),
    );
    this.#calls.add(call);
    this.#openedInBatch.push(call);
    return ALLOWED;
  }

  #settle(c: S): CommandResult {
    const call = this.#calls.get(c.attempt);
    if (!call) return this.#settleClosed(c);
    this.#journal.settle(call, c);
    this.#calls.remove(call);
    this.#closedInBatch.push(call);
    const t = this.#meterTable.advanceTo(c.at);
    const job = call.job === undefined ? undefined : this.#openJob(call.job);
    const returned: bigint[] = [];
    let crossed = NO_THRESHOLDS;
    for (const taken of reservedAmounts(call)) {
      const amount = taken[1];
      const meter = this.#meterTable.changeById(taken[0]);
      const used = settledUsage(call, meter.unit, amount, c);
      const kept = job ? returnedToJob(c.state, amount, used) : 0n;
      if (job) returned.push(-kept);
      meters.settleTake(meter, amount - kept, used, t);
      crossed = concatThresholds(crossed, meters.takeReachedThresholds(meter));
    }
    if (job && returned.some((amount) => amount !== 0n)) this.#changeLineAmounts(job, returned);
    return allowedWith(crossed);
  }

  /** Returns the own call of a job, if it is open. */
  #openJob(attempt: string): C | undefined {
    const call = this.#calls.get(attempt);
    return call && isJobCall(call) ? call : undefined;
  }

  #changeLineAmounts(job: C, by: readonly bigint[]): void {
    if (by.length > 0) this.#journal.setLineAmounts?.(job, changeLineAmounts(job, by));
  }

  /**
   * Handles a settle without an open call: a repetition, the late result of a recovered or abandoned
   * call, or an error.
   */
  #settleClosed(c: S): CommandResult {
    const past = this.#journal.closedCall(c.attempt);
    if (!past?.settle)
      return fail("invalid", `Reservation for ${c.attempt} not found.`, {
        code: "unknown_attempt",
      });
    if (!isProvisional(past.settle.outcome) || isProvisional(c.outcome)) return ALLOWED;
    if (c.state === "void" && past.settle.state === "void") return ALLOWED;
    const costNano = (c.costNano ?? past.settle.costNano ?? 0n) - (past.settle.costNano ?? 0n);
    const { attempt, at, usage } = c;
    return this.#correct(
      { attempt, at, usage, costNano, reason: LATE_SETTLE, actor: LEDGER_ACTOR },
      past,
    );
  }

  #adjust(c: CommandOf<"adjust">): CommandResult {
    const past = this.#journal.closedCall(c.attempt);
    if (!past?.settle)
      return fail("invalid", `${c.attempt} is not settled and cannot be adjusted.`, {
        code: past ? "still_open" : "unknown_attempt",
      });
    return this.#correct(c, past);
  }

  #correct(c: Parameters<typeof adjustRow>[1], past: CallRows): CommandResult {
    const t = this.#meterTable.advanceTo(c.at);
    let crossed = NO_THRESHOLDS;
    if (this.#journal.adjust(adjustRow(past.reserve, c, this.#instance())))
      for (const [id] of past.reserve.meterAmounts) {
        const meter = this.#meterTable.meters.get(id);
        if (!meter) continue;
        meters.correctLevel(this.#meterTable.markChanged(meter), c.costNano, t);
        crossed = concatThresholds(crossed, meters.takeReachedThresholds(meter));
      }
    return allowedWith(crossed);
  }

  #putKey({ key }: CommandOf<"key">): CommandResult {
    const before = this.#journal.getKey?.(key.digest);
    if (!before || isKeyChange(key, before)) this.#journal.putKey(key);
    return ALLOWED;
  }

  #putAccount({ account }: CommandOf<"account">): CommandResult {
    const { accounts } = this.#journal;
    if (!accounts)
      return fail("invalid", "This store does not support accounts.", { code: "no_accounts" });
    if (isAccountChange(account, accounts)) accounts.put(account);
    return ALLOWED;
  }

  #progress(c: CommandOf<"progress">): CommandResult {
    const call = this.#calls.get(c.attempt);
    if (call) this.#journal.progress(call, c);
    return ALLOWED;
  }

  #clearBatch(): void {
    if (this.#openedInBatch.length > 0) this.#openedInBatch = [];
    if (this.#closedInBatch.length > 0) this.#closedInBatch = [];
  }
}

// Results of reserve commands: the remaining limits, or the limit that denied the reservation.

/** Success without further information. */
const ALLOWED: CommandResult = { ok: true };

/** Result of commands that reach no threshold. */
const NO_THRESHOLDS: readonly ThresholdReached[] = [];
/** Concatenates thresholds. There are usually none, and nothing is allocated then. */
const concatThresholds = (some: readonly ThresholdReached[], more: readonly ThresholdReached[]) =>
  more.length === 0 ? some : [...some, ...more];
/** Success with the thresholds that were reached. */
const allowedWith = (crossed: readonly ThresholdReached[]): CommandResult =>
  crossed.length === 0 ? ALLOWED : { ok: true, thresholds: crossed };

/** Success with the state of the claims' limits. */
const allowedByClaims = (claims: readonly Claim[], t: number): CommandResult =>
  claims.length === 0
    ? ALLOWED
    : {
        ok: true,
        limits: claims.map((claim) => meters.limitState(claim, meters.readMeter(claim, t))),
      };

/** Returns the denial of the claim with the longest wait. Undefined if all claims can be met. */
function findDenial(claims: readonly Claim[], t: number): CommandResult | undefined {
  let worst: { claim: Claim; seen: meters.MeterReading } | undefined;
  for (const claim of claims) {
    if (claim.countsOnly || meters.hasRoom(claim, t)) continue;
    const seen = meters.readMeter(claim, t);
    if (seen.waitMs > (worst?.seen.waitMs ?? 0)) worst = { claim, seen };
  }
  return (
    worst && {
      ok: false,
      denied: meters.limitState(worst.claim, worst.seen),
      retryAfterMs: worst.seen.waitMs,
    }
  );
}

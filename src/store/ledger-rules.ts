// The ledger's rules, pure: commands in, rows and verdicts out. Stores keep the same book; what differs is the journal, where
// rows are kept. An attempt goes ∅ → reserved → settled, and then only adjustments follow.
//
// A batch is all or nothing: after a throw, or when the journal could not commit, undo() takes every change back.
import { fail } from "../plugin/index.ts";
import type {
  StoreCommand,
  KeyRecord,
  Limit,
  LimitUsage,
  ThresholdReached,
  Price,
  Reserve,
  Settle,
  CommandResult,
} from "../plugin/index.ts";
import { isAccountChange, isKeyChange, type AccountRepository } from "./accounts.ts";
import { createCallTable, type CallEntry, type OpenCalls } from "./open-calls.ts";
import { MeterTable } from "./meter-table.ts";
import * as meters from "./meter.ts";
import type { Meter, MeterAmount } from "./meter.ts";
import {
  adjustRow,
  LATE_SETTLE,
  LEDGER_ACTOR,
  RECOVERED,
  type CallRows,
  type LedgerRow,
} from "./ledger-row.ts";
import { meteredUsage } from "./metered-usage.ts";
import {
  concatThresholds,
  allowedWith,
  NO_THRESHOLDS,
  ALLOWED,
  findDenial,
  allowedByClaims,
} from "./command-results.ts";

type Timed<C> = C & { readonly at: number };
type CommandOf<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

/** What the rules ask of a reserve. What else it says is the journal's alone, so a store may have it in a form of its own. */
export type ReserveInput = Timed<Pick<Reserve, "do" | "attempt" | "claims">>;
/** What the rules ask of a settle, likewise. */
export type SettleInput = Timed<
  Readonly<Pick<Settle, "do" | "attempt" | "state" | "usage" | "costNano" | "outcome">>
>;
/** The other commands, as they are. */
export type OtherCommand = Exclude<StoreCommand, { do: "reserve" | "settle" }>;

/** A call between its reserve and its settle. A journal makes it, and adds what it wants to know again. */
export interface OpenCall extends CallEntry {
  /** What it took of each meter. */
  readonly meterAmounts: readonly MeterAmount[];
}

/**
 * Where the rows are kept: what a store writes to make a book of its own. The book calls it from `apply`, command by command, and
 * waits for nothing; all of it belongs to the batch's one transaction. A throw ends the batch, which is then to be undone.
 */
export interface LedgerJournal<R extends ReserveInput, S extends SettleInput, C extends OpenCall> {
  /** Undefined: it has this attempt's reserve already. */
  reserve(command: R, taken: readonly MeterAmount[]): C | undefined;
  settle(call: C, command: S): void;
  /** False: it has this row already. */
  adjust(row: LedgerRow): boolean;
  /** Whether there is a reserve of it, of a call that is not open. */
  hasReserve(attempt: string): boolean;
  /** The reserve of a call that is not open, and its settle. */
  closedCall(attempt: string): CallRows | undefined;
  progress(call: C, command: CommandOf<"progress">): void;
  putKey(record: KeyRecord): void;
  /** What is kept of a key, what the batch has put included. Absent: no change of a key is ever refused. */
  getKey?(digest: string): KeyRecord | undefined;
  /** Absent: the store keeps no accounts. */
  readonly accounts?: AccountRepository | undefined;
  putPrice(hash: string, price: Price): void;
  recordHeartbeat(at: number): void;
}

/**
 * Limits, open calls and the rules of a ledger, over a journal. A store checks each command of a batch, applies all of them, commits
 * what its journal has, and says `done`; when anything of that fails, it says `undo`, and the batch did not happen.
 */
export interface LedgerRules<
  R extends ReserveInput = ReserveInput,
  S extends SettleInput = SettleInput,
  C extends OpenCall = OpenCall,
> {
  /** The command was checked. Throws `invalid` for what cannot be obeyed; the whole batch is then to be undone. */
  apply(command: R | S | OtherCommand): CommandResult;
  /** What these limits have counted, in their order. Changes nothing. */
  limitUsage(limits: readonly Limit[], at: number): readonly LimitUsage[];
  /** The batch did not happen. */
  rollback(): void;
  /** The batch is durable. */
  commit(): void;
  /** Meters that the batch under way has changed. A store that keeps them writes these with its rows. */
  changedMeters(): Iterable<Meter>;
  /** Meters that would say nothing any more; they are forgotten. A store that keeps them takes these out. */
  dropIdleMeters(): readonly string[];
  /** A meter as it was kept. At the start, before calls are restored. */
  loadMeter(meter: Meter): void;
  /** A call that was found open. What it holds is added to its meters. */
  restoreCall(call: C): void;
  /** Crossings of which nothing says that they were told: after a crash, for the next owner to tell. */
  undeliveredThresholds(): readonly ThresholdReached[];
  /** These were told. Like `apply`, a change that a store keeps and then says `done` to. */
  markDelivered(crossings: readonly ThresholdReached[]): void;
  readonly openCalls: OpenCalls<C>;
  readonly meters: ReadonlyMap<string, Meter>;
}

/** A book over a journal. `instance` is asked at each correction: which process writes it. */
export const createLedgerRules = <
  R extends ReserveInput,
  S extends SettleInput,
  C extends OpenCall,
>(
  journal: LedgerJournal<R, S, C>,
  instance: () => string,
): LedgerRules<R, S, C> => new JournaledLedgerRules(journal, instance);

const NO_AMOUNTS: readonly MeterAmount[] = [];

class JournaledLedgerRules<
  R extends ReserveInput,
  S extends SettleInput,
  C extends OpenCall,
> implements LedgerRules<R, S, C> {
  readonly #journal: LedgerJournal<R, S, C>;
  readonly #instance: () => string;
  readonly #calls = createCallTable<C>();
  readonly #meterTable = new MeterTable();
  /** By this batch: what it opened, and what it closed. */
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
      case "price":
        this.#journal.putPrice(command.hash, command.price);
        return ALLOWED;
      case "heartbeat":
        this.#journal.recordHeartbeat(command.at);
        return ALLOWED;
    }
  }

  limitUsage(limits: readonly Limit[], at: number): readonly LimitUsage[] {
    const t = this.#meterTable.timeFor(at);
    return limits.map((limit) => meters.limitUsage(limit, t, this.#meterTable.meters));
  }

  rollback(): void {
    // Opened and closed in one batch: it was not there before.
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

  restoreCall(call: C): void {
    this.#calls.add(call);
    for (const [id, amount] of call.meterAmounts) this.#meterTable.restoreTake(id, amount);
  }

  undeliveredThresholds(): readonly ThresholdReached[] {
    return [...this.#meterTable.meters.values()].flatMap(meters.undeliveredThresholds);
  }

  markDelivered(crossings: readonly ThresholdReached[]): void {
    for (const { scope, unit, per, resetsAt, used } of crossings) {
      const meter = this.#meterTable.meters.get(meters.meterId(scope, unit, per, resetsAt - 1));
      // A window that is long over may have been forgotten.
      if (meter) meters.markDelivered(this.#meterTable.markChanged(meter), { used });
    }
  }

  #reserve(c: R): CommandResult {
    const t = this.#meterTable.advanceTo(c.at);
    const claims = meters.mergeClaims(c.claims, t, this.#meterTable.meters);
    if (this.#calls.get(c.attempt)) return allowedByClaims(claims, t);
    const denied = findDenial(claims, t);
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

  #settle(c: S): CommandResult {
    const call = this.#calls.get(c.attempt);
    if (!call) return this.#settleClosed(c);
    this.#journal.settle(call, c);
    this.#calls.remove(call);
    this.#closedInBatch.push(call);
    const t = this.#meterTable.advanceTo(c.at);
    let crossed = NO_THRESHOLDS;
    for (const [id, amount] of call.meterAmounts) {
      const meter = this.#meterTable.changeById(id);
      meters.settleTake(meter, amount, meteredUsage(meter.unit, amount, c), t);
      crossed = concatThresholds(crossed, meters.takeReachedThresholds(meter));
    }
    return allowedWith(crossed);
  }

  /** No call is open: a repeat, the truth about a call that was presumed, or a mistake. */
  #settleClosed(c: S): CommandResult {
    const past = this.#journal.closedCall(c.attempt);
    if (!past?.settle)
      return fail("invalid", `There is no reserve for ${c.attempt}.`, { code: "unknown_attempt" });
    if (past.settle.outcome !== RECOVERED || c.outcome === RECOVERED) return ALLOWED;
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
      return fail("invalid", `${c.attempt} is not settled, so there is nothing to adjust.`, {
        code: past ? "still_open" : "unknown_attempt",
      });
    return this.#correct(c, past);
  }

  #correct(c: Parameters<typeof adjustRow>[1], past: CallRows): CommandResult {
    this.#meterTable.advanceTo(c.at);
    let crossed = NO_THRESHOLDS;
    if (this.#journal.adjust(adjustRow(past.reserve, c, this.#instance())))
      for (const [id] of past.reserve.meterAmounts) {
        const meter = this.#meterTable.meters.get(id);
        if (!meter) continue;
        meters.correctLevel(this.#meterTable.markChanged(meter), c.costNano);
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
    if (!accounts) return fail("invalid", "This store keeps no accounts.", { code: "no_accounts" });
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

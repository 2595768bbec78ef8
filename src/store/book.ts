// The ledger's rules, pure: commands in, rows and verdicts out. Stores keep the same book; what differs is the journal, where
// rows are kept. An attempt goes ∅ → reserved → settled, and then only adjustments follow.
//
// A batch is all or nothing: after a throw, or when the journal could not commit, undo() takes every change back.
import { fail } from "../plugin/index.ts";
import type {
  StoreCommand,
  KeyRecord,
  Limit,
  LimitCount,
  LimitCrossing,
  Price,
  Reserve,
  Settle,
  Verdict,
} from "../plugin/index.ts";
import { isChange, isKeyChange, type AccountShelf } from "./accounts.ts";
import { createCalls, type CallByAttempt, type OpenCalls } from "./calls.ts";
import { MeterTable } from "./meter-table.ts";
import * as meters from "./meter.ts";
import type { Meter, Taken } from "./meter.ts";
import { adjusted, LATE, LEDGER, PRESUMED, type CallRows, type LedgerRow } from "./row.ts";
import { used } from "./used.ts";
import { both, fine, NO_CROSSINGS, OK, refusing, standing } from "./verdicts.ts";

type At<C> = C & { readonly at: number };
type Told<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

/** What the rules ask of a reserve. What else it says is the journal's alone, so a store may have it in a form of its own. */
export type BookReserve = At<Pick<Reserve, "do" | "attempt" | "claims">>;
/** What the rules ask of a settle, likewise. */
export type BookSettle = At<
  Readonly<Pick<Settle, "do" | "attempt" | "state" | "usage" | "costNano" | "outcome">>
>;
/** The other commands, as they are. */
export type RareCommand = Exclude<StoreCommand, { do: "reserve" | "settle" }>;

/** A call between its reserve and its settle. A journal makes it, and adds what it wants to know again. */
export interface OpenCall extends CallByAttempt {
  /** What it took of each meter. */
  readonly taken: readonly Taken[];
}

/**
 * Where the rows are kept: what a store writes to make a book of its own. The book calls it from `apply`, command by command, and
 * waits for nothing; all of it belongs to the batch's one transaction. A throw ends the batch, which is then to be undone.
 */
export interface Journal<R extends BookReserve, S extends BookSettle, C extends OpenCall> {
  /** Undefined: it has this attempt's reserve already. */
  reserve(command: R, taken: readonly Taken[]): C | undefined;
  settle(call: C, command: S): void;
  /** False: it has this row already. */
  adjust(row: LedgerRow): boolean;
  /** Whether there is a reserve of it, of a call that is not open. */
  knows(attempt: string): boolean;
  /** The reserve of a call that is not open, and its settle. */
  past(attempt: string): CallRows | undefined;
  progress(call: C, command: Told<"progress">): void;
  key(record: KeyRecord): void;
  /** What is kept of a key, what the batch has put included. Absent: no change of a key is ever refused. */
  keyOf?(digest: string): KeyRecord | undefined;
  /** Absent: the store keeps no accounts. */
  readonly accounts?: AccountShelf | undefined;
  price(hash: string, price: Price): void;
  alive(at: number): void;
}

/**
 * Limits, open calls and the rules of a ledger, over a journal. A store checks each command of a batch, applies all of them, commits
 * what its journal has, and says `done`; when anything of that fails, it says `undo`, and the batch did not happen.
 */
export interface Book<
  R extends BookReserve = BookReserve,
  S extends BookSettle = BookSettle,
  C extends OpenCall = OpenCall,
> {
  /** The command was checked. Throws `invalid` for what cannot be obeyed; the whole batch is then to be undone. */
  apply(command: R | S | RareCommand): Verdict;
  /** What these limits have counted, in their order. Changes nothing. */
  counted(limits: readonly Limit[], at: number): readonly LimitCount[];
  /** The batch did not happen. */
  undo(): void;
  /** The batch is durable. */
  done(): void;
  /** Meters that the batch under way has changed. A store that keeps them writes these with its rows. */
  changed(): Iterable<Meter>;
  /** Meters that would say nothing any more; they are forgotten. A store that keeps them takes these out. */
  sweep(): readonly string[];
  /** A meter as it was kept. At the start, before calls are restored. */
  load(meter: Meter): void;
  /** A call that was found open. What it holds is added to its meters. */
  restore(call: C): void;
  /** Crossings of which nothing says that they were told: after a crash, for the next owner to tell. */
  untold(): readonly LimitCrossing[];
  /** These were told. Like `apply`, a change that a store keeps and then says `done` to. */
  told(crossings: readonly LimitCrossing[]): void;
  readonly open: OpenCalls<C>;
  readonly meters: ReadonlyMap<string, Meter>;
}

/** A book over a journal. `instance` is asked at each correction: which process writes it. */
export const createBook = <R extends BookReserve, S extends BookSettle, C extends OpenCall>(
  journal: Journal<R, S, C>,
  instance: () => string,
): Book<R, S, C> => new JournaledBook(journal, instance);

const NOTHING: readonly Taken[] = [];

class JournaledBook<
  R extends BookReserve,
  S extends BookSettle,
  C extends OpenCall,
> implements Book<R, S, C> {
  readonly #journal: Journal<R, S, C>;
  readonly #instance: () => string;
  readonly #open = createCalls<C>();
  readonly #table = new MeterTable();
  /** By this batch: what it opened, and what it closed. */
  #begun: C[] = [];
  #ended: C[] = [];

  constructor(journal: Journal<R, S, C>, instance: () => string) {
    this.#journal = journal;
    this.#instance = instance;
  }

  get open(): OpenCalls<C> {
    return this.#open;
  }

  get meters(): ReadonlyMap<string, Meter> {
    return this.#table.all;
  }

  apply(command: R | S | RareCommand): Verdict {
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
        return this.#key(command);
      case "account":
        return this.#account(command);
      case "price":
        this.#journal.price(command.hash, command.price);
        return OK;
      case "alive":
        this.#journal.alive(command.at);
        return OK;
    }
  }

  counted(limits: readonly Limit[], at: number): readonly LimitCount[] {
    const t = this.#table.moment(at);
    return limits.map((limit) => meters.counted(limit, t, this.#table.all));
  }

  undo(): void {
    // Opened and closed in one batch: it was not there before.
    for (const call of this.#ended) this.#open.add(call);
    for (const call of this.#begun) this.#open.remove(call);
    this.#table.undo();
    this.#forget();
  }

  done(): void {
    this.#table.done();
    this.#forget();
  }

  changed(): Iterable<Meter> {
    return this.#table.changed;
  }

  sweep(): readonly string[] {
    return this.#table.sweep();
  }

  load(meter: Meter): void {
    this.#table.load(meter);
  }

  restore(call: C): void {
    this.#open.add(call);
    for (const [id, amount] of call.taken) this.#table.retake(id, amount);
  }

  untold(): readonly LimitCrossing[] {
    return [...this.#table.all.values()].flatMap(meters.untold);
  }

  told(crossings: readonly LimitCrossing[]): void {
    for (const { scope, unit, per, resetsAt, used } of crossings) {
      const meter = this.#table.all.get(meters.meterId(scope, unit, per, resetsAt - 1));
      // A window that is long over may have been forgotten.
      if (meter) meters.tell(this.#table.touch(meter), { used });
    }
  }

  #reserve(c: R): Verdict {
    const t = this.#table.now(c.at);
    const claims = meters.claimed(c.claims, t, this.#table.all);
    if (this.#open.get(c.attempt)) return standing(claims, t);
    const denied = refusing(claims, t);
    if (denied) return this.#journal.knows(c.attempt) ? standing(claims, t) : denied;
    const taken = claims.length === 0 ? NOTHING : claims.map(meters.taking);
    const call = this.#journal.reserve(c, taken);
    if (call) {
      for (const claim of claims) {
        this.#table.touch(claim.meter);
        meters.take(claim, t);
      }
      this.#open.add(call);
      this.#begun.push(call);
    }
    return standing(claims, t);
  }

  #settle(c: S): Verdict {
    const call = this.#open.get(c.attempt);
    if (!call) return this.#late(c);
    this.#journal.settle(call, c);
    this.#open.remove(call);
    this.#ended.push(call);
    const t = this.#table.now(c.at);
    let crossed = NO_CROSSINGS;
    for (const [id, amount] of call.taken) {
      const meter = this.#table.touched(id);
      meters.trueUp(meter, amount, used(meter.unit, amount, c), t);
      crossed = both(crossed, meters.crossings(meter));
    }
    return fine(crossed);
  }

  /** No call is open: a repeat, the truth about a call that was presumed, or a mistake. */
  #late(c: S): Verdict {
    const past = this.#journal.past(c.attempt);
    if (!past?.settle)
      return fail("invalid", `There is no reserve for ${c.attempt}.`, { code: "unknown_attempt" });
    if (past.settle.outcome !== PRESUMED || c.outcome === PRESUMED) return OK;
    const costNano = (c.costNano ?? past.settle.costNano ?? 0n) - (past.settle.costNano ?? 0n);
    const { attempt, at, usage } = c;
    return this.#correct({ attempt, at, usage, costNano, reason: LATE, actor: LEDGER }, past);
  }

  #adjust(c: Told<"adjust">): Verdict {
    const past = this.#journal.past(c.attempt);
    if (!past?.settle)
      return fail("invalid", `${c.attempt} is not settled, so there is nothing to adjust.`, {
        code: past ? "still_open" : "unknown_attempt",
      });
    return this.#correct(c, past);
  }

  #correct(c: Parameters<typeof adjusted>[1], past: CallRows): Verdict {
    this.#table.now(c.at);
    let crossed = NO_CROSSINGS;
    if (this.#journal.adjust(adjusted(past.reserve, c, this.#instance())))
      for (const [id] of past.reserve.taken) {
        const meter = this.#table.all.get(id);
        if (!meter) continue;
        meters.correct(this.#table.touch(meter), c.costNano);
        crossed = both(crossed, meters.crossings(meter));
      }
    return fine(crossed);
  }

  #key({ key }: Told<"key">): Verdict {
    const before = this.#journal.keyOf?.(key.digest);
    if (!before || isKeyChange(key, before)) this.#journal.key(key);
    return OK;
  }

  #account({ account }: Told<"account">): Verdict {
    const { accounts } = this.#journal;
    if (!accounts) return fail("invalid", "This store keeps no accounts.", { code: "no_accounts" });
    if (isChange(account, accounts)) accounts.put(account);
    return OK;
  }

  #progress(c: Told<"progress">): Verdict {
    const call = this.#open.get(c.attempt);
    if (call) this.#journal.progress(call, c);
    return OK;
  }

  #forget(): void {
    if (this.#begun.length > 0) this.#begun = [];
    if (this.#ended.length > 0) this.#ended = [];
  }
}

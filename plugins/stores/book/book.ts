// The ledger's rules, pure: commands in, rows and verdicts out. Two stores keep the same book; what differs is
// the journal, where rows are kept. An attempt goes ∅ → reserved → settled, and then only adjustments follow.
//
// A batch is all or nothing: after a throw, or when the journal could not commit, undo() takes every change back.
import { fail } from "tollgate/plugin";
import type {
  StoreCommand,
  KeyRecord,
  LimitCrossing,
  Price,
  Reserve,
  Settle,
  Verdict,
} from "tollgate/plugin";
import { createCalls, type Named, type OpenCalls } from "./calls.ts";
import * as meters from "./meter.ts";
import type { Claim, Meter, Taken } from "./meter.ts";
import { adjusted, LATE, LEDGER, PRESUMED, type Past, type Row } from "./row.ts";
import { used } from "./used.ts";

type At<C> = C & { readonly at: number };
type Told<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

/** What the rules ask of the two commands that every call has. What else these say is the journal's alone. */
export type Reserving = At<Pick<Reserve, "do" | "attempt" | "claims">>;
export type Settling = At<
  Readonly<Pick<Settle, "do" | "attempt" | "state" | "usage" | "costNano" | "outcome">>
>;
export type Rare = Exclude<StoreCommand, { do: "reserve" | "settle" }>;

/** A call between its reserve and its settle. */
export interface Call extends Named {
  readonly taken: readonly Taken[];
}

/** Where the rows are kept. All of it belongs to the batch's one transaction. */
export interface Journal<R extends Reserving, S extends Settling, C extends Call> {
  /** Undefined: it has this attempt's reserve already. */
  reserve(command: R, taken: readonly Taken[]): C | undefined;
  settle(call: C, command: S): void;
  /** False: it has this row already. */
  adjust(row: Row): boolean;
  /** Whether there is a reserve of it, of a call that is not open. */
  knows(attempt: string): boolean;
  past(attempt: string): Past | undefined;
  progress(call: C, command: Told<"progress">): void;
  key(record: KeyRecord): void;
  price(hash: string, price: Price): void;
  alive(at: number): void;
}

export interface Book<
  R extends Reserving = Reserving,
  S extends Settling = Settling,
  C extends Call = Call,
> {
  /** The command was checked. */
  apply(command: R | S | Rare): Verdict;
  /** The batch did not happen. */
  undo(): void;
  /** The batch is durable. */
  done(): void;
  /** By this batch, until it is done. */
  changed(): Iterable<Meter>;
  /** Meters that would say nothing any more; they are forgotten. */
  sweep(): readonly string[];
  load(meter: Meter): void;
  restore(call: C): void;
  readonly open: OpenCalls<C>;
  readonly meters: ReadonlyMap<string, Meter>;
}

const OK: Verdict = { ok: true };
const NOTHING: readonly Taken[] = [];
const NO_CROSSINGS: readonly LimitCrossing[] = [];
/** Mostly there are none, and then nothing is made. */
const both = (some: readonly LimitCrossing[], more: readonly LimitCrossing[]) =>
  more.length === 0 ? some : [...some, ...more];
const fine = (crossed: readonly LimitCrossing[]): Verdict =>
  crossed.length === 0 ? OK : { ok: true, crossed };
/** Commands of several writers come a little out of order; more than this is a clock that was set back. */
const DISORDER_MS = 10_000;

export function createBook<R extends Reserving, S extends Settling, C extends Call>(
  journal: Journal<R, S, C>,
  instance: string,
): Book<R, S, C> {
  const open = createCalls<C>();
  const all = new Map<string, Meter>();
  /** By this batch: what it opened, what it closed, and the meters as they were. */
  let begun: C[] = [];
  let ended: C[] = [];
  let changed: Meter[] = [];
  let undoing: (() => void)[] = [];
  let clock = 0;
  let clockBefore = 0;
  let sweepAt = 512;

  /** Never back by a little; back by a lot is where time goes on, for the meters too. */
  function now(at: number): number {
    if (at < clock - DISORDER_MS) {
      for (const meter of all.values()) if (meter.at > at) touch(meter).at = at;
      clock = at;
    } else clock = Math.max(at, clock);
    return clock;
  }

  /** The meter, about to be changed. */
  function touch(meter: Meter): Meter {
    if (meter.touched) return meter;
    if (all.get(meter.id) === meter) {
      const before = { ...meter };
      undoing.push(() => Object.assign(meter, before));
    } else {
      all.set(meter.id, meter);
      undoing.push(() => all.delete(meter.id));
    }
    meter.touched = true;
    changed.push(meter);
    return meter;
  }

  const standing = (claims: readonly Claim[], t: number): Verdict =>
    claims.length === 0
      ? OK
      : { ok: true, limits: claims.map((claim) => meters.state(claim, meters.look(claim, t))) };

  function reserve(c: R): Verdict {
    const t = now(c.at);
    const claims = meters.claimed(c.claims, t, all);
    if (open.get(c.attempt)) return standing(claims, t);
    const denied = refusing(claims, t);
    if (denied) return journal.knows(c.attempt) ? standing(claims, t) : denied;
    const call = journal.reserve(c, claims.length === 0 ? NOTHING : claims.map(meters.taking));
    if (call) {
      for (const claim of claims) {
        touch(claim.meter);
        meters.take(claim, t);
      }
      open.add(call);
      begun.push(call);
    }
    return standing(claims, t);
  }

  /** Of the claims that cannot be met, the one that keeps waiting longest. */
  function refusing(claims: readonly Claim[], t: number): Verdict | undefined {
    let worst: { claim: Claim; seen: meters.Seen } | undefined;
    for (const claim of claims) {
      const seen = meters.look(claim, t);
      if (seen.waitMs > (worst?.seen.waitMs ?? 0)) worst = { claim, seen };
    }
    return (
      worst && {
        ok: false,
        denied: meters.state(worst.claim, worst.seen),
        retryAfterMs: worst.seen.waitMs,
      }
    );
  }

  function settle(c: S): Verdict {
    const call = open.get(c.attempt);
    if (!call) return late(c);
    journal.settle(call, c);
    open.remove(call);
    ended.push(call);
    const t = now(c.at);
    let crossed = NO_CROSSINGS;
    for (const [id, amount] of call.taken) {
      const meter = touch(all.get(id) ?? meters.newMeter(id));
      const before = meter.level;
      meters.trueUp(meter, amount, used(meter.unit, amount, c), t);
      crossed = both(crossed, meters.crossings(meter, before));
    }
    return fine(crossed);
  }

  /** No call is open: a repeat, the truth about a call that was presumed, or a mistake. */
  function late(c: S): Verdict {
    const past = journal.past(c.attempt);
    if (!past?.settle)
      return fail("invalid", `There is no reserve for ${c.attempt}.`, { code: "unknown_attempt" });
    if (past.settle.outcome !== PRESUMED || c.outcome === PRESUMED) return OK;
    const costNano = (c.costNano ?? past.settle.costNano ?? 0n) - (past.settle.costNano ?? 0n);
    const { attempt, at, usage } = c;
    return correct({ attempt, at, usage, costNano, reason: LATE, actor: LEDGER }, past);
  }

  function adjust(c: Told<"adjust">): Verdict {
    const past = journal.past(c.attempt);
    if (!past?.settle)
      return fail("invalid", `${c.attempt} is not settled, so there is nothing to adjust.`, {
        code: past ? "still_open" : "unknown_attempt",
      });
    return correct(c, past);
  }

  function correct(c: Parameters<typeof adjusted>[1], past: Past): Verdict {
    now(c.at);
    let crossed = NO_CROSSINGS;
    if (journal.adjust(adjusted(past.reserve, c, instance)))
      for (const [id] of past.reserve.taken) {
        const meter = all.get(id);
        if (!meter) continue;
        const before = meter.level;
        meters.correct(touch(meter), c.costNano);
        crossed = both(crossed, meters.crossings(meter, before));
      }
    return fine(crossed);
  }

  function progress(c: Told<"progress">): Verdict {
    const call = open.get(c.attempt);
    if (call) journal.progress(call, c);
    return OK;
  }

  function forget(): void {
    if (begun.length > 0) begun = [];
    if (ended.length > 0) ended = [];
    if (undoing.length > 0) undoing = [];
    for (const meter of changed) meter.touched = false;
    if (changed.length > 0) changed = [];
  }

  return {
    open,
    meters: all,
    apply(command) {
      switch (command.do) {
        case "reserve":
          return reserve(command);
        case "settle":
          return settle(command);
        case "progress":
          return progress(command);
        case "adjust":
          return adjust(command);
        case "key":
          journal.key(command.key);
          return OK;
        case "price":
          journal.price(command.hash, command.price);
          return OK;
        case "alive":
          journal.alive(command.at);
          return OK;
      }
    },
    undo() {
      // Opened and closed in one batch: it was not there before.
      for (const call of ended) open.add(call);
      for (const call of begun) open.remove(call);
      for (const step of undoing.reverse()) step();
      clock = clockBefore;
      forget();
    },
    done() {
      clockBefore = clock;
      forget();
    },
    changed: () => changed,
    sweep() {
      if (all.size < sweepAt) return [];
      const gone = [...all.values()].filter((m) => meters.spent(m, clock)).map((m) => m.id);
      for (const id of gone) all.delete(id);
      sweepAt = Math.max(512, all.size * 2);
      return gone;
    },
    load(meter) {
      all.set(meter.id, meter);
      clock = clockBefore = Math.max(clock, meter.at);
    },
    restore(call) {
      open.add(call);
      for (const [id, amount] of call.taken) {
        const meter = all.get(id) ?? meters.newMeter(id);
        all.set(id, meter);
        meters.retake(meter, amount);
      }
    },
  };
}

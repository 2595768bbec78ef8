// The ledger's rules, pure: commands in, rows and verdicts out. Two stores keep the same book; what differs is
// the journal, where rows are kept. An attempt goes ∅ → reserved → settled, and then only adjustments follow.
//
// A batch is all or nothing: after a throw, or when the journal could not commit, undo() takes every change back.
import { fail } from "tollgate/plugin";
import type { Command, KeyRecord, Price, Reserve, Settle, Usage, Verdict } from "tollgate/plugin";
import { check } from "./check.ts";
import * as meters from "./meter.ts";
import type { Claim, Meter } from "./meter.ts";
import { adjusted, LATE, LEDGER, PRESUMED, reserved, settled, type Past, type Row } from "./row.ts";
import { used } from "./used.ts";

/** Where the rows are kept. All of it belongs to the batch's one transaction. */
export interface Journal {
  /** False: it has this row already (one reserve and one settle an attempt, each adjustment once). */
  write(row: Row): boolean;
  past(attempt: string): Past | undefined;
  progress(attempt: string, usage: Usage, costNano: bigint | null): void;
  key(record: KeyRecord): void;
  price(hash: string, price: Price): void;
  alive(at: number): void;
}

/** A call between its reserve and its settle, and what was last heard of it. */
export interface Open {
  row: Row;
  usage: Usage;
  costNano: bigint | null;
}

export interface Book {
  apply(command: Command): Verdict;
  /** Writes down what a dead owner left open. */
  presume(open: Open, at: number): void;
  /** The batch did not happen. */
  undo(): void;
  /** The batch is durable. */
  done(): void;
  /** By this batch, until it is done. */
  changed(): Iterable<Meter>;
  /** Meters that would say nothing any more; they are forgotten. */
  sweep(): readonly string[];
  load(meter: Meter): void;
  restore(open: Open): void;
  readonly open: ReadonlyMap<string, Open>;
  readonly meters: ReadonlyMap<string, Meter>;
}

const OK: Verdict = { ok: true };
/** Commands of several writers come a little out of order; more than this is a clock that was set back. */
const DISORDER_MS = 10_000;

export function createBook(journal: Journal, instance: string): Book {
  const open = new Map<string, Open>();
  const all = new Map<string, Meter>();
  const changed = new Map<string, Meter>();
  let undoing: (() => void)[] = [];
  let clock = 0;
  let clockBefore = 0;
  let sweepAt = 512;

  /** Never back by a little; back by a lot is where time goes on, for the meters too. */
  function now(at: number): number {
    if (at < clock - DISORDER_MS) {
      for (const meter of all.values()) if (meter.at > at) touch(meter.id).at = at;
      clock = at;
    } else clock = Math.max(at, clock);
    return clock;
  }

  /** The meter, about to be changed. */
  function touch(id: string): Meter {
    const found = all.get(id);
    const meter = found ?? meters.newMeter(id);
    if (!found) {
      all.set(id, meter);
      undoing.push(() => all.delete(id));
    } else if (!changed.has(id)) {
      const before = { ...meter };
      undoing.push(() => Object.assign(meter, before));
    }
    changed.set(id, meter);
    return meter;
  }

  const look = (claim: Claim, t: number): meters.Seen =>
    meters.look(all.get(claim.id) ?? meters.newMeter(claim.id), claim, t);

  const standing = (claims: readonly Claim[], t: number): Verdict =>
    claims.length === 0
      ? OK
      : { ok: true, limits: claims.map((claim) => meters.state(claim, look(claim, t))) };

  function reserve(c: Reserve & { at: number }): Verdict {
    const t = now(c.at);
    const claims = meters.claimed(c.claims, t);
    const denied = claims
      .map((claim) => ({ claim, seen: look(claim, t) }))
      .filter(({ seen }) => seen.waitMs > 0)
      .sort((a, b) => b.seen.waitMs - a.seen.waitMs)[0];
    if (denied && !journal.past(c.attempt))
      return {
        ok: false,
        denied: meters.state(denied.claim, denied.seen),
        retryAfterMs: denied.seen.waitMs,
      };
    const row = reserved(c, instance, claims.map(meters.taking));
    if (!denied && journal.write(row)) {
      for (const claim of claims) meters.take(touch(claim.id), claim, t);
      begin({ row, usage: {}, costNano: null });
    }
    return standing(claims, t);
  }

  function begin(call: Open): void {
    open.set(call.row.attempt, call);
    undoing.push(() => open.delete(call.row.attempt));
  }

  function settle(c: Settle & { at: number }): Verdict {
    const call = open.get(c.attempt);
    if (!call) return late(c);
    const row = settled(call.row, c, instance);
    journal.write(row);
    open.delete(c.attempt);
    undoing.push(() => open.set(c.attempt, call));
    const t = now(c.at);
    for (const [id, amount] of call.row.taken) {
      const meter = touch(id);
      meters.trueUp(meter, amount, used(meter.unit, amount, row), t);
    }
    return OK;
  }

  /** No call is open: a repeat, the truth about a call that was presumed, or a mistake. */
  function late(c: Settle & { at: number }): Verdict {
    const past = journal.past(c.attempt);
    if (!past?.settle)
      return fail("invalid", `There is no reserve for ${c.attempt}.`, { code: "unknown_attempt" });
    if (past.settle.outcome !== PRESUMED || c.outcome === PRESUMED) return OK;
    const costNano = (c.costNano ?? past.settle.costNano ?? 0n) - (past.settle.costNano ?? 0n);
    const { attempt, at, usage } = c;
    return correct({ attempt, at, usage, costNano, reason: LATE, actor: LEDGER }, past);
  }

  function adjust(c: Extract<Command, { do: "adjust" }>): Verdict {
    const past = journal.past(c.attempt);
    if (!past?.settle)
      return fail("invalid", `${c.attempt} is not settled, so there is nothing to adjust.`, {
        code: past ? "still_open" : "unknown_attempt",
      });
    return correct(c, past);
  }

  function correct(c: Parameters<typeof adjusted>[1], past: Past): Verdict {
    now(c.at);
    if (journal.write(adjusted(past.reserve, c, instance)))
      for (const [id] of past.reserve.taken) if (all.has(id)) meters.correct(touch(id), c.costNano);
    return OK;
  }

  function progress(c: Extract<Command, { do: "progress" }>): Verdict {
    const call = open.get(c.attempt);
    if (!call) return OK;
    const before = { ...call };
    undoing.push(() => Object.assign(call, before));
    call.usage = c.usage;
    call.costNano = c.costNano ?? null;
    journal.progress(c.attempt, call.usage, call.costNano);
    return OK;
  }

  return {
    open,
    meters: all,
    apply(command) {
      check(command);
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
    presume({ row, usage, costNano }, at) {
      settle({
        do: "settle",
        attempt: row.attempt,
        // Not before it began, whatever the clock says now.
        at: Math.max(at, row.at),
        // Without a price there is no amount to estimate.
        state: costNano === null && row.holdNano === null ? "unpriced" : "estimated",
        usage,
        costNano: costNano ?? row.holdNano,
        outcome: PRESUMED,
      });
    },
    undo() {
      for (const step of undoing.reverse()) step();
      undoing = [];
      clock = clockBefore;
      changed.clear();
    },
    done() {
      clockBefore = clock;
      undoing = [];
      changed.clear();
    },
    changed: () => changed.values(),
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
      open.set(call.row.attempt, call);
      for (const [id, amount] of call.row.taken) {
        const meter = all.get(id) ?? meters.newMeter(id);
        all.set(id, meter);
        meters.retake(meter, amount);
      }
    },
  };
}

// A ledger in its simplest form: a map of calls and sums over it. Slow, and obviously correct.
import type { Limit } from "../../../src/plugin/store/limit.ts";
import type { StoreCommand } from "../../../src/plugin/store/store.ts";

export type Op = Extract<StoreCommand, { do: "reserve" | "settle" | "progress" | "adjust" }>;
type Claim = Limit & { take: bigint };

interface Call {
  at: number;
  claims: readonly (Claim & { window: string })[];
  hold: bigint | null;
  heard?: bigint | null | undefined;
  settled?: { state: string; cost: bigint | null; tokens: bigint | null; recovered: boolean };
  adjusted: Map<string, bigint>;
}

export interface Expected {
  ok: boolean;
  left: bigint[];
}

export class Impossible extends Error {}

export class LedgerModel {
  calls = new Map<string, Call>();
  /** Requests per minute: used allowance in milliseconds, and its time. */
  rates = new Map<string, { used: number; at: number }>();
  clock = 0;

  copy(): LedgerModel {
    return Object.assign(new LedgerModel(), structuredClone({ ...this }));
  }

  apply(op: Op): Expected | undefined {
    const call = this.calls.get(op.attempt);
    if (op.do === "progress") {
      if (call && !call.settled) call.heard = op.costNano;
      return undefined;
    }
    if (op.do === "reserve") return this.reserve(op);
    if (op.do === "settle") {
      if (!call) throw new Impossible();
      const truth = {
        state: op.state,
        cost: op.costNano,
        tokens: BigInt(op.usage.output ?? 0),
        recovered: false,
      };
      if (!call.settled) this.settle(call, op.at, truth);
      else if (call.settled.recovered) {
        this.now(op.at);
        const before = call.settled.cost ?? 0n;
        if (!call.adjusted.has("late")) call.adjusted.set("late", (op.costNano ?? before) - before);
      }
      return undefined;
    }
    if (!call?.settled) throw new Impossible();
    this.now(op.at);
    call.adjusted.set(`${op.at} ${op.costNano} ${op.reason}`, op.costNano);
    return undefined;
  }

  private reserve(op: Extract<Op, { do: "reserve" }>): Expected {
    const now = this.now(op.at);
    const claims = op.claims.map((c) => ({
      ...c,
      window: `${c.scope} ${c.unit} ${c.per} ${windowName(c.per, now)}`,
    }));
    const left = (): bigint[] => claims.map((c) => this.left(c, now));
    if (this.calls.has(op.attempt)) return { ok: true, left: left() };
    const room = claims.every((c) => c.take === 0n || this.left(c, now) >= c.take);
    if (!room) return { ok: false, left: [] };
    this.calls.set(op.attempt, { at: op.at, claims, hold: op.holdNano, adjusted: new Map() });
    for (const c of claims)
      if (c.per === "minute") this.rates.set(c.scope, this.rate(c, now, Number(c.take)));
    return { ok: true, left: left() };
  }

  /** The limit less everything that calls have reserved or used in that window. */
  private left(claim: Claim & { window: string }, now: number): bigint {
    if (claim.per === "minute") {
      const { used } = this.rate(claim, now, 0);
      return BigInt(Math.floor((60_000 - used) / (60_000 / Number(claim.max))));
    }
    let left = BigInt(claim.max);
    for (const call of this.calls.values())
      for (const held of call.claims)
        if (held.window === claim.window) left -= this.counts(call, held);
    return left > 0n ? left : 0n;
  }

  private counts({ settled, adjusted }: Call, { unit, per, take }: Claim): bigint {
    if (per === "open") return settled ? 0n : take;
    if (!settled || unit === "requests") return take;
    const later = unit === "nano_usd" ? [...adjusted.values()].reduce((a, b) => a + b, 0n) : 0n;
    if (settled.state === "void") return later;
    return later + (unit === "nano_usd" ? (settled.cost ?? take) : (settled.tokens ?? take));
  }

  private rate({ scope, max }: Claim, now: number, take: number): { used: number; at: number } {
    const { used, at } = this.rates.get(scope) ?? { used: 0, at: now };
    return {
      used: Math.max(0, used - Math.max(0, now - at)) + take * (60_000 / Number(max)),
      at: Math.max(at, now),
    };
  }

  /** Open calls are recovered with their last progress, or with their reservation. */
  crash(at: number): number {
    this.clock = Math.max(0, ...[...this.rates.values()].map((rate) => rate.at));
    const open = [...this.calls.values()].filter(({ settled }) => !settled);
    // One moment for all: no time passes between them.
    const moment = Math.max(at, ...open.map((call) => call.at));
    for (const call of open) {
      const cost = call.heard ?? call.hold;
      this.settle(call, moment, {
        state: cost === null ? "unpriced" : "estimated",
        cost,
        tokens: call.heard === undefined ? null : 1n,
        recovered: true,
      });
    }
    return open.length;
  }

  private settle(call: Call, at: number, how: NonNullable<Call["settled"]>): void {
    const now = this.now(at);
    call.settled = how;
    for (const c of call.claims)
      if (c.per === "minute") this.rates.set(c.scope, this.rate(c, now, 0));
  }

  private now(at: number): number {
    if (at < this.clock - 10_000) {
      for (const rate of this.rates.values()) rate.at = Math.min(rate.at, at);
      this.clock = at;
    }
    return (this.clock = Math.max(this.clock, at));
  }

  total(): bigint {
    let sum = 0n;
    for (const { settled, adjusted } of this.calls.values())
      sum += (settled?.cost ?? 0n) + [...adjusted.values()].reduce((a, b) => a + b, 0n);
    return sum;
  }
}

const windowName = (per: Limit["per"], at: number): string =>
  per === "day"
    ? new Date(at).toISOString().slice(0, 10)
    : per === "month"
      ? new Date(at).toISOString().slice(0, 7)
      : "";

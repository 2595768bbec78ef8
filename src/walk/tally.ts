// What one call used and what it costs: every number that a client reads or the ledger prices comes from here.
import { cost, priceHash } from "../money/price.ts";
import type { FinishReason, UsageSeen } from "../model/event.ts";
import type { Fault } from "../model/error.ts";
import type { Price } from "../model/facts.ts";
import { mergeUsage, UNITS, type Unit, type Usage } from "../model/usage.ts";
import type { Opt } from "../model/values.ts";
import type { CallRecord, CallState } from "../plugin/call.ts";
import type { Command, Part, Settle } from "../plugin/store.ts";
import type { Attempt } from "./call.ts";

/** Three bytes a token is above what any text has; a presumed bill is at least the real one. */
const BYTES_A_TOKEN = 3;
/** Beyond this a count is a fault of who reported it. */
const SANE = 100_000_000;

export class Tally {
  readonly call: Attempt;
  /** Upstream has taken the work on: from here a failure is estimated, never void. */
  accepted = false;
  /** The finish has been seen: whatever goes wrong upstream after it changes nothing. */
  ended = false;
  upstreamId: string | undefined;
  /** Text that came by, for estimates. */
  textBytes = 0;
  /** All that came by: the estimate of a relay that does not say how much of it is text. */
  passedBytes = 0;
  inputEstimate = 0;
  headMs: number | undefined;
  contentMs: number | undefined;
  readonly #seen = new Map<string, UsageSeen>();
  #doubtful = false;
  #upstreamCost: bigint | undefined;
  #record: CallRecord | undefined;

  constructor(call: Attempt) {
    this.call = call;
  }

  saw(seen: UsageSeen): void {
    const clean: { -readonly [U in Unit]?: Opt<number> } = {};
    for (const unit of UNITS) {
      const count = seen.usage[unit];
      if (count === undefined) continue;
      if (Number.isFinite(count) && count >= 0 && count <= SANE) clean[unit] = count;
      else this.#doubtful = true;
    }
    const key = seen.model ?? "";
    const before = this.#seen.get(key);
    this.#seen.set(key, { ...before, ...seen, usage: mergeUsage(before?.usage ?? {}, clean) });
    if (seen.costNano !== undefined) this.#upstreamCost = seen.costNano;
  }

  /** Everything so far, estimates where upstream said nothing: the one value that is shown and priced. */
  usage(): { usage: Usage; estimated: boolean } {
    let usage: Usage = {};
    const reports = [...this.#seen.values()];
    if (reports.length === 1) usage = reports[0]!.usage;
    else for (const { usage: more } of reports) usage = sum(usage, more);
    const complete =
      !this.#doubtful &&
      reports.length > 0 &&
      (usage.output !== undefined || usage.images !== undefined || usage.image_out !== undefined);
    if (complete) return { usage, estimated: false };
    const said = Math.ceil((this.textBytes || this.passedBytes) / BYTES_A_TOKEN);
    return {
      usage: {
        ...usage,
        input: usage.input ?? this.inputEstimate,
        output: Math.max(usage.output ?? 0, said),
      },
      estimated: true,
    };
  }

  /** The price of the row, as pinned when it was reserved. */
  get price(): Price | undefined {
    return this.call.info.price;
  }

  /** The settle row and the record of this call. `cut`: the answer did not reach its end. */
  settle(of: {
    at: number;
    outcome: string;
    finish?: FinishReason | undefined;
    fault?: Fault | undefined;
    cut: boolean;
  }): { command: Settle & { at: number }; record: CallRecord } {
    const dead = of.cut && !this.accepted;
    const { usage, estimated } = dead ? { usage: {}, estimated: false } : this.usage();
    const costNano = dead ? 0n : this.#cost(usage, of.at);
    const state: CallState = dead
      ? "void"
      : of.cut || estimated
        ? "estimated"
        : costNano === null
          ? "unpriced"
          : "exact";
    const ms = {
      ...(this.headMs !== undefined && { head: this.headMs }),
      ...(this.contentMs !== undefined && { content: this.contentMs }),
      total: Math.round(performance.now() - this.call.started),
    };
    const parts = this.#parts(of.at);
    this.#record = {
      attempt: this.call.attempt,
      n: this.call.n,
      candidate: this.call.seat,
      state,
      usage,
      costNano,
      ...(of.fault && { fault: of.fault }),
      ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
      ms,
    };
    return {
      record: this.#record,
      command: {
        do: "settle",
        at: of.at,
        attempt: this.call.attempt,
        state,
        usage,
        costNano,
        outcome: of.outcome,
        ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
        ...(this.#upstreamCost !== undefined && { upstreamCostNano: this.#upstreamCost }),
        ...(parts && { parts }),
        ...(of.finish && { finish: of.finish }),
        ms,
      },
    };
  }

  /** What a crash now would be presumed from. */
  progress(at: number): Extract<Command, { do: "progress" }> & { at: number } {
    const { usage } = this.usage();
    return {
      do: "progress",
      at,
      attempt: this.call.attempt,
      usage,
      costNano: this.#cost(usage, at),
    };
  }

  #cost(usage: Usage, at: number): bigint | null {
    const price = this.price;
    if (!price) return null;
    const reports = [...this.#seen.values()];
    if (reports.length <= 1) return cost(usage, price, { tier: reports[0]?.tier, at });
    let total = 0n;
    for (const one of reports) {
      const part = cost(one.usage, price, { tier: one.tier, at });
      if (part === null) return null;
      total += part;
    }
    return total;
  }

  /** A bill in parts keeps its parts. */
  #parts(at: number): readonly Part[] | undefined {
    if (this.#seen.size < 2) return undefined;
    const price = this.price;
    return [...this.#seen.values()].map(({ model, tier, usage }) => ({
      model: model ?? this.call.model,
      tier,
      usage,
      price: price ? priceHash(price) : null,
      costNano: price ? cost(usage, price, { tier, at }) : null,
    }));
  }
}

function sum(a: Usage, b: Usage): Usage {
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...a };
  for (const unit of UNITS)
    if (b[unit] !== undefined) both[unit] = (both[unit] ?? 0) + (b[unit] ?? 0);
  return both;
}

// What one call used and what it costs: every number that a client reads or the ledger prices comes from here.
import { hold, type Ask, type Hold } from "../../money/estimate.ts";
import type { FinishReason, ModelEvent, UsageSeen } from "../../model/event.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import type { Fault } from "../../model/error.ts";
import { STAGES, type CallStage } from "../../model/retry.ts";
import { exceed } from "../../model/excess.ts";
import type { Price } from "../../model/facts.ts";
import { inputTokens, outputTokens, UNITS, type Unit, type Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { CallRecord, CallState } from "../../plugin/call.ts";
import type { StoreCommand, Settle } from "../../plugin/store.ts";
import { isLocal } from "../upstream/blame.ts";
import { awaited } from "../upstream/times.ts";
import type { HostCall } from "../call.ts";
import { counted, hasTokens, isWhole, largest, sum, uncounted } from "./counts.ts";
import type { ModelIndex } from "./model-prices.ts";
import { larger, Pricing, type Priced } from "./pricing.ts";
import { usually } from "./price-terms.ts";
import { withNames } from "./reported-names.ts";

/**
 * For an answer that no upstream has counted. Ordinary text has more than three bytes a token, so the guess is not too low. Text
 * that is made to be dear has fewer ("a b c" has two), and is billed for less. A hard budget holds all the same, because its hold
 * counts every token that there may be.
 */
const BYTES_A_TOKEN = 3;
/**
 * What upstream may make until its next report: so many seconds at its pace so far, and at least some hundred tokens. After a
 * crash a call is billed from the last report, and should not be billed for less than the provider will.
 */
const AHEAD = { seconds: 2.5, tokens: 256 };
/**
 * Work that does not pass by here (hidden thought, an answer that comes whole) is bounded by the request's own limit, and by time:
 * no provider writes faster than this many tokens a second (the fastest advertise about 3,000).
 */
const FASTEST = 4_000;
/** Until upstream has noticed that its connection is closed. */
const NOTICED_SECONDS = 0.5;
/** Beyond this a count is a mistake of the provider's. */
const SANE = 100_000_000;
/** And beyond a million dollars an amount; a ledger would refuse the whole bill for one that it cannot hold. */
const SANE_NANO = 10n ** 15n;

export class Tally {
  readonly call: HostCall;
  /** Upstream has taken the work on: from here a failure is estimated, never void. */
  accepted = false;
  /** The finish has been seen: whatever goes wrong upstream after it changes nothing. */
  ended = false;
  /** It was ended here before upstream had counted it: upstream may have made more than has come by. */
  stopped = false;
  upstreamId: string | undefined;
  /** Text that came by, for estimates. */
  textBytes = 0;
  /** Text that upstream has sent, though a stage may have kept it from passing. */
  heardBytes = 0;
  /** All that came by: the estimate of a relay that does not say how much of it is text. */
  passedBytes = 0;
  /** A relay that does not say so has seen content. */
  untold = false;
  inputEstimate = 0;
  readonly pricing: Pricing;
  holdNano: bigint | null = null;
  #ask: Ask | undefined;
  /** Output tokens that there can be at most. */
  #most = Infinity;
  /** The same where the request or the model's facts say so; otherwise without a bound. */
  #cap = Infinity;
  /** The model may think, and what it thinks need not pass by here. */
  thinks = false;
  /** When the provider was asked, by the process's clock. */
  askedAt: number | undefined;
  headMs: number | undefined;
  contentMs: number | undefined;
  /** The key and model that this call's size is remembered for. */
  readonly who: string;
  readonly #seen = new Map<string, UsageSeen>();
  #doubtful = false;
  #upstreamCost: bigint | undefined;
  #over: { readonly record: CallRecord; readonly row: Promise<void> } | undefined;
  #awaited: PromiseWithResolvers<CallRecord> | undefined;

  constructor(call: HostCall) {
    this.call = call;
    this.pricing = new Pricing(call);
    this.who = usually(call.exchange, call.id);
  }

  /** What was set aside, and why. */
  holds(ask: Ask, held: Hold, shelf: ModelIndex): void {
    this.pricing.shelf = shelf;
    this.#ask = ask;
    this.#most = held.most;
    if (held.most > 0 && (ask.output ?? ask.limit) !== undefined) this.#cap = held.most;
    this.holdNano = held.nano;
  }

  /** Upstream has taken it on, under this id; a provider's id is a few words long. */
  began(id: string | undefined): void {
    this.accepted = true;
    if (id !== undefined && id.length <= BOUNDS.id.most) this.upstreamId = id;
  }

  /** Before any stage: what upstream has made is billed, whatever becomes of it. */
  heard(event: ModelEvent): void {
    this.accepted = true;
    if (event.type === "delta") this.heardBytes += Buffer.byteLength(event.text);
    else if (event.type === "usage") this.saw(event);
  }

  saw(seen: UsageSeen): void {
    const clean: { -readonly [U in Unit]?: Opt<number> } = {};
    for (const unit of UNITS) {
      const count = seen.usage[unit];
      if (count === undefined) continue;
      // It thinks, whatever its request said.
      if (unit === "reasoning" && count > 0) this.thinks = true;
      if (Number.isFinite(count) && count >= 0 && count <= SANE) clean[unit] = count;
      else this.#doubtful = true;
    }
    const said = withNames(seen);
    const key = said.model ?? "";
    const before = this.#seen.get(key);
    if (!before && this.#seen.size >= BOUNDS.reports.most) exceed("reports");
    const usage = before ? largest(before.usage, clean) : clean;
    this.#seen.set(key, { ...before, ...said, usage });
    const cost = seen.costNano;
    if (cost !== undefined && cost >= 0n && cost <= SANE_NANO) this.#upstreamCost = cost;
  }

  get stage(): CallStage {
    if (this.contentMs !== undefined && this.call.exchange.stream) return "content";
    return this.accepted ? "begun" : this.call.stage;
  }

  /** Everything so far, estimates where upstream said nothing: the one value that is shown and priced. */
  usage(): { usage: Usage; estimated: boolean } {
    let usage: Usage | undefined;
    for (const seen of this.#seen.values()) usage = usage ? sum(usage, seen.usage) : seen.usage;
    const { work } = this.call.exchange;
    const { price } = this.call.info;
    usage = counted(usage ?? {}, this.#ask?.counts, price, work);
    const { protocol } = this.call.candidate["~"].endpoint;
    const missing = uncounted(usage, this.#ask?.tools, protocol?.client?.tools);
    if (missing) usage = { ...usage, ...missing };
    if (!this.#doubtful && isWhole(usage, work, price))
      return { usage, estimated: missing !== undefined || this.#isImpossible(usage) };
    const bytes = Math.max(this.textBytes, this.heardBytes) || (this.untold ? this.passedBytes : 0);
    const guess = work.guess({
      usage,
      input: this.inputEstimate,
      written: Math.ceil(bytes / BYTES_A_TOKEN),
      n: this.call.exchange["~"].received?.survey.n ?? 1,
      likely: this.#ask?.likely ?? {},
    });
    return { usage: guess, estimated: true };
  }

  /** More than the model reads, or may write: a mistake of the provider's, or of the catalogue. */
  #isImpossible(usage: Usage): boolean {
    const { context = Infinity } = this.call.info.limits ?? {};
    const most = context * (1 + (this.#ask?.runs ?? 0));
    return inputTokens(usage) > most || outputTokens(usage) > this.#cap;
  }

  /** Resolves to its record when its row is durable; never rejects. */
  settled(): Promise<CallRecord> {
    const over = this.#over;
    if (over) return over.row.then(() => over.record);
    return (this.#awaited ??= Promise.withResolvers<CallRecord>()).promise;
  }

  /** It is settled, by this row. */
  closed(record: CallRecord, row: Promise<void>): void {
    this.#over = { record, row };
    if (this.#awaited) void row.then(() => this.#awaited!.resolve(record));
  }

  /** The settle row and the record of this call. `cut`: the answer did not reach its end. */
  settle(of: {
    at: number;
    outcome: string;
    finish?: FinishReason | undefined;
    fault?: Fault | undefined;
    cut: boolean;
  }): { command: Settle & { at: number }; record: CallRecord } {
    // Upstream has not failed: it was given up, and may have worked until then.
    const gaveUp = of.fault?.kind === "canceled" || (of.fault !== undefined && isLocal(of.fault));
    const dead = of.cut && !(gaveUp && this.call.accepted) && STAGES[this.stage].row === "void";
    const { usage, estimated } = dead ? { usage: {}, estimated: false } : this.usage();
    const left = this.stopped || (of.cut && (this.accepted || gaveUp));
    const { nano, exact } = this.#cost(usage, estimated);
    const costNano = dead ? 0n : left ? this.#least(usage, estimated, NOTICED_SECONDS) : nano;
    const state: CallState = dead
      ? "void"
      : of.cut || estimated
        ? "estimated"
        : costNano === null
          ? "unpriced"
          : exact
            ? "exact"
            : "estimated";
    const now = performance.now();
    if (this.askedAt !== undefined) awaited(this.call.exchange, this.askedAt, now);
    const ms = {
      ...(this.headMs !== undefined && { head: this.headMs }),
      ...(this.contentMs !== undefined && { content: this.contentMs }),
      total: Math.round(now - this.call.started),
    };
    if (!dead && !of.cut && !estimated) {
      const { gen } = this.call.exchange["~"];
      if (usage.output !== undefined) gen.usual.saw(this.who, usage.output);
    }
    const parts = this.pricing.parts(this.#seen);
    const record: CallRecord = {
      attempt: this.call.attempt,
      n: this.call.n,
      candidate: this.call.candidate,
      state,
      usage,
      costNano,
      startMs: this.call.startMs,
      ms,
      // Optional members come last: after a spread, V8 adds each further member separately.
      ...(this.call.hedge && { hedge: true }),
      ...(of.fault && { fault: of.fault }),
      ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
    };
    return {
      record,
      command: {
        do: "settle",
        at: of.at,
        attempt: this.call.attempt,
        state,
        usage,
        costNano,
        outcome: of.outcome,
        ms,
        ...(of.finish && { finish: of.finish }),
        ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
        ...(this.#upstreamCost !== undefined && { upstreamCostNano: this.#upstreamCost }),
        ...(parts && { parts }),
      },
    };
  }

  /** What a crash now would be presumed from: the counts so far, and a price with room for what is on its way. */
  progress(at: number): Extract<StoreCommand, { do: "progress" }> & { at: number } {
    const { usage, estimated } = this.usage();
    const made = usage.output ?? 0;
    const since = performance.now() - this.call.started - (this.contentMs ?? 0);
    const pace = made / Math.max(0.1, since / 1_000);
    const output = made + Math.ceil(Math.max(AHEAD.tokens, pace * AHEAD.seconds));
    const costNano = this.call.exchange.work.written
      ? this.#least({ ...usage, output }, estimated, AHEAD.seconds)
      : this.holdNano;
    return { do: "progress", at, attempt: this.call.attempt, usage, costNano };
  }

  /** Of a call that broke off: what was seen, by that guess, and what upstream may have made unseen. */
  #least(usage: Usage, estimated: boolean, ahead: number): bigint | null {
    const seen = this.#cost(usage, estimated).nano ?? this.#setAside;
    // A provider that bills the rest anyway has not billed all of it yet.
    if (this.call.candidate["~"].provider.onDisconnect === "drain")
      return larger(seen, this.holdNano);
    if ((this.ended && !this.stopped) || !this.call.exchange.work.written) return seen;
    if (!this.thinks && this.call.stream) return seen;
    const seconds = (performance.now() - this.call.started) / 1_000 + ahead;
    const output = Math.min(this.#most, Math.ceil(seconds * FASTEST));
    return larger(seen, this.#unseen(usage, output));
  }

  #unseen(usage: Usage, output: number): bigint | null {
    const made = usage.output ?? 0;
    if (output <= made) return null;
    // No tokens were reported: the dearest that it can have been.
    if (![...this.#seen.values()].some(hasTokens))
      return this.#ask ? hold({ ...this.#ask, output, n: 1 }).nano : this.holdNano;
    return larger(
      this.pricing.cost({ ...usage, output }, this.#seen, true).nano,
      this.pricing.cost({ ...usage, output, reasoning: output - made }, this.#seen, true).nano,
    );
  }

  #cost(usage: Usage, estimated: boolean): Priced {
    const { nano, exact } = this.pricing.cost(usage, this.#seen, estimated);
    return { nano: nano === null && estimated ? this.#setAside : nano, exact };
  }

  get #setAside(): bigint | null {
    return this.call.info.price ? this.holdNano : null;
  }

  get otherPrices(): readonly Price[] {
    return this.pricing.others(this.#seen);
  }
}

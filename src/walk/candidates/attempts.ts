// Which candidate is called next for one request, and when. Those that are in no cooldown come in their order; then those that failed,
// are in no cooldown and may be called once more; then those in cooldown, the one that succeeds most often first. One that works again and
// still fails far more often than one in cooldown comes after it. A cooldown only orders candidates: the last one is always called, unless its provider said how long it refuses all requests of the account. Nothing here is
// made or counted where the first one answers.
import { ERRORS, type Fault } from "../../model/error.ts";
import { againAfter, STAGES, type CallStage } from "../../model/retry.ts";
import type { HostCall } from "../call.ts";
import type { HostExchange } from "../exchange.ts";
import type { HostCandidate } from "../mounted.ts";
import type { Plan } from "../stations/route.ts";
import type { Pass, TargetRest } from "../targets/target-rest.ts";
import type { Try } from "./try.ts";
import { isLocal, isProviders } from "../upstream/blame.ts";
import { limitScope } from "../upstream/limit-scope.ts";
import { timeLeft } from "../upstream/times.ts";
import { clientOf, retriesItself } from "./client-retries.ts";

/** Pauses are drawn between nothing and this, which doubles with each attempt. */
const BASE_MS = 100;
const CAP_MS = 2_000;
/** A provider that asks for a longer pause is not waited for. */
const TOLD_MOST_MS = 5_000;
/** The first answer of a target that was away ends its rest for all. */
const PATIENCE_MS = 200;
/** Endpoints that cannot say a request cost nothing upstream, and are work all the same. */
const MOST_UNSAID = 5;

/** What failed and may be asked once more. */
interface Again {
  readonly candidate: HostCandidate;
  /** The monotonic clock. */
  readonly at: number;
}

export class Attempts {
  readonly #x: HostExchange;
  readonly #on: Plan["on"];
  #candidates: readonly HostCandidate[];
  #others: readonly HostCandidate[];
  #place = 0;
  /** Calls that were begun. */
  tried = 0;
  #unsaid = 0;
  #rested: HostCandidate[] | undefined;
  #again: Again[] | undefined;
  #failed: HostCandidate[] | undefined;
  #began: number | undefined;
  #stuck = false;
  #unbound = false;
  #looked = false;
  #hedged = false;

  constructor(x: HostExchange, { candidates, others, on }: Plan) {
    this.#x = x;
    this.#candidates = candidates;
    this.#others = others;
    this.#on = on;
  }

  /** Undefined: every provider refuses all requests of its account for now. */
  first(): Try | undefined {
    this.#x["~"].gen.rests.budget(this.#who).add(this.#now);
    return this.#next() ?? this.#least();
  }

  /** What is asked after this failure, if anything still may be. */
  after({ candidate, began }: HostCall, stage: CallStage, failure: Fault): Try | undefined {
    this.#began = began;
    (this.#failed ??= []).push(candidate);
    if (failure.kind === "unsupported") this.#unsaid++;
    if (this.#over()) return undefined;
    if (this.#isBound(candidate, stage, failure))
      return { ...this.#turn(candidate, 0, false), unbound: true };
    const free = STAGES[stage].free;
    const again = this.#mayAgain(candidate, stage, failure);
    if (again === "fresh" && (free || this.#spends())) return this.#turn(candidate, 0, true);
    if (again !== undefined && again !== "fresh") {
      const wait = pauseOf(this.tried, failure);
      (this.#again ??= []).push({ candidate, at: this.#now + wait });
    }
    const next = this.#mayNext(candidate, stage, failure);
    const turn = next ? this.#another() : this.#oncemore();
    this.#stuck = !turn && next;
    return turn;
  }

  /**
   * The next candidate, to be called beside this call, which stays without content. It is in no cooldown, it costs the retry budget,
   * and a request has one such call at most.
   */
  hedge({ candidate, began }: HostCall): Try | undefined {
    if (this.#hedged || this.#over()) return undefined;
    const { target } = candidate["~"];
    const at = this.#candidates.findIndex(
      ({ "~": of }, i) => i >= this.#place && of.target !== target && of.target.well,
    );
    if (at < 0 || !this.#spends()) return undefined;
    this.#hedged = true;
    const other = this.#candidates[at]!;
    this.#candidates = this.#candidates.toSpliced(at, 1);
    return { ...this.#turn(other, 0, false), began, hedge: true };
  }

  /** The next in their order that is well. */
  #next(): Try | undefined {
    for (; this.#place < this.#candidates.length; this.#place++) {
      const candidate = this.#candidates[this.#place]!;
      const { target } = candidate["~"];
      const pass = target.well ? "plain" : target.enter(this.#now, this.#who);
      if (!pass || (pass === "plain" && this.#isWorse(candidate))) {
        (this.#rested ??= []).push(candidate);
        this.#note(candidate);
        continue;
      }
      this.#place++;
      if (this.tried === 0 || this.#mayFallBack(candidate))
        return this.#turn(candidate, 0, false, pass);
      if (pass === "probe") target.release(this.#who);
    }
    return undefined;
  }

  /** For the record of the request, where routing has not listed it. */
  #note(candidate: HostCandidate): void {
    const inner = this.#x["~"];
    const { rested = [] } = inner;
    if (rested.some((one) => one.candidate === candidate)) return;
    const why = this.#restOf(candidate)?.why ?? "overloaded";
    inner.rested = [...rested, { candidate, why }];
  }

  #another(): Try | undefined {
    return (
      this.#next() ??
      this.#oncemore((one) => one["~"].target.well) ??
      this.#least((one) => this.#restOf(one)?.state !== "told") ??
      (this.#looks ? undefined : this.#last())
    );
  }

  #last(): Try | undefined {
    return this.#least() ?? this.#oncemore();
  }

  /** What has failed, after its pause. */
  #oncemore(which: (candidate: HostCandidate) => boolean = () => true): Try | undefined {
    const list = this.#again?.filter(({ candidate }) => which(candidate)) ?? [];
    for (const one of list) {
      const { candidate, at } = one;
      this.#again = this.#again!.filter((other) => other !== one);
      const wait = Math.max(0, at - this.#now);
      if (wait < timeLeft(this.#x, candidate, this.#began!) && this.#spends())
        return this.#turn(candidate, wait, true);
    }
    return undefined;
  }

  /** Of those in cooldown, the one that succeeds most often. The first call of a request is free; more cost the retry budget. */
  #least(which: (candidate: HostCandidate) => boolean = () => true): Try | undefined {
    const list = this.#rested?.filter((one) => which(one) && !this.#restOf(one)?.refuses) ?? [];
    const candidate = list
      .toSorted((a, b) => this.#promise(b) - this.#promise(a))
      .find((one) => this.tried === 0 || this.#mayFallBack(one));
    if (!candidate) return undefined;
    this.#rested = this.#rested!.filter((one) => one !== candidate);
    candidate["~"].target.took(this.#now);
    return this.#turn(candidate, 0, false, "spare");
  }

  /** Whether a candidate that was skipped as in cooldown is far better. */
  #isWorse(candidate: HostCandidate): boolean {
    const rested = this.#rested;
    return rested !== undefined && this.#x["~"].gen.rests.isWorse(candidate, rested, this.#who);
  }

  /** How good a candidate in cooldown is, compared with others. */
  #promise(candidate: HostCandidate): number {
    return this.#x["~"].gen.rests.promise(candidate, this.#who);
  }

  get #now(): number {
    return this.#x["~"].gen.rests.clock.now();
  }

  get #who(): string {
    return clientOf(this.#x);
  }

  /** Whether it is worth a moment to see what comes back. */
  get #looks(): boolean {
    return !this.#looked && this.#rested !== undefined && this.#rested.length > 0;
  }

  /** How long it is worth waiting for what rests to come back by another request's answer; undefined: it is not, or was waited for. */
  get patience(): number | undefined {
    return this.#stuck && this.#looks ? PATIENCE_MS * (0.5 + Math.random()) : undefined;
  }

  /** Whether one that rested has come back meanwhile. */
  lastLook(): Try | undefined {
    this.#looked = true;
    this.#candidates = this.#rested!.splice(0);
    this.#place = 0;
    return this.#next() ?? this.#last();
  }

  #restOf(candidate: HostCandidate): TargetRest | undefined {
    return this.#x["~"].gen.rests.rest(candidate, this.#who);
  }

  #turn(candidate: HostCandidate, waitMs: number, fresh: boolean, pass: Pass = "plain"): Try {
    this.tried++;
    return { candidate, pass, waitMs, fresh, began: this.#began };
  }

  #spends(): boolean {
    return this.#x["~"].gen.rests.budget(this.#who).take(retriesItself(this.#x));
  }

  /** A target that is likely to answer has an allowance of its own. */
  #mayFallBack({ "~": { target } }: HostCandidate): boolean {
    const likely = target.well || target.likely(this.#now, this.#who);
    return (likely && this.#x["~"].gen.rests.budget(this.#who).fallBack()) || this.#spends();
  }

  /** It holds what another account has made, and says so: it may be asked once without that. */
  #isBound(candidate: HostCandidate, stage: CallStage, failure: Fault): boolean {
    const codes = candidate["~"].endpoint.protocol?.client?.bound?.codes;
    if (!codes?.includes(failure.code ?? "") || stage !== "refused" || !isProviders(failure))
      return false;
    return !this.#unbound && (this.#unbound = this.#times(candidate) < this.#most);
  }

  /** Calls that one request makes of one target. */
  get #most(): number {
    return this.#x["~"].gen.attempts.target;
  }

  #over(): boolean {
    const { all } = this.#x["~"].gen.attempts;
    return this.#unsaid > MOST_UNSAID || this.tried - this.#unsaid >= all;
  }

  #mayAgain(candidate: HostCandidate, stage: CallStage, failure: Fault) {
    const again = againAfter(stage, failure.kind);
    if (again === undefined || isLocal(failure) || !isProviders(failure)) return undefined;
    if (this.#times(candidate) >= this.#most || limitScope(failure) === "request") return undefined;
    const { retryAfterMs: told } = failure;
    if (told === undefined || told === null) return again === "told" ? undefined : again;
    return told <= TOLD_MOST_MS ? again : undefined;
  }

  #times(candidate: HostCandidate): number {
    const { target } = candidate["~"];
    return this.#failed!.filter((one) => one["~"].target === target).length;
  }

  /** Whether another may be tried after this failure; what one endpoint cannot say, the candidate's others may. */
  #mayNext({ id, credential }: HostCandidate, stage: CallStage, failure: Fault): boolean {
    const unsupported = failure.kind === "unsupported";
    const next = ERRORS[failure.kind][1];
    if (next === "never" || !STAGES[stage].next || isLocal(failure)) return false;
    // Another candidate may have a larger window, at another price. It is tried where the operator wrote so and the provider said it.
    if (next === "asked" && !isProviders(failure)) return false;
    if (!unsupported && !this.#on.has(failure.kind)) return false;
    if (unsupported && this.#others.length > 0) {
      const alike = (one: HostCandidate) => one.id === id && one.credential === credential;
      this.#candidates = this.#candidates.toSpliced(this.#place, 0, ...this.#others.filter(alike));
      this.#others = this.#others.filter((other) => !alike(other));
    }
    return true;
  }
}

function pauseOf(tried: number, { retryAfterMs: told }: Fault): number {
  const drawn = Math.random() * Math.min(CAP_MS, BASE_MS * 2 ** (tried - 1));
  return (told ?? 0) + drawn;
}

// Hedging: if a call does not return content in time, a second call to the next candidate is
// started in parallel. The first call with content is used for the response, and the other is
// canceled. Each call has its own reservation and its own ledger row, so budgets hold for both.
import { createFault, getFault } from "../../model/error.ts";
import { type ResponseRace, ClientResponse } from "../response/client-response.ts";
import { HostCall } from "../exchange/call.ts";
import type { AttemptScheduler } from "../routing/attempt-scheduler.ts";
import { endTiming, startHedgeTiming } from "../routing/latency-tracking.ts";
import { recordFailure } from "../upstream/provider-failure.ts";
import { timeoutClassOf } from "../targets/timeouts.ts";
import {
  hasSameTerms,
  statedTermsOf,
  type AttemptExecution,
  type PresentStage,
  type StatedTerms,
} from "./attempt-execution.ts";
import { setRequestReceipt } from "../privacy/zero-retention.ts";
import type { RoutePlan } from "./route.ts";

/** A running call and the response that it writes to. */
export interface RunningAttempt {
  readonly call: HostCall;
  readonly response: ClientResponse;
  readonly execution: Pick<AttemptExecution, "run" | "failurePoint" | "isAwaitingContent">;
}

export interface HedgeInputs {
  readonly plan: RoutePlan;
  readonly scheduler: AttemptScheduler;
  readonly present: PresentStage;
  /** Terms that the client's headers have already stated. */
  readonly statedTerms: StatedTerms | undefined;
  createExecution(
    call: HostCall,
    answer: ClientResponse,
    head: StatedTerms | undefined,
  ): RunningAttempt["execution"];
}

/**
 * Returns how long this call may stay without content before a hedge is started, in milliseconds.
 * Returns undefined if its route does not hedge it.
 */
export function hedgeDelayMs(
  { resolution: { hedge } }: RoutePlan,
  call: HostCall,
): number | undefined {
  return hedge && (hedge.classes.get(timeoutClassOf(call)) ?? hedge.allMs);
}

/** Runs a call, together with a hedge if one is started. */
export class Hedge implements ResponseRace {
  readonly #inputs: HedgeInputs;
  readonly #first: RunningAttempt;
  #second: RunningAttempt | undefined;
  /** Resolves to whether the second call answered. Never rejects. */
  #secondAnswered: Promise<boolean> | undefined;

  constructor(first: RunningAttempt, of: HedgeInputs) {
    this.#first = first;
    this.#inputs = of;
  }

  /**
   * Resolves when one of the calls has answered and both are billed. Rejects with the first call's
   * failure.
   */
  async run(delayMs: number): Promise<void> {
    const timer = setTimeout(() => this.#start(), delayMs);
    try {
      await this.#first.execution.run(this.#inputs.present);
    } catch (problem) {
      clearTimeout(timer);
      if (!(await this.#secondAnswered)) throw problem;
    }
    clearTimeout(timer);
    await this.#secondAnswered;
  }

  #start(): void {
    const { call: first, response, execution } = this.#first;
    const { scheduler, plan, present, createExecution } = this.#inputs;
    const x = first.exchange;
    if (x.state.connection.isDisconnected || response.isCommitted || !execution.isAwaitingContent)
      return;
    const turn = scheduler.hedge(first);
    if (!turn) return;
    const call = new HostCall(x, turn.candidate, scheduler.callNumber, turn);
    startHedgeTiming(plan, call);
    const own = new ClientResponse(x, response);
    const head =
      this.#inputs.statedTerms ?? (response.hasSentHeaders ? statedTermsOf(first) : undefined);
    const second = { call, response: own, execution: createExecution(call, own, head) };
    this.#second = second;
    response.setRace(this);
    own.setRace(this);
    this.#secondAnswered = second.execution.run(present).then(
      () => true,
      (problem: unknown) => {
        this.#failed(second, problem);
        return false;
      },
    );
  }

  /**
   * Handles a failure of the second call. The client does not see it, but it counts against its
   * target.
   */
  #failed({ call, response }: RunningAttempt, problem: unknown): void {
    if (call.latency) endTiming(call);
    const failure = getFault(problem);
    if (!call.isSuperseded && failure) recordFailure(call, failure);
    call.isSuperseded = true;
    response.abandon();
    response.setRace(undefined);
    this.#first.response.setRace(undefined);
  }

  onWinner(by: object): void {
    const [won, lost] =
      by === this.#first.response ? [this.#first, this.#second!] : [this.#second!, this.#first];
    const { calls } = won.call.exchange.state;
    calls.last = won.call;
    if (won.call.zdrReceipt !== undefined)
      setRequestReceipt(won.call.exchange, won.call.zdrReceipt);
    if (calls.sent) calls.sent = { ...calls.sent, lastProvider: won.call.provider };
    cancelAttempt(lost, "Another call responded first.");
  }

  onOpening(): void {
    const { call, execution, response } = this.#second!;
    const first = this.#first;
    const alike =
      hasSameTerms(call, statedTermsOf(first.call)) &&
      response.contentType === first.response.contentType;
    // A call that is not sent yet may still have other terms.
    if (execution.isAwaitingContent && alike) return;
    first.response.setRace(undefined);
    cancelAttempt(this.#second!, "The response headers that were already sent differ.");
  }
}

function cancelAttempt({ call, response }: RunningAttempt, why: string): void {
  const reason = createFault("canceled", why, { code: "hedge_lost" });
  call.isSuperseded = true;
  const { writer } = response;
  response.mute();
  writer?.onError(reason);
  call.cancel(reason);
}

// Hedging: a call that stays without content gets another one beside it, at the next candidate. The first of the two with content answers
// the client, the other one is canceled. Each has its own reservation and its own row, so a budget holds for both.
import { fault, faultOf } from "../../model/error.ts";
import type { AnswerRace } from "../answer/answer-race.ts";
import { ClientAnswer } from "../answer/client-answer.ts";
import { HostCall } from "../call.ts";
import type { Attempts } from "../candidates/attempts.ts";
import { ended, joins } from "../choosing/timing.ts";
import { heed } from "../upstream/heed.ts";
import { classOf } from "../upstream/times.ts";
import { keeps, wordOf, type CallLife, type Present, type SentHead } from "./call-life.ts";
import type { Plan } from "./route.ts";

/** One call from its hooks to its bill, and the answer that it writes into. */
export interface Runner {
  readonly call: HostCall;
  readonly answer: ClientAnswer;
  readonly life: Pick<CallLife, "run" | "stage" | "waits">;
}

export interface HedgeInputs {
  readonly plan: Plan;
  readonly attempts: Attempts;
  readonly present: Present;
  /** What the client's head has stated already. */
  readonly head: SentHead | undefined;
  made(call: HostCall, answer: ClientAnswer, head: SentHead | undefined): Runner["life"];
}

/** How long this call may stay without content, in milliseconds; undefined: its route does not hedge it. */
export function hedgeDelay({ resolution: { hedge } }: Plan, call: HostCall): number | undefined {
  return hedge && (hedge.classes.get(classOf(call)) ?? hedge.allMs);
}

/** A call, and the one beside it if there is one. */
export class Hedge implements AnswerRace {
  readonly #of: HedgeInputs;
  readonly #first: Runner;
  #second: Runner | undefined;
  /** Whether the second call answered. Never rejects. */
  #answering: Promise<boolean> | undefined;

  constructor(first: Runner, of: HedgeInputs) {
    this.#first = first;
    this.#of = of;
  }

  /** Resolves when one of the calls has answered and both are billed; rejects with the first one's failure. */
  async run(delayMs: number): Promise<void> {
    const timer = setTimeout(() => this.#start(), delayMs);
    try {
      await this.#first.life.run(this.#of.present);
    } catch (problem) {
      clearTimeout(timer);
      if (!(await this.#answering)) throw problem;
    }
    clearTimeout(timer);
    await this.#answering;
  }

  #start(): void {
    const { call: first, answer, life } = this.#first;
    const { attempts, plan, present, made } = this.#of;
    const x = first.exchange;
    if (x["~"].gone || answer.committed || !life.waits) return;
    const turn = attempts.hedge(first);
    if (!turn) return;
    const call = new HostCall(x, turn.candidate, attempts.tried, turn);
    joins(plan, call);
    const own = new ClientAnswer(x, answer);
    const head = this.#of.head ?? (answer.opened ? wordOf(first) : undefined);
    const second = { call, answer: own, life: made(call, own, head) };
    this.#second = second;
    answer.joins(this);
    own.joins(this);
    this.#answering = second.life.run(present).then(
      () => true,
      (problem: unknown) => {
        this.#failed(second, problem);
        return false;
      },
    );
  }

  /** What the second call fails with is no news for the client; its target counts it. */
  #failed({ call, answer }: Runner, problem: unknown): void {
    if (call.latency) ended(call);
    const failure = faultOf(problem);
    if (!call.lost && failure) heed(call, failure);
    call.lost = true;
    answer.abandon();
    answer.joins(undefined);
    this.#first.answer.joins(undefined);
  }

  taken(by: object): void {
    const [won, lost] =
      by === this.#first.answer ? [this.#first, this.#second!] : [this.#second!, this.#first];
    const inner = won.call.exchange["~"];
    inner.last = won.call;
    inner.promised = won.call.promised ?? inner.promised;
    if (inner.sent) inner.sent = { ...inner.sent, provider: won.call.provider };
    giveUp(lost, "Another call answered first.");
  }

  opens(): void {
    const { call, life, answer } = this.#second!;
    const first = this.#first;
    const alike = keeps(call, wordOf(first.call)) && answer.mime === first.answer.mime;
    // A call that is not sent yet may still turn out to have other terms.
    if (life.waits && alike) return;
    first.answer.joins(undefined);
    giveUp(this.#second!, "The head that has left states other terms.");
  }
}

function giveUp({ call, answer }: Runner, why: string): void {
  const reason = fault("canceled", why, { code: "hedge_lost" });
  call.lost = true;
  const { writer } = answer;
  answer.mute();
  writer?.broke(reason);
  call.end(reason);
}

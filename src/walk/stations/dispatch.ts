import { ERRORS, fault, faultOf, type Fault } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import { ClientAnswer } from "../answer/client-answer.ts";
import { internal } from "../answer/lane.ts";
import { HostCall } from "../call.ts";
import type { HostExchange } from "../exchange.ts";
import type { HostCandidate } from "../mounted.ts";
import { isLocal, isProviders } from "../upstream/blame.ts";
import { heed, shown } from "../upstream/heed.ts";
import { CallLife, type Present, type SentHead } from "./call-life.ts";
import type { Plan } from "./route.ts";

/** However many candidates there are, a client waits for no more attempts than this. */
const MOST_CALLS = 5;

/** Candidate by candidate, until one answers. After the first content there is no other candidate. */
export async function dispatch(x: HostExchange, plan: Plan, present: Present): Promise<void> {
  const answer = new ClientAnswer(x);
  const queue = new Queue(plan);
  let head: SentHead | undefined;
  let problem: unknown;
  for (let candidate = queue.next(); candidate; candidate = queue.next()) {
    const call = new HostCall(x, candidate, queue.tried);
    x["~"].last = call;
    x["~"].asked ??= call.started;
    try {
      return await new CallLife(call, answer, head).run(present);
    } catch (thrown) {
      problem = faulty(call, thrown);
      const failure = faultOf(problem)!;
      heed(call, failure);
      if (x["~"].gone || answer.committed || !queue.goesOn(candidate, failure)) break;
      if (answer.opened) head ??= { warnings: call.warnings, candidate };
    }
  }
  if (answer.opened && !x["~"].gone) {
    try {
      return giveUp(x, answer, faultOf(problem)!);
    } finally {
      answer.abandon();
    }
  }
  answer.abandon();
  if (queue.tried > 1) x.header("x-tollgate-tried", String(queue.tried));
  throw problem;
}

/** Those still to be tried, in their order. */
class Queue {
  readonly #on: Plan["on"];
  #candidates: readonly HostCandidate[];
  #others: readonly HostCandidate[];
  tried = 0;

  constructor({ candidates, others, on }: Plan) {
    this.#candidates = candidates;
    this.#others = others;
    this.#on = on;
  }

  next(): HostCandidate | undefined {
    const candidate = this.tried < MOST_CALLS ? this.#candidates[this.tried] : undefined;
    if (candidate) this.tried++;
    return candidate;
  }

  /** Whether another may be tried after this failure; what one endpoint cannot say, the candidate's others may. */
  goesOn({ id, credential }: HostCandidate, failure: Fault): boolean {
    const unsupported = failure.kind === "unsupported";
    const retry = ERRORS[failure.kind][1];
    if (retry === "never" || isLocal(failure)) return false;
    // Another candidate may have a larger window, at another price. It is tried where the operator wrote so and the provider said it.
    if (retry === "asked" && !isProviders(failure)) return false;
    if (!unsupported && !this.#on.has(failure.kind)) return false;
    if (unsupported && this.#others.length > 0) {
      const alike = (one: HostCandidate) => one.id === id && one.credential === credential;
      this.#candidates = this.#candidates.toSpliced(this.tried, 0, ...this.#others.filter(alike));
      this.#others = this.#others.filter((other) => !alike(other));
    }
    return true;
  }
}

/** What was thrown, with words for the client; its fields are spelled as the client wrote them. */
function faulty(call: HostCall, thrown: unknown): unknown {
  const failure = faultOf(thrown);
  if (!failure) {
    const { kind, message } = internal(call, thrown);
    return fault(kind, message);
  }
  if (failure.param !== undefined) failure.param = call.spelling(failure.param);
  return thrown;
}

/** The head is out and no candidate answered: the protocol's own error, inside the stream. */
function giveUp(x: HostExchange, answer: ClientAnswer, failure: Fault): void {
  const inner = x["~"];
  inner.fault = failure;
  answer.begin(undefined, {} satisfies HeadersOut);
  answer.commit();
  inner.frontend
    .server!.stream((piece) => answer.write(piece), {
      id: x.id,
      model: x.model,
      created: Math.floor(Date.now() / 1000),
      stream: true,
      body: x.body,
      query: x.query,
      lose() {},
    })
    .fail(shown(inner.gen, failure));
  answer.end();
}

import { wallClock } from "../../lib/wall-clock.ts";
import { fault, faultOf, type Fault } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import { ClientAnswer } from "../answer/client-answer.ts";
import { internal } from "../answer/lane.ts";
import { HostCall } from "../call.ts";
import { Attempts } from "../candidates/attempts.ts";
import { begins, ended } from "../choosing/timing.ts";
import { allRest, comingBack } from "../candidates/given-up.ts";
import type { Try } from "../candidates/try.ts";
import type { HostExchange } from "../exchange.ts";
import { heed, shown } from "../upstream/heed.ts";
import { CallLife, type Present, type SentHead } from "./call-life.ts";
import type { Plan } from "./route.ts";

/** Candidate by candidate, until one answers. After the first content there is no other candidate. */
export async function dispatch(x: HostExchange, plan: Plan, present: Present): Promise<void> {
  const { rests } = x["~"].gen;
  const attempts = new Attempts(x, plan);
  let turn = attempts.first();
  if (!turn) throw allRest(rests, plan.candidates);
  const answer = new ClientAnswer(x);
  let head: SentHead | undefined;
  let problem: unknown;
  while (turn) {
    const { candidate }: Try = turn;
    const call: HostCall = new HostCall(x, candidate, attempts.tried, turn);
    const life: CallLife = new CallLife(call, answer, head);
    begins(plan, call);
    x["~"].last = call;
    try {
      return await life.run(present);
    } catch (thrown) {
      problem = faulty(call, thrown);
      const failure = faultOf(problem)!;
      heed(call, failure);
      if (x["~"].gone || answer.committed) break;
      turn = attempts.after(call, life.stage, failure);
      if (answer.opened) head ??= { warnings: call.warnings, candidate };
    } finally {
      if (call.latency) ended(call);
      if (call.pass === "probe") candidate["~"].target.release();
    }
    const patience = turn ? turn.waitMs : attempts.patience;
    if (patience !== undefined && patience > 0) await paused(x, patience);
    if (x["~"].gone) break;
    if (!turn && patience !== undefined) turn = attempts.lastLook();
  }
  comingBack(faultOf(problem)!, rests, plan.candidates);
  if (answer.opened && !x["~"].gone) {
    try {
      return giveUp(x, answer, faultOf(problem)!);
    } finally {
      answer.abandon();
    }
  }
  answer.abandon();
  if (attempts.tried > 1) x.header("x-tollgate-tried", String(attempts.tried));
  throw problem;
}

/** A client that goes meanwhile is not waited for. The pause is the provider's, as its answer would be. */
function paused(x: HostExchange, ms: number): Promise<void> {
  const began = performance.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  x["~"].onGone.push(() => {
    clearTimeout(timer);
    resolve();
  });
  return promise.then(() => void (x["~"].awayMs += performance.now() - began));
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
  answer.failed(() =>
    inner.frontend
      .server!.stream((piece) => answer.write(piece), {
        id: x.id,
        model: x.model,
        created: Math.floor(wallClock() / 1000),
        stream: true,
        body: x.body,
        query: x.query,
        lose() {},
      })
      .fail(shown(inner.gen, failure)),
  );
}

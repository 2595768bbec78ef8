import { wallClock } from "../../lib/wall-clock.ts";
import { fault, faultOf, type Fault } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import { ClientAnswer } from "../answer/client-answer.ts";
import { internal } from "../answer/lane.ts";
import { HostCall } from "../call.ts";
import { Attempts } from "../candidates/attempts.ts";
import { begins, ended } from "../choosing/timing.ts";
import { clientOf } from "../candidates/client-retries.ts";
import { accountLimited } from "../candidates/given-up.ts";
import type { Try } from "../candidates/try.ts";
import { isPromise } from "../../lib/promise.ts";
import type { CallPlace } from "../targets/concurrency-limit.ts";
import type { HostExchange } from "../exchange.ts";
import { heed, shown } from "../upstream/heed.ts";
import { CallLife, type Present, type SentHead, wordOf } from "./call-life.ts";
import { Hedge, hedgeDelay, type Runner } from "./hedge.ts";
import type { Plan } from "./route.ts";

/** One call, from its hooks to its bill. Where failures are simulated, that is simulated too. */
const lifeOf = (call: HostCall, answer: ClientAnswer, head: SentHead | undefined): Runner["life"] =>
  new CallLife(call, answer, head);

/** Candidate by candidate, until one answers. After the first content there is no other candidate. */
export async function dispatch(
  x: HostExchange,
  plan: Plan,
  present: Present,
  made: typeof lifeOf = lifeOf,
): Promise<void> {
  const { gen } = x["~"];
  const attempts = new Attempts(x, plan);
  let turn = attempts.first();
  if (!turn) throw accountLimited(gen.rests, plan.candidates, clientOf(x));
  const answer = new ClientAnswer(x);
  let head: SentHead | undefined;
  let problem: unknown;
  let failed = true;
  while (turn) {
    const { candidate, pass }: Try = turn;
    const { target } = candidate["~"];
    let place: CallPlace | undefined;
    if (pass === "spare")
      try {
        const waiting = target.place(clientOf(x), gen.gate.waitMs);
        place = isPromise(waiting) ? await waited(x, waiting) : waiting;
      } catch (thrown) {
        // What a provider has said before is worth more to the client.
        problem ??= thrown;
        break;
      }
    if (x["~"].gone) {
      place?.leave(false);
      break;
    }
    const call: HostCall = new HostCall(x, candidate, attempts.tried, turn);
    const life = made(call, answer, head);
    begins(plan, call);
    x["~"].last = call;
    try {
      const delay = hedgeDelay(plan, call);
      if (delay === undefined) await life.run(present);
      else
        await new Hedge({ call, answer, life }, { plan, attempts, present, head, made }).run(delay);
      failed = false;
      return;
    } catch (thrown) {
      problem = faulty(call, thrown);
      const failure = faultOf(problem)!;
      heed(call, failure);
      if (x["~"].gone || answer.committed) break;
      turn = attempts.after(call, life.stage, failure);
      if (answer.opened) head ??= wordOf(call);
    } finally {
      if (call.latency) ended(call);
      if (pass === "probe") target.release(clientOf(x));
      place?.leave(failed);
    }
    const patience = turn ? turn.waitMs : attempts.patience;
    if (patience !== undefined && patience > 0) await paused(x, patience);
    if (x["~"].gone) break;
    if (!turn && patience !== undefined) turn = attempts.lastLook();
  }
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

/** Its turn among the calls that its client may have at a failing target. The wait is the provider's, as its answer would be. */
async function waited(x: HostExchange, place: Promise<CallPlace>): Promise<CallPlace> {
  const began = performance.now();
  try {
    return await place;
  } finally {
    x["~"].awayMs += performance.now() - began;
  }
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

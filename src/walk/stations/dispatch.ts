import { ERRORS, fail, faultOf, type Fault } from "../../model/error.ts";
import type { HeadersIn, HeadersOut } from "../../model/values.ts";
import type { ProviderAccess, RecordedAnswer, Reply } from "../../plugin/call.ts";
import { ClientAnswer } from "../answer/client-answer.ts";
import { inTime, settleCall } from "../money/bill.ts";
import { heed, isCallers, shown } from "../upstream/blame.ts";
import { HostCall } from "../call.ts";
import { encode, headOf } from "../upstream/encode.ts";
import type { HostExchange } from "../exchange.ts";
import { send } from "../upstream/send.ts";
import type { HostCandidate } from "../mounted.ts";
import { internal, type AnswerSource } from "../answer/lane.ts";
import { mayBegin } from "../upstream/permission.ts";
import { promise } from "../candidates/privacy.ts";
import { reserve } from "../money/reserve.ts";
import type { Plan } from "./route.ts";
import { error } from "../upstream/response.ts";
import { Tally } from "../money/tally.ts";
import { breath } from "../bounds/turn.ts";

/** However many candidates there are, nobody waits for more attempts than this. */
const MOST_CALLS = 5;

export interface Present {
  (call: HostCall, source: AnswerSource, answer: ClientAnswer, tally: Tally): Promise<void>;
}

/** Candidate by candidate, until one answers. After the first content there is no other candidate. */
export async function dispatch(
  x: HostExchange,
  plan: Plan,
  present: Present,
  fetch: (call: HostCall) => ProviderAccess["fetch"],
): Promise<void> {
  const answer = new ClientAnswer(x);
  let n = 0;
  let told: Told | undefined;
  let problem: unknown;
  const tried: string[] = [];
  let { candidates, others } = plan;
  for (let i = 0; i < candidates.length && n < MOST_CALLS; i++) {
    const candidate = candidates[i]!;
    const call = new HostCall(x, candidate, ++n, fetch);
    x["~"].lane = call.lane;
    try {
      await once(call, answer, present, told);
      return;
    } catch (thrown) {
      problem = thrown;
      const fault = faultOf(thrown) ?? internal(call, thrown);
      if (!faultOf(thrown)) problem = error(fault.kind, fault.message);
      tried.push(`${candidate.id}[${candidate.credential}]: ${fault.kind}`);
      if (fault.param !== undefined) fault.param = call.spelling(fault.param);
      x["~"].losses = call.losses;
      heed(call, fault);
      if (x["~"].gone || answer.committed || !next(fault, plan)) break;
      if (fault.kind === "unsupported" && others.length > 0) {
        const alike = ({ id, credential }: HostCandidate) =>
          id === candidate.id && credential === candidate.credential;
        candidates = candidates.toSpliced(i + 1, 0, ...others.filter(alike));
        others = others.filter((other) => !alike(other));
      }
      if (answer.opened) told ??= { warnings: call.warnings, candidate };
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
  if (tried.length > 1) x.header("x-tollgate-tried", String(tried.length));
  throw problem;
}

const next = (fault: Fault, plan: Plan): boolean =>
  ERRORS[fault.kind][1] === "next" &&
  !isCallers(fault) &&
  (fault.kind === "unsupported" || plan.on.has(fault.kind));

/** What the head has said already, and of whom. */
interface Told {
  warnings: string | undefined;
  candidate: HostCandidate;
}

/** After the head only those may answer of whom it is true: the same losses, and under privacy the same receipt. */
function keepWord(call: HostCall, told: Told): void {
  const promised = ({ provider, protocol, policy }: HostCandidate) =>
    JSON.stringify([provider, protocol, policy.retention, policy.basis, policy.verifiedAt]);
  const same =
    call.warnings === told.warnings &&
    (call.exchange.privacy === "off" || promised(call.candidate) === promised(told.candidate));
  if (!same)
    fail("unsupported", "Another provider would answer on other terms than those already told.", {
      code: "head_already_sent",
    });
}

/** One call: hooks around it, one reserve before it, one settle after it. */
async function once(
  call: HostCall,
  answer: ClientAnswer,
  present: Present,
  told: Told | undefined,
): Promise<void> {
  const x = call.exchange;
  const { frontend, gen } = x["~"];
  const tally = new Tally(call);
  let reserved = false;
  let source: AnswerSource | undefined;
  let asked: Promise<Reply> | undefined;
  let over = false;
  const next = (): Promise<Reply> => {
    if (!asked && !over) return (asked = ask());
    const why = asked ? "twice: the host owns retries" : "after the hook has answered";
    return Promise.reject(error("internal", `next() ${why}.`));
  };
  const ask = async (): Promise<Reply> => {
    const { endpoint, credential } = call.candidate["~"];
    promise(call);
    const pause = breath(x["~"].received!.bytes);
    if (pause) await pause;
    if (!endpoint.wire) mayBegin(call);
    const out = endpoint.wire ? encode(call, endpoint.protocol!, endpoint.wire.endpoint) : null;
    const again = breath(x["~"].received!.bytes);
    if (again) await again;
    if (told) keepWord(call, told);
    await reserve(call, out, tally);
    reserved = true;
    if (call.info.retires !== undefined) gen.retiring.used(call.id, call.info.retires);
    const record = x["~"].received!.record;
    if (record)
      void reply(200, {}, answer, tally, x)
        .record(record.max)
        .then((got) => got && record.to(got))
        .catch((err: unknown) =>
          gen.log.error({ request: x.id, err }, "a recorded answer was not taken"),
        );
    if (x["~"].gone) fail("canceled", "The client went away.");
    if (!out) {
      const native = endpoint.endpoint;
      if (!("run" in native)) return fail("internal", "An endpoint without a wire must run.");
      const request = (x["~"].rewritten ?? x.request) as never;
      source = { events: native.run(request, call, credential.fields) };
      return reply(200, {}, answer, tally, x);
    }
    const response = await send(call, endpoint.wire!, out);
    // It has taken the work on, whatever a hook thinks of its head.
    tally.accepted = true;
    tally.headMs = Math.round(performance.now() - call.started);
    source = { response };
    return reply(response.status, response.headers, answer, tally, x);
  };
  const onion = frontend.chain.attempt.reduceRight<() => Promise<Reply | RecordedAnswer>>(
    (inner, hook) =>
      hook.applies(x.model, call.provider)
        ? () => waited(() => hook.run(call, () => unheeded(inner() as Promise<Reply>)))
        : inner,
    next,
  );
  /** Nothing goes on behind a call that is over, and what it reserved is settled. */
  const tidy = async (fault: Fault = { kind: "canceled", message: "A hook answered." }) => {
    over = true;
    call.end(error("canceled", "given up"));
    await asked?.catch(() => {});
    if (reserved) await inTime(settleCall(tally, { fault }));
  };
  try {
    const got = await onion();
    x["~"].losses = call.losses;
    if ("body" in got) {
      replay(x, call, answer, got);
      await tidy();
      return;
    }
    answer.begin("response" in source! ? source.response : undefined, headOf(call, got.headers));
    await present(call, source!, answer, tally);
  } catch (problem) {
    await tidy(faultOf(problem) ?? { kind: "internal", message: "" });
    throw problem;
  }
  // What broke off after content is over for the client, and a failure all the same.
  const broken = x["~"].fault;
  if (broken) heed(call, broken);
  else gen.rests.answered(call);
}

/** Those around a hook get a promise, whatever it does before its first wait. */
function waited<T>(hook: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(hook());
  } catch (problem) {
    return Promise.reject(problem as Error);
  }
}

/** A hook that does not look at what it asked for would end the process with its failure. */
function unheeded<T>(asked: Promise<T>): Promise<T> {
  asked.catch(() => {});
  return asked;
}

function reply(
  status: number,
  headers: HeadersIn,
  answer: ClientAnswer,
  tally: Tally,
  x: HostExchange,
): Reply {
  return {
    status,
    headers,
    record(max) {
      if (x.privacy !== "off") return Promise.resolve(null);
      const recorder = answer.record(max);
      return recorder.then((parts) =>
        parts === null || x["~"].fault
          ? null
          : {
              mime: answer.mime,
              body: Buffer.concat(parts),
              usage: tally.usage().usage,
              model: tally.call.id,
            },
      );
    },
  };
}

/** A cache's answer: nothing was asked of anybody, nothing is billed. */
function replay(x: HostExchange, call: HostCall, answer: ClientAnswer, got: RecordedAnswer): void {
  x["~"].cached = true;
  answer.begin(undefined, headOf(call, {}));
  answer.write(got.body);
  answer.commit();
  answer.end();
}

/** The head is out and nobody answered: the protocol's own error, inside the stream. */
function giveUp(x: HostExchange, answer: ClientAnswer, fault: Fault): void {
  const inner = x["~"];
  inner.fault = fault;
  answer.begin(undefined, {} satisfies HeadersOut);
  answer.commit();
  inner.frontend
    .server!.stream((text) => answer.write(text), {
      id: x.id,
      model: x.model,
      created: Math.floor(Date.now() / 1000),
      stream: true,
      body: x.body,
      query: x.query,
      lose() {},
    })
    .fail(shown(inner.gen, fault));
  answer.end();
}

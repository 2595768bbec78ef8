// One call, from its hooks to its bill: prepared, reserved, sent, presented, closed. One reserve before it, one settle after it.
import { fail, fault, faultOf, type Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { CallStage } from "../../model/retry.ts";
import type { Usage } from "../../model/usage.ts";
import type { GivenAnswer, RecordedAnswer, Reply } from "../../plugin/call.ts";
import type { AttemptResult } from "../../plugin/middleware.ts";
import type { ClientAnswer } from "../answer/client-answer.ts";
import type { AnswerSource } from "../answer/lane.ts";
import { fits, HookReply, ProviderReply } from "../answer/provider-reply.ts";
import { give, written } from "../answer/given-answer.ts";
import { breath } from "../bounds/turn.ts";
import { noteSent, type HostCall } from "../call.ts";
import { mayPass } from "../answer/stages.ts";
import { clientOf } from "../candidates/client-retries.ts";
import { promise } from "../candidates/privacy.ts";
import { note } from "../hook-notes.ts";
import type { HostCandidate } from "../mounted.ts";
import { inTime, settleCall, settleUnasked, unasked } from "../money/bill.ts";
import { reserveAside } from "../money/charges.ts";
import { reserve } from "../money/reserve.ts";
import { Tally } from "../money/tally.ts";
import { heed } from "../upstream/heed.ts";
import { encode, headOf } from "../upstream/encode.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { mayBegin } from "../upstream/permission.ts";
import { ofProvider } from "../upstream/own-code.ts";
import { send } from "../upstream/send.ts";

/** The station that takes an answer to the client's last byte. */
export interface Present {
  (call: HostCall, source: AnswerSource, answer: ClientAnswer, tally: Tally): Promise<void>;
}

/** What the client's head has said already, and the candidate that it said it of. */
export interface SentHead {
  warnings: string | undefined;
  candidate: HostCandidate;
}

export class CallLife {
  readonly #call: HostCall;
  readonly #answer: ClientAnswer;
  readonly #tally: Tally;
  readonly #head: SentHead | undefined;
  #asked: Promise<Reply> | undefined;
  #reserved = false;
  #source: AnswerSource | undefined;
  #over = false;

  constructor(call: HostCall, answer: ClientAnswer, head: SentHead | undefined) {
    this.#call = call;
    this.#answer = answer;
    this.#tally = new Tally(call);
    this.#head = head;
  }

  get stage(): CallStage {
    return this.#tally.stage;
  }

  /** It was sent, and nothing of an answer is here: no content of a stream, no head of a whole response. */
  get waits(): boolean {
    const { askedAt, contentMs, headMs } = this.#tally;
    const nothing = contentMs === undefined && (this.#call.stream || headMs === undefined);
    return askedAt !== undefined && nothing && !this.#over;
  }

  /** Resolves when the answer has left and is billed; rejects where another candidate may be tried. */
  async run(present: Present): Promise<void> {
    const call = this.#call;
    const inner = call.exchange["~"];
    try {
      const got = await this.#hooked(0);
      const reply = isReply(got) ? got : await this.#fitted(got, 0);
      if (reply instanceof HookReply) return await this.#give(reply.given);
      const source = this.#source ?? fail("internal", "A hook gave a reply that next() did not.");
      const upstream = "response" in source ? source.response : undefined;
      this.#answer.begin(upstream, headOf(call, reply.headers));
      await present(call, source, this.#answer, this.#tally);
    } catch (problem) {
      await this.#close(faultOf(problem) ?? { kind: "internal", message: "" });
      throw problem;
    }
    // What broke off after content is over for the client, and a failure all the same.
    if (inner.fault) heed(call, inner.fault);
    else if (!call.worked)
      inner.gen.rests.answered(call.candidate, call.started, clientOf(call.exchange));
  }

  /** The attempt hooks from this one on; the last one's `next()` asks the provider. */
  #hooked(from: number): Promise<AttemptResult> {
    const at = this.#applying(from);
    if (at < 0) return this.#next();
    const hook = this.#call.exchange["~"].frontend.chain.attempt[at]!;
    return hook.run(this.#call, () => this.#within(at + 1));
  }

  /** For a hook around others what they answer is a reply, whatever it was. */
  #within(from: number): Promise<Reply> {
    if (this.#applying(from) < 0) return this.#next();
    return this.#hooked(from).then((got) => (isReply(got) ? got : this.#fitted(got, from)));
  }

  /** The place of the next attempt hook that has to do with this call; -1: none. */
  #applying(from: number): number {
    const call = this.#call;
    const { attempt } = call.exchange["~"].frontend.chain;
    for (let i = from; i < attempt.length; i++)
      if (attempt[i]!.applies(call.exchange.model, call.provider)) return i;
    return -1;
  }

  /** Of the hook from this one on. A recording that does not fit is none: the provider is asked, if it was not. */
  #fitted(got: Exclude<AttemptResult, Reply>, from: number): Reply | Promise<Reply> {
    const call = this.#call;
    if (typeof got !== "object" || got === null || !("answer" in got || "body" in got))
      return fail("internal", "An attempt gave no answer.");
    if ("answer" in got || fits(got, call)) {
      const { id } = call.exchange["~"].frontend.chain.attempt[this.#applying(from)]!;
      note(call.exchange, id, "attempt", "answered");
      return new HookReply(got, this.#answer, this.#tally);
    }
    call.exchange["~"].gen.log.warn(
      { request: call.exchange.id, recorded: [got.kind, got.protocol, got.stream] },
      "a recorded answer does not fit the request that it was given to, and was not replayed",
    );
    return this.#asked ?? this.#next();
  }

  #next(): Promise<Reply> {
    if (!this.#asked && !this.#over) return (this.#asked = this.#ask());
    const why = this.#asked ? "twice: the host owns retries" : "after the hook has answered";
    return Promise.reject(fault("internal", `next() ${why}.`));
  }

  async #ask(): Promise<Reply> {
    const call = this.#call;
    const inner = call.exchange["~"];
    promise(call);
    mayPass(call);
    const began = performance.now();
    const before = breath(inner.received!.bytes);
    if (before) await before;
    const out = this.#prepare();
    const after = breath(inner.received!.bytes);
    if (after) await after;
    if (this.#head) keepWord(call, this.#head);
    await reserve(call, out, this.#tally);
    inner.gen.gate.took(performance.now() - began);
    this.#noteReserved();
    if (inner.gone) fail("canceled", "The client went away.");
    if (call.over) throw call.over;
    this.#tally.askedAt = performance.now();
    noteSent(call);
    // Few heads leave before the provider's.
    this.#answer.begin(undefined, () => headOf(call, {}));
    if (!out) return this.#run();
    const { wire } = call.candidate["~"].endpoint;
    const response = await send(call, wire!, out);
    // It has taken the work on, whatever a hook thinks of its head.
    this.#tally.accepted = true;
    this.#tally.headMs = Math.round(performance.now() - call.started);
    this.#source = { response };
    return new ProviderReply(response, this.#answer, this.#tally);
  }

  /** What leaves; nothing for an endpoint that sends by itself. */
  #prepare(): OutgoingRequest | null {
    const { endpoint } = this.#call.candidate["~"];
    if (endpoint.wire) return encode(this.#call, endpoint.protocol!, endpoint.wire.endpoint);
    mayBegin(this.#call);
    return null;
  }

  /** The row is durable: what else has to know of the call is told. */
  #noteReserved(): void {
    this.#reserved = true;
    const call = this.#call;
    const { gen, received } = call.exchange["~"];
    if (call.info.retires !== undefined) gen.retiring.used(call.id, call.info.retires);
    const record = received!.record;
    if (!record) return;
    new ProviderReply({ status: 200, headers: {} }, this.#answer, this.#tally)
      .record(record.max)
      .then((got) => got && record.to(got))
      .catch((err: unknown) =>
        gen.log.error(
          { request: call.exchange.id, err },
          "a frontend could not take a recorded answer",
        ),
      );
  }

  #run(): Reply {
    const call = this.#call;
    const x = call.exchange;
    const { endpoint, credential } = call.candidate["~"];
    const native = endpoint.endpoint;
    if (!("run" in native)) return fail("internal", "An endpoint without a wire must run.");
    const said = x["~"].rewritten ?? x.request;
    const request = (call.cap === undefined ? said : x.work.capped!(said, call.cap)) as never;
    // It sends by itself: until it says something, its provider has taken nothing on.
    call.stage = "refused";
    try {
      const events = native.run(request, call, credential.fields);
      this.#source = { events: this.#head ? this.#asSaid(events, this.#head) : events };
    } catch (problem) {
      throw ofProvider(call, problem);
    }
    return new ProviderReply({ status: 200, headers: {} }, this.#answer, this.#tally);
  }

  /** It names its losses while it runs: until content leaves they must be those that the client was told. */
  async *#asSaid(events: AsyncIterable<ModelEvent>, head: SentHead): AsyncGenerator<ModelEvent> {
    for await (const event of events) {
      if (!this.#answer.committed) keepWord(this.#call, head);
      yield event;
    }
  }

  /** What a hook answered. A provider that was asked all the same is given up, and billed for what it did. */
  async #give(given: RecordedAnswer | GivenAnswer): Promise<void> {
    const { exchange: x } = this.#call;
    if ("answer" in given) {
      const usage = await this.#booked(given);
      const body = written(this.#call, given, usage);
      this.#answer.begin(undefined, headOf(this.#call, {}));
      return give(this.#answer, body);
    }
    x["~"].cached = true;
    this.#answer.begin(undefined, headOf(this.#call, {}));
    this.#answer.type(given.mime);
    give(this.#answer, given.body);
    if (!this.#reserved) this.#tally.closed(unasked(this.#call), Promise.resolve());
    return this.#close(ANSWERED);
  }

  /** The row of an answer that a hook made, before the client has a byte of it; and the counts that stand on it. */
  async #booked({ answer }: GivenAnswer): Promise<Usage> {
    const call = this.#call;
    const inner = call.exchange["~"];
    inner.finish = answer.finish.reason;
    if (this.#asked) {
      await this.#close(ANSWERED);
      if (this.#reserved) return inner.calls.at(-1)!.usage;
    }
    this.#over = true;
    await reserveAside(call);
    await inTime(settleUnasked(this.#tally, answer.finish.reason));
    return NOTHING;
  }

  /** Nothing goes on behind a call that is over, and what it reserved is settled. */
  async #close(failure: Fault): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#call.end(fault("canceled", "given up"));
    await this.#asked?.catch(() => {});
    if (this.#reserved) await inTime(settleCall(this.#tally, { fault: failure }));
  }
}

const ANSWERED: Fault = { kind: "canceled", message: "A hook answered." };
/** What a client is shown of a call that used nothing. */
const NOTHING: Usage = { input: 0, output: 0 };

const isReply = (got: AttemptResult): got is Reply =>
  typeof got === "object" && got !== null && "headers" in got;

/** What its head states, or would state if it left now. */
export const wordOf = ({ head, candidate }: HostCall): SentHead => ({
  warnings: head?.["x-tollgate-warnings"],
  candidate,
});

/** Whether this call has the warnings and the receipt that the head states. */
export function keeps(call: HostCall, head: SentHead): boolean {
  const promised = ({ provider, protocol, policy }: HostCandidate) =>
    JSON.stringify([provider, protocol, policy.retention, policy.basis, policy.verifiedAt]);
  return (
    call.warnings === head.warnings &&
    (call.exchange.privacy === "off" || promised(call.candidate) === promised(head.candidate))
  );
}

/** The head has left: only a candidate of which it is true may answer: the same losses, and under privacy the same receipt. */
function keepWord(call: HostCall, head: SentHead): void {
  if (!keeps(call, head))
    fail("unsupported", "Another provider would answer on other terms than those already told.", {
      code: "head_already_sent",
    });
}

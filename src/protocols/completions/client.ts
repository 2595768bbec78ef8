// The half of the completions protocol that faces providers.
import { fail, type Fault } from "../../model/error.ts";
import type { FinishReason, ModelEvent } from "../../model/event.ts";
import type { CompletionRequest } from "../../model/request.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type {
  CallContext,
  Decoder,
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../plugin/protocol.ts";
import { parseResponseObject, failTruncated } from "../failure/parse-error.ts";
import { asObject, omitUndefined, asObjects, asText, asList } from "../json-values.ts";
import { createResponsePassthrough, writeJson, openaiFaultBody } from "../passthrough.ts";
import { encodeFault } from "../failure/openai-error.ts";
import {
  createEventDecoder,
  EventPassthrough,
  parseEventText,
  replaceModelName,
  createStringReplacer,
} from "../sse/index.ts";
import { responseFrame } from "./server.ts";
import { ID, type CompletionDialect, usageOf, usageTo } from "./spec.ts";

/** Encodes a request as a body of this protocol. */
export function encodeRequest(
  r: CompletionRequest,
  of: Pick<CallContext, "model" | "stream">,
): Body {
  const [first] = r.prompts;
  const { sampling: s } = r;
  return omitUndefined({
    model: of.model,
    prompt: r.prompts.length === 1 && first !== undefined ? first : r.prompts,
    suffix: r.suffix,
    max_tokens: r.maxTokens,
    stop: r.stop,
    temperature: s.temperature,
    top_p: s.topP,
    seed: s.seed,
    n: s.n,
    presence_penalty: s.presence,
    frequency_penalty: s.frequency,
    user: r.user,
    stream: of.stream ? true : undefined,
    ...asObject(r.ext[ID]),
  });
}

/**
 * Encodes requests for the fill-in-the-middle APIs of two vendors. They accept one prompt, a
 * suffix, and few other fields.
 */
export function encodeFimRequest(r: CompletionRequest, of: CallContext): Body {
  return omitUndefined({
    model: of.model,
    prompt: singlePrompt(r, of),
    suffix: r.suffix,
    max_tokens: r.maxTokens,
    stop: r.stop,
    temperature: r.sampling.temperature,
    top_p: r.sampling.topP,
    random_seed: r.sampling.seed,
    stream: of.stream ? true : undefined,
  });
}

/**
 * Returns the single prompt of a request. Fields that only the completions protocol has are
 * reported as dropped. If dropping them would change the response's form, the request is rejected.
 */
export function singlePrompt(r: CompletionRequest, of: CallContext): string {
  const [prompt] = r.prompts;
  if (r.prompts.length !== 1 || typeof prompt !== "string")
    return fail("unsupported", `${of.model} supports only one text as its prompt.`, {
      param: "prompt",
      code: "unsupported_input",
    });
  const own = asObject(r.ext[ID]) ?? {};
  if (own["echo"] === true || own["logprobs"] !== undefined)
    fail("unsupported", `${of.model} supports neither echo nor log probabilities.`, {
      param: own["echo"] === true ? "echo" : "logprobs",
    });
  for (const field of ["best_of", "logit_bias"])
    if (own[field] !== undefined) of.reportLoss(field, "dropped");
  if (r.sampling.presence !== undefined) of.reportLoss("presence_penalty", "dropped");
  if (r.sampling.frequency !== undefined) of.reportLoss("frequency_penalty", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  return prompt;
}

/**
 * Adapts an outgoing request to the backend's dialect, in both modes. Usage is requested, and
 * fields that the backend rejects are dropped.
 */
export function prepare(out: Outgoing, of: CallContext, dialect: CompletionDialect): void {
  if (!of.stream || dialect.streamUsage === "none") {
    if (out.get("stream_options") !== undefined) out.remove("stream_options");
  } else {
    const streamOptions = asObject(out.get("stream_options"));
    if (streamOptions?.["include_usage"] !== true)
      out.set("stream_options", { ...streamOptions, include_usage: true });
  }
}

export const capOutput = (out: Outgoing, tokens: number): void => out.set("max_tokens", tokens);

// Parses one JSON object of a response, which is either the whole response or a chunk of a stream.

/** Returns the text of all choices and the last finish reason. */
function parseChoices(response: JsonObject): {
  text: string;
  reason: FinishReason | undefined;
} {
  let words = "";
  let reason: FinishReason | undefined;
  for (const choice of asObjects(response["choices"])) {
    words += asText(choice["text"]) ?? asText(asObject(choice["message"])?.["content"]) ?? "";
    const response = asText(choice["finish_reason"]);
    if (response !== undefined) reason = REASONS.get(response) ?? "other";
  }
  return { text: words, reason };
}

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["content_filter", "filtered"],
]);

/** Decodes a non-streaming response into events. */
export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parseResponseObject(body.toString("utf8"), "choices");
  if (asList(answer["choices"]).length === 0)
    return fail("upstream", "The provider returned no choice.", { code: "bad_answer" });
  const { text: words, reason = "stop" } = parseChoices(answer);
  emit(omitUndefined({ type: "start" as const, id: asText(answer["id"]) }));
  emit({ type: "open", index: 0, block: { type: "text" } });
  if (words !== "") emit({ type: "delta", index: 0, text: words });
  emit({ type: "close", index: 0 });
  emit({ type: "usage", usage: usageOf(asObject(answer["usage"])) });
  emit({ type: "finish", reason });
}

/** Decodes a stream into events: one block of text. */
export function createDecoder(emit: (event: ModelEvent) => void): Decoder {
  let begun = false;
  let over = false;
  let reason: FinishReason | undefined;
  const finish = (): void => {
    over = true;
    if (reason === undefined) return failTruncated();
    emit({ type: "close", index: 0 });
    return emit({ type: "finish", reason });
  };
  const events = createEventDecoder((_event, data) => {
    if (over) return;
    if (data === "[DONE]") return finish();
    const parsedChunk = parseResponseObject(data, "choices");
    if (!begun) {
      begun = true;
      emit(omitUndefined({ type: "start" as const, id: asText(parsedChunk["id"]) }));
      emit({ type: "open", index: 0, block: { type: "text" } });
    }
    const { text: words, reason: why } = parseChoices(parsedChunk);
    if (words !== "") emit({ type: "delta", index: 0, text: words });
    reason = why ?? reason;
    const usage = asObject(parsedChunk["usage"]);
    if (usage) emit({ type: "usage", usage: usageOf(usage) });
  });
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!over) finish();
    },
  };
}

/**
 * Forwards responses in passthrough mode. Bytes are unchanged, except for the model name. Usage is
 * always requested. If the client did not request it, the event that contains only usage is not
 * forwarded.
 */
export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? new CompletionPassthrough(sink, to) : whole(sink, to);

function whole(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  return createResponsePassthrough(
    sink,
    (body) => {
      const answer = parseResponseObject(body.toString("utf8"), "choices");
      if (asList(answer["choices"]).length === 0)
        return fail("upstream", "The provider returned no choice.", { code: "bad_answer" });
      const { text: words, reason } = parseChoices(answer);
      const usageReport = asObject(answer["usage"]);
      const id = asText(answer["id"]);
      if (id !== undefined) sink.reportStart(id);
      sink.reportUsage({ type: "usage", usage: usageOf(usageReport) });
      sink.reportContent(Buffer.byteLength(words));
      const usage = sink.reportFinish(reason ?? "stop") ?? {};
      if (usageReport) return replaceModelName(body, to.model, (b) => sink.write(b));
      const anew = { ...answer, model: to.model, usage: usageTo(usage) };
      return writeJson(sink, anew);
    },
    openaiFaultBody(to),
  );
}

const DONE = Buffer.from("data: [DONE]\n\n");

class CompletionPassthrough extends EventPassthrough {
  readonly #to: ResponseContext;
  readonly #rename: ReturnType<typeof createStringReplacer>;
  readonly #wantsUsage: boolean;
  #reason: FinishReason | undefined;
  #hasReported = false;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    super(sink);
    this.#to = to;
    this.#rename = createStringReplacer(["model"], to.model);
    this.#wantsUsage = asObject(to.body["stream_options"])?.["include_usage"] === true;
  }

  protected onEvent(b: Buffer, from: number, to: number): void {
    const bytes = b.subarray(from, to);
    const event = parseEventText(bytes);
    if (this.isOver) return;
    if (!event) return this.out.addRange(b, from, to);
    if (event.data === "[DONE]") return this.#finish(bytes);
    const chunk = parseResponseObject(event.data, "choices");
    const usage = asObject(chunk["usage"]);
    if (usage) this.sink.reportUsage({ type: "usage", usage: usageOf(usage) });
    const { text: words, reason: why } = parseChoices(chunk);
    this.#reason = why ?? this.#reason;
    if (words !== "" || why !== undefined) this.sink.reportContent(Buffer.byteLength(words));
    if (usage && asList(chunk["choices"]).length === 0) {
      if (!this.#wantsUsage) return;
      this.#hasReported = true;
    }
    this.#rename(bytes, bytes.indexOf(123), this.out);
  }

  protected onEnd(): void {
    this.#finish(DONE);
  }

  writeFault(fault: Fault): void {
    this.isOver = true;
    const { body } = encodeFault(fault, this.#to);
    this.sink.write(Buffer.from(`data: ${JSON.stringify(body)}\n\n`));
  }

  #finish(last: Buffer): void {
    if (this.#reason === undefined) return failTruncated();
    this.out.flush();
    this.isOver = true;
    const usage = this.sink.reportFinish(this.#reason) ?? {};
    if (this.#wantsUsage && !this.#hasReported) {
      const event = { ...responseFrame(this.#to), choices: [], usage: usageTo(usage) };
      this.out.add(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
    }
    this.out.add(last);
  }
}

// Passthrough mode: forwards a provider's bytes to a client of the same protocol. Only the model
// name in response objects is changed. Errors are removed and reported in the gateway's form, so
// that another candidate can still respond.
import { unpooledSlice, unpooledConcat } from "../../../lib/unpooled-buffer.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { withCost } from "../../cost-in-usage.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asObject, asText, asList, asObjects, parseObject } from "../../json-values.ts";
import { EventTemplates, type TemplateFields } from "../../sse/event-templates.ts";
import {
  findEventData,
  createStringReplacer,
  TemplatePassthrough,
  replaceModelName,
} from "../../sse/index.ts";
import { streamFailure } from "../server/fault.ts";
import { responseObject } from "../server/response-object.ts";
import { ResponsesToolCounts, usageTo, usageOf } from "../usage.ts";
import {
  dataIn,
  DONE_TYPE,
  sequenceIn,
  typeOf,
  isText,
  textBytesIn,
  textBytesOf,
} from "./event-bytes.ts";
import { MAX_EVENT_BYTES } from "./response.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import { writeJson } from "../../passthrough.ts";
import { maxRuns } from "../../reported-tool-runs.ts";
import { isCall } from "./reader.ts";

export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? new ResponseStreamPassthrough(sink, to) : passResponse(sink, to);

const DONE = Buffer.from("data: [DONE]\n\n");
const END = Buffer.concat([Buffer.from("\n\n"), DONE]);

/** Events that contain a response object before the end of the stream. */
const START_EVENTS = new Set(["response.created", "response.in_progress", "response.queued"]);
const END_EVENTS = new Set([
  "response.completed",
  "response.incomplete",
  "response.done",
  "response.failed",
  "response.cancelled",
]);

/** Deltas of one part differ only in these members. */
const TEMPLATE_FIELDS: TemplateFields = {
  responseText: new Set(["delta"]),
  otherText: new Set(["obfuscation"]),
  numbers: new Set(["sequence_number"]),
};

class ResponseStreamPassthrough extends TemplatePassthrough {
  readonly #to: ResponseContext;
  readonly #rename: ReturnType<typeof createStringReplacer>;
  /**
   * The event that announced the response, and the last event. `writeFault` builds the failure
   * events from them.
   */
  #first: Buffer | undefined;
  #last: Buffer | undefined;
  #lastFrom = 0;
  #lastTill = 0;
  #committed = false;
  /** Bytes of text since the last report. */
  #words = 0;
  #responseSeen = false;
  readonly #tools = new ResponsesToolCounts();
  #model: string | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    super(sink, TEMPLATE_FIELDS, MAX_EVENT_BYTES);
    this.#to = to;
    this.#rename = createStringReplacer(["response", "model"], to.model);
  }

  protected override afterChunk(): void {
    this.#reportText();
    super.afterChunk();
    this.#keep();
  }

  protected onKnownEvent(known: EventTemplates): void {
    this.#words += known.textBytes;
  }

  protected override forwardKnown(b: Buffer, from: number, to: number, last: number): void {
    this.#remember(b, last, to);
    super.forwardKnown(b, from, to, last);
  }

  protected onEnd(): void {
    this.out.flush();
    fail("upstream", "The provider's stream ended before its response was complete.", {
      code: "truncated",
    });
  }

  writeFault(f: Fault): void {
    if (this.isOver) return;
    this.isOver = true;
    const { event, error } = streamFailure(f, this.#to);
    const last = this.#last?.subarray(this.#lastFrom, this.#lastTill);
    let number = last ? sequenceIn(last) + 1 : 0;
    const write = (type: string, fields: JsonObject) => {
      const json = JSON.stringify({ type, sequence_number: number++, ...fields });
      this.sink.write(Buffer.from(`event: ${type}\ndata: ${json}\n\n`));
    };
    const known = this.#first && asObject(dataIn(this.#first)["response"]);
    const now = responseObject(this.#to).toJson({ status: "failed", output: [], error });
    const { status, model } = now;
    const response = known
      ? { ...known, status, model, error, completed_at: null }
      : (now as JsonObject);
    if (!this.#first)
      write("response.created", {
        response: { ...response, status: "in_progress", error: null },
      });
    write("error", event);
    write("response.failed", { response });
    this.sink.write(DONE);
  }

  protected onNewEvent(b: Buffer, from: number, till: number): void {
    const event = b.subarray(from, till);
    const json = findEventData(event)?.from ?? -1;
    const type = typeOf(event, json);
    if (type !== "") this.#remember(b, from, till);
    if (START_EVENTS.has(type)) {
      this.#begin(event);
      return json < 0 ? this.out.addRange(b, from, till) : this.#rename(event, json, this.out);
    }
    if (END_EVENTS.has(type)) {
      this.out.flush();
      return this.#end(event, json, dataIn(event));
    }
    if (type === "error" || type === DONE_TYPE) {
      this.out.flush();
      return type === "error" ? throwParsedError(dataIn(event)) : undefined;
    }
    if (isContent(type)) this.#readEvent(type, event, json);
    this.out.addRange(b, from, till);
  }

  #remember(b: Buffer, from: number, till: number): void {
    this.#last = b;
    this.#lastFrom = from;
    this.#lastTill = till;
  }

  /** Copies the last event, so that its chunk can be freed. */
  #keep(): void {
    if (!this.#last) return;
    const last = unpooledSlice(this.#last, this.#lastFrom, this.#lastTill);
    this.#remember(last, 0, last.length);
  }

  #begin(event: Buffer): void {
    if (this.#first) return;
    const response = asObject(dataIn(event)["response"]);
    const id = asText(response?.["id"]);
    this.#model = asText(response?.["model"]);
    this.#first = unpooledConcat([event]);
    if (id !== undefined) this.sink.reportStart(id);
  }

  #readEvent(type: string, event: Buffer, json: number): void {
    this.#commit();
    if (type === "response.output_item.done") this.#done(dataIn(event)["item"] ?? null);
    if (!type.endsWith(".delta")) return;
    this.#responseSeen = true;
    if (!isText(type)) return;
    const words = textBytesIn(event, json);
    this.#words += words;
    if (json >= 0) this.templates.learn(event, json, words);
  }

  #done(item: Json): void {
    // Text that was not sent in deltas is in the finished item.
    if (!this.#responseSeen) this.#words += textBytesOf([item]);
    const tool = asObject(item);
    if (!tool) return;
    if (!this.#tools.item(tool)) return;
    const usage = this.#tools.usage(undefined);
    this.sink.reportUsage({ type: "usage", usage, model: this.#model });
  }

  #end(event: Buffer, json: number, data: JsonObject): void {
    const response = asObject(data["response"]) ?? {};
    const type = asText(data["type"]) ?? typeOf(event, json);
    const counted = reportUsage(response, this.sink, this.#tools.usage(response));
    if (isFailure(response) || type === "response.failed" || type === "response.cancelled")
      throwParsedError({
        error: response["error"] ?? { message: `The provider ended with ${type}.` },
      });
    this.#commit();
    this.#reportText();
    this.isOver = true;
    const settled = this.sink.reportFinish(reasonOf(response));
    const usage = usageToSend(response, this.#to, { settled, counted });
    if (usage) {
      const updatedResponse = {
        ...data,
        type,
        response: { ...response, model: this.#to.model, usage },
      };
      this.out.add(Buffer.from(`event: ${type}\ndata: ${JSON.stringify(updatedResponse)}`));
      return this.out.add(END);
    }
    // The stream always ends with this protocol's end marker, whether or not the provider sends it,
    // and with nothing else.
    this.#rename(event.subarray(0, lengthOf(event)), json, this.out);
    this.out.add(END);
  }

  #commit(): void {
    if (this.#committed) return;
    this.#committed = true;
    this.sink.reportContent(0);
  }

  #reportText(): void {
    if (this.#words > 0) this.sink.reportContent(this.#words);
    this.#words = 0;
  }
}

/**
 * Returns the length of an event without its line endings. A chunk boundary may have separated one
 * of them.
 */
function lengthOf(event: Buffer): number {
  let length = event.length;
  while (event[length - 1] === 10 || event[length - 1] === 13) length--;
  return length;
}

/** Whether an event contains response content. After it, no other candidate can respond. */
const isContent = (type: string): boolean =>
  type.endsWith(".delta") ||
  type === "response.output_item.done" ||
  type === "response.image_generation_call.partial_image";

// Passthrough mode of a non-streaming response. Also reads the usage and the finish reason of any
// response.

/**
 * Reports the usage. Returns whether the output has been counted. `ran` contains the tool runs that
 * were seen in the stream.
 */
function reportUsage(response: JsonObject, sink: PassthroughSink, ran: Usage = {}): boolean {
  const tools = new ResponsesToolCounts();
  for (const item of asObjects(response["output"])) tools.item(item);
  const usage = usageOf(response, maxRuns(tools.usage(response), ran));
  if (!usage) return false;
  const model = asText(response["model"]);
  sink.reportUsage({ type: "usage", usage, model, tier: asText(response["service_tier"]) });
  return usage.output !== undefined;
}

/**
 * Returns the usage that replaces the provider's: the settled usage if the provider has not counted
 * the output, and the cost if the client asked for it. Undefined if the bytes are forwarded.
 */
function usageToSend(
  response: JsonObject,
  to: ResponseContext,
  { settled, counted }: { readonly settled: Opt<Usage>; readonly counted: boolean },
): JsonObject | undefined {
  if (settled && !counted) return withCost(usageTo(settled), to) ?? undefined;
  const reported = asObject(response["usage"]);
  return to.includesCost === true && reported ? withCost(reported, to) : undefined;
}

const isFailure = (response: JsonObject): boolean =>
  response["status"] === "failed" ||
  response["status"] === "cancelled" ||
  asObject(response["error"]) !== undefined;

function reasonOf(response: JsonObject): FinishReason {
  if (response["status"] === "incomplete") {
    const why = asObject(response["incomplete_details"])?.["reason"];
    return why === "content_filter" ? "filtered" : why === "max_output_tokens" ? "length" : "other";
  }
  let refused = false;
  for (const raw of asList(response["output"])) {
    const item = asObject(raw);
    if (isCall(asText(item?.["type"]) ?? "")) return "tool_calls";
    refused ||= asList(item?.["content"]).some((part) => asObject(part)?.["type"] === "refusal");
  }
  return refused ? "refusal" : "stop";
}

/**
 * Creates the stream, which receives the whole response in one push. A body that is not a response,
 * such as a list or a deletion, is forwarded unchanged.
 */
function passResponse(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  let ended = false;
  const forward = (body: Buffer): void => {
    const answer =
      parseObject(body.toString("utf8")) ??
      fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
    if (answer["error"] && !Array.isArray(answer["output"])) throwParsedError(answer);
    const id = asText(answer["id"]);
    if (id !== undefined) sink.reportStart(id);
    const counted = reportUsage(answer, sink);
    // Reading a stored response that failed is a success. A new response that failed is an error.
    if (to.body["input"] !== undefined && isFailure(answer)) throwParsedError(answer);
    sink.reportContent(textBytesOf(answer["output"]));
    const settled = sink.reportFinish(reasonOf(answer));
    ended = true;
    const isNew = answer["object"] === "response" && to.body["input"] !== undefined;
    const usage = isNew ? usageToSend(answer, to, { settled, counted }) : undefined;
    if (usage) return writeJson(sink, { ...answer, model: to.model, usage });
    if (answer["object"] !== "response") return sink.write(body);
    replaceModelName(body, to.model, (b) => sink.write(b));
  };
  return {
    isBetweenEvents: true,
    push: forward,
    end() {
      if (!ended) fail("upstream", "The provider's response was empty.", { code: "bad_answer" });
    },
    writeFault() {},
  };
}

// Decodes a provider's response, in one piece or as a stream, and its token counts.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject, HeadersIn } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { parseObject, asList, asNumber, asObject, asText } from "../../json-values.ts";
import { ResponsesReader } from "./reader.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { parseEventObject } from "../../sse/event-splitter.ts";

/**
 * Decodes a non-streaming response, which is handled like a stream that has only an end event.
 */
export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const response = parseResponseObject(body);
  new ResponsesReader(emit).end({ status: "completed", ...response });
}

/** Parses a response. Throws if a response with status 200 is not a response object. */
function parseResponseObject(body: Buffer): JsonObject {
  const response =
    parseObject(body.toString("utf8")) ??
    fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
  if (response["error"] && !Array.isArray(response["output"])) throwParsedError(response);
  if (!Array.isArray(response["output"]))
    fail("upstream", "The provider's response has no output.", { code: "bad_answer" });
  return response;
}

type Emit = (event: ModelEvent) => void;

/** Maximum size of one event, in bytes. An image is sent in one event, and so in one line. */
export const MAX_EVENT_BYTES = BOUNDS.largeEvent.max;

export function createDecoder(emit: Emit, headers: HeadersIn): Decoder {
  // Some providers send a non-streaming response to a streaming request.
  if (/^application\/json\b/i.test(headers["content-type"] ?? ""))
    return createResponseDecoder(emit);
  const reading = new ResponsesReader(emit);
  const events = createEventDecoder(
    (name, data) => {
      if (reading.isFinished || data === "[DONE]") return;
      const event = parseEventObject(data);
      read(reading, asText(event["type"]) ?? name, event);
    },
    { maxLineBytes: MAX_EVENT_BYTES, maxEventBytes: MAX_EVENT_BYTES },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!reading.isFinished)
        fail("upstream", "The provider's stream ended before its response was complete.", {
          code: "truncated",
        });
    },
  };
}

function read(to: ResponsesReader, type: string, event: JsonObject): void {
  const at = to.place(event);
  const deltaText = asText(event["delta"]) ?? "";
  const part = `c${asNumber(event["content_index"]) ?? 0}`;
  const summary = asNumber(event["summary_index"]) ?? 0;
  switch (type) {
    case "response.output_text.delta":
      return to.delta(at, part, { type: "text" }, deltaText, asList(event["logprobs"]));
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta":
      return to.argument(at, deltaText);
    case "response.reasoning_summary_text.delta":
      return to.summary(at, summary, deltaText, false);
    case "response.reasoning_summary_text.done":
      return to.summary(at, summary, asText(event["text"]) ?? "", true);
    case "response.reasoning_text.delta":
    case "response.reasoning.delta":
      return to.delta(at, `r${part.slice(1)}`, { type: "reasoning" }, deltaText);
    case "response.reasoning_text.done":
    case "response.reasoning.done":
      return to.fill(at, `r${part.slice(1)}`, { type: "reasoning" }, asText(event["text"]) ?? "");
    case "response.refusal.delta":
      return to.delta(at, part, { type: "refusal" }, deltaText);
    case "response.output_text.done":
      return to.fill(at, part, { type: "text" }, asText(event["text"]) ?? "");
    case "response.refusal.done":
      return to.fill(at, part, { type: "refusal" }, asText(event["refusal"]) ?? "");
    case "response.content_part.done":
      return to.partDone(at, part, asObject(event["part"]) ?? {});
    case "response.output_text.annotation.added":
      return to.cite(at, part, event["annotation"] ?? null);
    case "response.function_call_arguments.done":
      return to.arguments(at, asText(event["arguments"]) ?? "");
    case "response.custom_tool_call_input.done":
      return to.arguments(at, asText(event["input"]) ?? "");
    case "response.image_generation_call.partial_image":
      return to.partial(at, asText(event["partial_image_b64"]) ?? "");
    case "response.output_item.added":
      return to.added(at, asObject(event["item"]) ?? {});
    case "response.output_item.done":
      if (to.done(at, asObject(event["item"]) ?? {})) to.count();
      return;
    case "response.created":
    case "response.in_progress":
    case "response.queued":
      return to.start(asObject(event["response"]));
    case "response.completed":
    case "response.done":
    case "response.incomplete":
    case "response.failed":
    case "response.cancelled":
      return to.end({ status: type.slice("response.".length), ...asObject(event["response"]) });
    case "error":
      return throwParsedError(event);
    default:
      // Unknown events contain nothing that the finished item does not repeat. An error is detected
      // under any event name.
      if (asObject(event["error"])) throwParsedError(event);
  }
}

function createResponseDecoder(emit: Emit): Decoder {
  const chunks: Buffer[] = [];
  return {
    push: (chunk) => void chunks.push(chunk),
    end: () => decodeResponse(Buffer.concat(chunks), emit),
  };
}

/** Decodes the response to a token count request. */
export const decodeCount = (body: Buffer): number =>
  asNumber(parseObject(body.toString("utf8"))?.["input_tokens"]) ??
  fail("upstream", "The provider's token count has no input_tokens.", { code: "bad_answer" });

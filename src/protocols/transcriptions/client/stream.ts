// Decodes a backend's stream into events: one text block and its segments. Backends without
// streaming return one whole response, which is decoded too.
import type { ModelEvent } from "../../../model/event.ts";
import type { TranscriptItem } from "../../../model/operations/audio-requests.ts";
import type { HeadersIn, JsonObject } from "../../../model/values.ts";
import { BOUNDS } from "../../../lib/bounds.ts";
import { bodyFormOf } from "../../../lib/media-type.ts";
import { fail } from "../../../model/error.ts";
import type { CallContext, Decoder } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, parseObject, asText } from "../../json-values.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { emitEnd, segmentOf, parseTranscript, failTruncated } from "./parse-response.ts";
import { decodeResponse } from "./response.ts";

type Emit = (event: ModelEvent) => void;

export const createDecoder = (
  emit: Emit,
  _of: CallContext | undefined,
  headers: HeadersIn,
): Decoder =>
  bodyFormOf(headers["content-type"]) === "stream"
    ? createTranscriptEventDecoder(emit)
    : createResponseDecoder(emit, headers);

function createResponseDecoder(emit: Emit, headers: HeadersIn): Decoder {
  const held: Buffer[] = [];
  return {
    push: (chunk) => void held.push(chunk),
    end: () => decodeResponse(Buffer.concat(held), emit, undefined, headers),
  };
}

/**
 * A parsed stream event. Its type is recognized by the end of the event name, because vendors use
 * different prefixes.
 */
export type TranscriptEvent =
  | { readonly what: "delta"; readonly words: string; readonly said: JsonObject }
  | { readonly what: "segment" | "done" | "other"; readonly said: JsonObject };

export function parseTranscriptEvent(data: string): TranscriptEvent {
  const event = parseObject(data);
  if (!event)
    return fail("upstream", "The provider sent an event that is not valid JSON.", {
      code: "bad_event",
    });
  if ((event["error"] !== undefined && event["error"] !== null) || event["type"] === "error")
    return throwParsedError(event);
  const type = asText(event["type"]) ?? "";
  if (type.endsWith(".delta"))
    return {
      what: "delta",
      words: asText(event["delta"]) ?? asText(event["text"]) ?? "",
      said: event,
    };
  if (type.endsWith(".segment")) return { what: "segment", said: event };
  return { what: type.endsWith(".done") ? "done" : "other", said: event };
}

function createTranscriptEventDecoder(emit: Emit): Decoder {
  let over = false;
  let spoken = false;
  let index = 0;
  let segments = 0;
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  const item = (one: TranscriptItem): void => emit({ type: "item", index: index++, item: one });
  const done = (event: JsonObject): void => {
    over = true;
    const { text: words, items, usage } = parseTranscript(event);
    if (!spoken && words !== "") emit({ type: "delta", index: 0, text: words });
    emit({ type: "close", index: 0 });
    for (const one of items) if (one.type !== "segment" || segments === 0) item(one);
    emitEnd(emit, usage);
  };
  const events = createEventDecoder(
    (_event, data) => {
      if (over || data === "[DONE]") return;
      const one = parseTranscriptEvent(data);
      if (one.what === "delta" && one.words !== "") {
        spoken = true;
        const logprobs = asList(one.said["logprobs"]);
        emit({
          type: "delta",
          index: 0,
          text: one.words,
          ...(logprobs.length > 0 && { logprobs }),
        });
      } else if (one.what === "segment") {
        const segment = segmentOf(one.said);
        if (segment) {
          segments++;
          item(segment);
        }
      } else if (one.what === "done") done(one.said);
    },
    { maxLineBytes: BOUNDS.event.max },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!over) failTruncated();
    },
  };
}

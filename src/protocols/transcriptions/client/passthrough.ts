// Passthrough mode: forwards a backend's bytes if they have the format that the client requested,
// and encodes them again otherwise.
import { collectResponse } from "../../../model/response-collector.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { bodyFormOf } from "../../../lib/media-type.ts";
import {
  EventPassthrough,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
} from "../../sse/index.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { createEncoder as encoding } from "../server/stream.ts";
import { encodeResponse as written } from "../server/response.ts";
import { formatIn, isTextFormat, TEXT } from "../constants.ts";
import { parseTranscriptBody, parseTranscript, failTruncated } from "./parse-response.ts";
import { parseTranscriptEvent, createDecoder } from "./stream.ts";
import { emitTranscript } from "./response.ts";

/**
 * Creates the stream. `foreign` means that the backend has its own JSON format, which clients do
 * not understand.
 */
export function createPassthrough(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
  foreign: boolean,
): PassthroughStream {
  if (!to.stream) return passResponse(sink, to, headers, foreign);
  const events = bodyFormOf(headers["content-type"]) === "stream";
  return events && !foreign ? passStream(sink, to) : convertFormat(sink, to, headers);
}

function passResponse(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
  foreign: boolean,
): PassthroughStream {
  return {
    isBetweenEvents: true,
    push(body) {
      const { json, ...said } = parseTranscriptBody(body, headers);
      const plain = isTextFormat(formatIn(to.body));
      sink.reportUsage({ type: "usage", usage: said.usage });
      sink.reportContent(Buffer.byteLength(said.text));
      const passes = json !== plain && !(json && foreign);
      if (passes) {
        sink.setContentType(headers["content-type"] ?? (plain ? TEXT : "application/json"));
        sink.reportFinish("stop");
        return sink.write(body);
      }
      const events: ModelEvent[] = [];
      emitTranscript(said, (event) => void events.push(event));
      const answer = collectResponse(events);
      // Encoded before usage is settled, because encoding fails if the requested format cannot
      // express the response.
      const anew = written(answer, to);
      sink.setContentType(plain ? TEXT : "application/json");
      const usage = { ...said.usage, ...sink.reportFinish("stop") };
      return sink.write(
        Buffer.isBuffer(anew)
          ? anew
          : Buffer.from(JSON.stringify(written({ ...answer, usage }, to))),
      );
    },
    end() {},
    writeFault(f) {
      sink.write(Buffer.from(JSON.stringify(encodeFault(f, to).body)));
    },
  };
}

function passStream(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  const out = createWriteBatch((bytes) => sink.write(bytes));
  let over = false;
  const events = createEventSplitter((b, from, till) => {
    if (over) return undefined;
    const event = parseEventText(b.subarray(from, till));
    if (!event || event.data === "[DONE]") return out.addRange(b, from, till);
    const one = parseTranscriptEvent(event.data);
    if (one.what === "delta" && one.words !== "") sink.reportContent(Buffer.byteLength(one.words));
    else if (one.what === "segment") sink.reportContent(0);
    if (one.what !== "done") return out.addRange(b, from, till);
    const { usage } = parseTranscript(one.said);
    over = true;
    out.flush();
    sink.reportUsage({ type: "usage", usage });
    sink.reportFinish("stop");
    return out.add(b.subarray(from, till));
  });
  return new EventPassthrough({
    events,
    out,
    over: () => over,
    end: failTruncated,
    fail: (f) => encoding((piece) => sink.write(Buffer.from(piece)), to).writeFault(f),
  });
}

function convertFormat(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const encoder = encoding((piece) => sink.write(Buffer.from(piece)), to);
  let counted = {};
  const decoder = createDecoder(
    (event) => {
      if (event.type === "delta") sink.reportContent(Buffer.byteLength(event.text));
      else if (event.type === "item") sink.reportContent(0);
      else if (event.type === "usage") {
        counted = event.usage;
        return sink.reportUsage(event);
      } else if (event.type === "finish")
        encoder.writeEvent({ type: "usage", usage: { ...counted, ...sink.reportFinish("stop") } });
      return encoder.writeEvent(event);
    },
    undefined,
    headers,
  );
  return {
    isBetweenEvents: false,
    push: (chunk) => decoder.push(chunk),
    end: () => decoder.end(),
    writeFault: (f) => encoder.writeFault(f),
  };
}

// Passthrough mode: forwards audio or events unchanged if the client requested that form, and
// converts them otherwise. The last piece is held back until usage is settled. Without it the audio
// is incomplete.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import {
  EventPassthrough,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
} from "../../sse/index.ts";
import { createEncoder as encoding } from "../server/stream.ts";
import { mimeOf, wantsEvents } from "../constants.ts";
import { parseAudioEvent, isEvents, failNoAudio, failTruncated } from "./parse-response.ts";
import { createAudioDetector } from "./audio-detector.ts";
import { createDecoder } from "./stream.ts";

export function createPassthrough(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const events = isEvents(headers);
  if (events !== wantsEvents(to.body)) return convertFormat(sink, to, headers);
  return events ? passEvents(sink, to) : passAudio(sink, to, headers);
}

function passAudio(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const type = headers["content-type"];
  if (/^text\//i.test(type ?? ""))
    fail("upstream", "The provider returned text instead of audio.", {
      code: "bad_content_type",
    });
  sink.setContentType(type ?? mimeOf(to.body));
  let last: Buffer | undefined;
  const sound = createAudioDetector((bytes) => {
    sink.reportContent(0);
    if (last) sink.write(last);
    last = bytes;
  });
  return {
    isBetweenEvents: false,
    push(chunk) {
      if (chunk.length > 0) sound.push(chunk);
    },
    end() {
      sound.end();
      if (!last) return failNoAudio();
      sink.reportFinish("stop");
      return sink.write(last);
    },
    // An audio stream cannot express an error.
    writeFault() {},
  };
}

function passEvents(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  const out = createWriteBatch((bytes) => sink.write(bytes));
  let sounded = false;
  let over = false;
  const events = createEventSplitter((b, from, till) => {
    if (over) return undefined;
    const event = parseEventText(b.subarray(from, till));
    if (!event || event.data === "[DONE]") return out.addRange(b, from, till);
    const { sound, over: usage } = parseAudioEvent(event.data);
    if (sound !== undefined) {
      sounded = true;
      sink.reportContent(0);
    }
    if (!usage) return out.addRange(b, from, till);
    if (!sounded) failNoAudio();
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
    fail: (fault) =>
      encoding((piece) => sink.write(Buffer.from(piece as string)), to).writeFault(fault),
  });
}

function convertFormat(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  sink.setContentType(mimeOf(to.body));
  const encoder = encoding((piece) => sink.write(Buffer.from(piece as string)), to);
  let counted: Usage = {};
  const decoder = createDecoder(
    (event: ModelEvent) => {
      if (event.type === "item") sink.reportContent(0);
      if (event.type === "usage") {
        counted = event.usage;
        return sink.reportUsage(event);
      }
      if (event.type === "finish")
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
    writeFault: (fault) => encoder.writeFault(fault),
  };
}

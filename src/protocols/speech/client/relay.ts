// The verbatim lane: sound passes as it came, and so do events where the client wants them. Where one came and the other is wanted,
// it is turned on the way. The last piece waits for the bill: without it the sound is not whole.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { EventRelay, eventOf, frames, gather } from "../../sse/index.ts";
import { stream as encoding } from "../server/stream.ts";
import { mimeOf, wantsEvents } from "../words.ts";
import { heard, isEvents, silent, truncated } from "./reading.ts";
import { sounding } from "./sounding.ts";
import { stream } from "./stream.ts";

export function relay(sink: RelaySink, to: AnswerContext, headers: HeadersIn): Relay {
  const events = isEvents(headers);
  if (events !== wantsEvents(to.body)) return turned(sink, to, headers);
  return events ? inEvents(sink, to) : asItComes(sink, to, headers);
}

function asItComes(sink: RelaySink, to: AnswerContext, headers: HeadersIn): Relay {
  const type = headers["content-type"];
  if (/^text\//i.test(type ?? ""))
    fail("upstream", "The provider answered with words where sound was asked for.", {
      code: "bad_content_type",
    });
  sink.type(type ?? mimeOf(to.body));
  let last: Buffer | undefined;
  const sound = sounding((bytes) => {
    sink.content(0);
    if (last) sink.bytes(last);
    last = bytes;
  });
  return {
    between: false,
    push(chunk) {
      if (chunk.length > 0) sound.push(chunk);
    },
    end() {
      sound.end();
      if (!last) return silent();
      sink.finish("stop");
      return sink.bytes(last);
    },
    // Sound has no words for it.
    fail() {},
  };
}

function inEvents(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((bytes) => sink.bytes(bytes));
  let sounded = false;
  let over = false;
  const events = frames((b, from, till) => {
    if (over) return undefined;
    const event = eventOf(b.subarray(from, till));
    if (!event || event.data === "[DONE]") return out.range(b, from, till);
    const { sound, over: usage } = heard(event.data);
    if (sound !== undefined) {
      sounded = true;
      sink.content(0);
    }
    if (!usage) return out.range(b, from, till);
    if (!sounded) silent();
    over = true;
    out.flush();
    sink.usage({ type: "usage", usage });
    sink.finish("stop");
    return out.add(b.subarray(from, till));
  });
  return new EventRelay({
    events,
    out,
    over: () => over,
    end: truncated,
    fail: (fault) => encoding((piece) => sink.bytes(Buffer.from(piece as string)), to).fail(fault),
  });
}

function turned(sink: RelaySink, to: AnswerContext, headers: HeadersIn): Relay {
  sink.type(mimeOf(to.body));
  const encoder = encoding((piece) => sink.bytes(Buffer.from(piece as string)), to);
  let counted: Usage = {};
  const decoder = stream(
    (event: ModelEvent) => {
      if (event.type === "item") sink.content(0);
      if (event.type === "usage") {
        counted = event.usage;
        return sink.usage(event);
      }
      if (event.type === "finish")
        encoder.event({ type: "usage", usage: { ...counted, ...sink.finish("stop") } });
      return encoder.event(event);
    },
    undefined,
    headers,
  );
  return {
    between: false,
    push: (chunk) => decoder.push(chunk),
    end: () => decoder.end(),
    fail: (fault) => encoder.fail(fault),
  };
}

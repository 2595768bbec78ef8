// The verbatim lane: a host's bytes pass when they are in the form that the client asked for; otherwise they are written anew.
import { fold } from "../../../model/fold.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { formOf } from "../../../lib/media.ts";
import { EventRelay, eventOf, frames, gather } from "../../sse/index.ts";
import { fault } from "../../responses/server/fault.ts";
import { stream as encoding } from "../server/stream.ts";
import { whole as written } from "../server/whole.ts";
import { formatIn, isPlain, TEXT } from "../words.ts";
import { transcriptIn, transcriptOf, truncated } from "./reading.ts";
import { heard, stream } from "./stream.ts";
import { spelt } from "./whole.ts";

/** `foreign`: the host has forms of its own, which clients do not read. */
export function relay(
  sink: RelaySink,
  to: AnswerContext,
  headers: HeadersIn,
  foreign: boolean,
): Relay {
  if (!to.stream) return whole(sink, to, headers, foreign);
  const events = formOf(headers["content-type"]) === "stream";
  return events && !foreign ? streamed(sink, to) : turned(sink, to, headers);
}

function whole(sink: RelaySink, to: AnswerContext, headers: HeadersIn, foreign: boolean): Relay {
  return {
    between: true,
    push(body) {
      const { json, ...said } = transcriptIn(body, headers);
      const plain = isPlain(formatIn(to.body));
      sink.usage({ type: "usage", usage: said.usage });
      sink.content(Buffer.byteLength(said.text));
      const passes = json !== plain && !(json && foreign);
      if (passes) {
        sink.type(headers["content-type"] ?? (plain ? TEXT : "application/json"));
        sink.finish("stop");
        return sink.bytes(body);
      }
      const events: ModelEvent[] = [];
      spelt(said, (event) => void events.push(event));
      const answer = fold(events);
      // An answer that the client's form cannot hold is none: so it is written first.
      const anew = written(answer, to);
      sink.type(plain ? TEXT : "application/json");
      const usage = { ...said.usage, ...sink.finish("stop") };
      return sink.bytes(
        Buffer.isBuffer(anew)
          ? anew
          : Buffer.from(JSON.stringify(written({ ...answer, usage }, to))),
      );
    },
    end() {},
    fail(f) {
      sink.bytes(Buffer.from(JSON.stringify(fault(f, to).body)));
    },
  };
}

function streamed(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((bytes) => sink.bytes(bytes));
  let over = false;
  const events = frames((b, from, till) => {
    if (over) return undefined;
    const event = eventOf(b.subarray(from, till));
    if (!event || event.data === "[DONE]") return out.range(b, from, till);
    const one = heard(event.data);
    if (one.what === "delta" && one.words !== "") sink.content(Buffer.byteLength(one.words));
    else if (one.what === "segment") sink.content(0);
    if (one.what !== "done") return out.range(b, from, till);
    const { usage } = transcriptOf(one.said);
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
    fail: (f) => encoding((piece) => sink.bytes(Buffer.from(piece)), to).fail(f),
  });
}

function turned(sink: RelaySink, to: AnswerContext, headers: HeadersIn): Relay {
  const encoder = encoding((piece) => sink.bytes(Buffer.from(piece)), to);
  let counted = {};
  const decoder = stream(
    (event) => {
      if (event.type === "delta") sink.content(Buffer.byteLength(event.text));
      else if (event.type === "item") sink.content(0);
      else if (event.type === "usage") {
        counted = event.usage;
        return sink.usage(event);
      } else if (event.type === "finish")
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
    fail: (f) => encoder.fail(f),
  };
}

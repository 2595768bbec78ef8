// The verbatim lane: bytes pass as they came, but for the model's name. Counts are asked for whether or not the client wants them;
// a client that does not is not shown the event that holds nothing else.
import type { Fault } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import { fail } from "../../../model/error.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { list, object, text } from "../../json.ts";
import { EventRelay, eventOf, frames, gather, named, renaming } from "../../sse/index.ts";
import { fault } from "../../responses/server/fault.ts";
import { frameOf } from "../server/saying.ts";
import { usageOf, usageTo } from "../usage.ts";
import { answerIn, choicesIn, truncated } from "./reading.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? streamed(sink, to) : whole(sink, to);

function whole(sink: RelaySink, to: AnswerContext): Relay {
  return {
    between: true,
    push(body) {
      const answer = answerIn(body.toString("utf8"));
      if (list(answer["choices"]).length === 0)
        return fail("upstream", "The provider answered without a choice.", { code: "bad_answer" });
      const { text: words, reason } = choicesIn(answer);
      const said = object(answer["usage"]);
      const id = text(answer["id"]);
      if (id !== undefined) sink.start(id);
      sink.usage({ type: "usage", usage: usageOf(said) });
      sink.content(Buffer.byteLength(words));
      const usage = sink.finish(reason ?? "stop") ?? {};
      if (said) return named(body, to.model, (b) => sink.bytes(b));
      const anew = { ...answer, model: to.model, usage: usageTo(usage) };
      return sink.bytes(Buffer.from(JSON.stringify(anew)));
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(fault(f, to).body)));
    },
  };
}

const DONE = Buffer.from("data: [DONE]\n\n");

function streamed(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((b) => sink.bytes(b));
  const rename = renaming(["model"], to.model);
  const asked = object(to.body["stream_options"])?.["include_usage"] === true;
  let reason: FinishReason | undefined;
  let told = false;
  let over = false;
  const finish = (last: Buffer): void => {
    if (reason === undefined) return truncated();
    out.flush();
    over = true;
    const usage = sink.finish(reason) ?? {};
    if (asked && !told) {
      const event = { ...frameOf(to), choices: [], usage: usageTo(usage) };
      out.add(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
    }
    out.add(last);
    return undefined;
  };
  const events = frames((b, from, till) => {
    const bytes = b.subarray(from, till);
    const event = eventOf(bytes);
    if (over) return undefined;
    if (!event) return out.range(b, from, till);
    if (event.data === "[DONE]") return finish(bytes);
    const said = answerIn(event.data);
    const usage = object(said["usage"]);
    if (usage) sink.usage({ type: "usage", usage: usageOf(usage) });
    const { text: words, reason: why } = choicesIn(said);
    reason = why ?? reason;
    if (words !== "" || why !== undefined) sink.content(Buffer.byteLength(words));
    if (usage && list(said["choices"]).length === 0) {
      if (!asked) return undefined;
      told = true;
    }
    const json = bytes.indexOf(123);
    return rename(bytes, json, out);
  });
  return new EventRelay({
    events,
    out,
    over: () => over,
    end: () => finish(DONE),
    fail: (f) => {
      over = true;
      sink.bytes(Buffer.from(`data: ${JSON.stringify(fault(f, to).body)}\n\n`));
    },
  });
}

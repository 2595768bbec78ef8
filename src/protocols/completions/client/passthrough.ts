// Forwards responses in passthrough mode. Bytes are unchanged, except for the model name. Usage is
// always requested. If the client did not request it, the event that contains only usage is not
// forwarded.
import type { Fault } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import { fail } from "../../../model/error.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import {
  EventPassthrough,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
  replaceModelName,
  createStringReplacer,
} from "../../sse/index.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { responseFrame } from "../server/response-common.ts";
import { usageOf, usageTo } from "../usage.ts";
import { parseResponseObject, parseChoices, failTruncated } from "./parse-response.ts";

export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? streamed(sink, to) : whole(sink, to);

function whole(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  return {
    isBetweenEvents: true,
    push(body) {
      const answer = parseResponseObject(body.toString("utf8"));
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
      return sink.write(Buffer.from(JSON.stringify(anew)));
    },
    end() {},
    writeFault(f: Fault) {
      sink.write(Buffer.from(JSON.stringify(encodeFault(f, to).body)));
    },
  };
}

const DONE = Buffer.from("data: [DONE]\n\n");

function streamed(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  const out = createWriteBatch((b) => sink.write(b));
  const rename = createStringReplacer(["model"], to.model);
  const asked = asObject(to.body["stream_options"])?.["include_usage"] === true;
  let reason: FinishReason | undefined;
  let hasReported = false;
  let over = false;
  const finish = (last: Buffer): void => {
    if (reason === undefined) return failTruncated();
    out.flush();
    over = true;
    const usage = sink.reportFinish(reason) ?? {};
    if (asked && !hasReported) {
      const event = { ...responseFrame(to), choices: [], usage: usageTo(usage) };
      out.add(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
    }
    out.add(last);
    return undefined;
  };
  const events = createEventSplitter((b, from, till) => {
    const bytes = b.subarray(from, till);
    const event = parseEventText(bytes);
    if (over) return undefined;
    if (!event) return out.addRange(b, from, till);
    if (event.data === "[DONE]") return finish(bytes);
    const chunk = parseResponseObject(event.data);
    const usage = asObject(chunk["usage"]);
    if (usage) sink.reportUsage({ type: "usage", usage: usageOf(usage) });
    const { text: words, reason: why } = parseChoices(chunk);
    reason = why ?? reason;
    if (words !== "" || why !== undefined) sink.reportContent(Buffer.byteLength(words));
    if (usage && asList(chunk["choices"]).length === 0) {
      if (!asked) return undefined;
      hasReported = true;
    }
    const json = bytes.indexOf(123);
    return rename(bytes, json, out);
  });
  return new EventPassthrough({
    events,
    out,
    over: () => over,
    end: () => finish(DONE),
    fail: (f) => {
      over = true;
      sink.write(Buffer.from(`data: ${JSON.stringify(encodeFault(f, to).body)}\n\n`));
    },
  });
}

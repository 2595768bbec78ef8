// The verbatim lane: an upstream's bytes on their way to a client of the same protocol. Only the model's name is changed,
// wherever a response object stands; errors are taken out and told by whoever has the right words for them.
import { fail } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { dataOf, eventOf, frames, gather, needle, renaming, valueAt } from "../../sse/index.ts";
import { isText, wordsIn, wordsOf } from "./amount.ts";
import { CAP } from "./stream.ts";
import { throwFailure } from "../../failure/failure.ts";
import { failure } from "../server/fault.ts";
import { responseObject } from "../server/object.ts";
import { isFailure, reasonOf, relayWhole, report } from "./relay-whole.ts";
import { usageTo } from "../usage.ts";
import { number, object, parsed, text } from "../../json.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? streamed(sink, to) : relayWhole(sink, to);

const TYPE = [needle("type")];
const DONE = Buffer.from("data: [DONE]\n\n");
const END = Buffer.concat([Buffer.from("\n\n"), DONE]);

/** Events in which a response stands before its end. */
const BEGUN = new Set(["response.created", "response.in_progress", "response.queued"]);
const ENDED = new Set([
  "response.completed",
  "response.incomplete",
  "response.done",
  "response.failed",
  "response.cancelled",
]);

function streamed(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((bytes) => sink.bytes(bytes));
  const rename = renaming(["response", "model"], to.model);
  /** The event that announced the response, and the last one: what a failure has to go on with. */
  let first: Buffer | undefined;
  let last: { b: Buffer; from: number; till: number } | undefined;
  let committed = false;
  let over = false;

  const content = () => {
    if (committed) return;
    committed = true;
    sink.content(0);
  };
  const end = (event: Buffer, json: number, data: JsonObject) => {
    const response = object(data["response"]) ?? {};
    const type = text(data["type"]) ?? typeOf(event, json);
    const counted = report(response, sink);
    if (isFailure(response) || type === "response.failed" || type === "response.cancelled")
      throwFailure({ error: response["error"] ?? { message: `The provider ended with ${type}.` } });
    content();
    tell();
    over = true;
    const settled = sink.finish(reasonOf(response));
    if (settled && !counted) {
      const said = {
        ...data,
        type,
        response: { ...response, model: to.model, usage: usageTo(settled) },
      };
      out.add(Buffer.from(`event: ${type}\ndata: ${JSON.stringify(said)}`));
      return out.add(END);
    }
    // What follows is the end of this protocol's streams, whether this upstream says so or not, and nothing else.
    rename(event.subarray(0, lengthOf(event)), json, out);
    out.add(END);
  };
  /** Ranges that nothing changes and that follow one another leave as one. */
  let run: { b: Buffer; from: number; to: number } | undefined;
  const pass = (b: Buffer, from: number, till: number) => {
    if (run?.b === b && run.to === from) run.to = till;
    else {
      flushRun();
      run = { b, from, to: till };
    }
  };
  const flushRun = () => {
    if (run) out.add(run.b.subarray(run.from, run.to));
    run = undefined;
  };
  const flush = () => {
    flushRun();
    out.flush();
  };
  /** How the deltas of this stream begin: what begins alike is one, and need not be looked into. */
  let alike: { begins: Buffer; said: boolean } | undefined;
  /** Bytes of text since they were last told. */
  let words = 0;
  let heard = false;
  const tell = () => {
    if (words > 0) sink.content(words);
    words = 0;
  };

  const events = frames((b, from, till) => {
    if (over) return;
    if (
      alike !== undefined &&
      till - from > alike.begins.length &&
      b.compare(alike.begins, 0, alike.begins.length, from, from + alike.begins.length) === 0
    ) {
      last = { b, from, till };
      if (alike.said) words += wordsIn(b, from + alike.begins.length, till);
      return pass(b, from, till);
    }
    const event = b.subarray(from, till);
    const json = dataOf(event)?.from ?? -1;
    const type = typeOf(event, json);
    if (type !== "") last = { b, from, till };
    if (BEGUN.has(type)) {
      if (!first) {
        first = event;
        const id = text(object(dataIn(event)["response"])?.["id"]);
        if (id !== undefined) sink.start(id);
      }
      if (json < 0) return pass(b, from, till);
      flushRun();
      return rename(event, json, out);
    }
    if (ENDED.has(type)) {
      flush();
      return end(event, json, dataIn(event));
    }
    if (type === "error" || type === DONE_TYPE) {
      flush();
      return type === "error" ? throwFailure(dataIn(event)) : undefined;
    }
    if (isContent(type)) {
      content();
      // What came in no delta comes whole.
      if (!heard && type === "response.output_item.done")
        words += wordsOf([dataIn(event)["item"] ?? null]);
      if (type.endsWith(".delta")) {
        heard = true;
        const begins = beginningOf(event, json);
        const said = isText(type);
        alike = begins && { begins, said };
        if (said) words += wordsIn(b, begins ? from + begins.length : from, till);
      }
    }
    pass(b, from, till);
  }, CAP);

  return {
    get between() {
      return events.between && !over;
    },
    push(chunk) {
      try {
        events.push(chunk);
      } finally {
        flush();
        tell();
      }
    },
    end() {
      events.end();
      flush();
      if (!over)
        fail("upstream", "The provider's stream ended before its answer did.", {
          code: "truncated",
        });
    },
    fail(f) {
      if (over) return;
      over = true;
      const { event, error } = failure(f, to);
      let number = last ? sequenceIn(last.b.subarray(last.from, last.till)) + 1 : 0;
      const write = (type: string, fields: JsonObject) => {
        const said = JSON.stringify({ type, sequence_number: number++, ...fields });
        sink.bytes(Buffer.from(`event: ${type}\ndata: ${said}\n\n`));
      };
      const known = first && object(dataIn(first)["response"]);
      const now = responseObject(to).whole({ status: "failed", output: [], error });
      const { status, model } = now;
      const response = known
        ? { ...known, status, model, error, completed_at: null }
        : (now as JsonObject);
      if (!first)
        write("response.created", {
          response: { ...response, status: "in_progress", error: null },
        });
      write("error", event);
      write("response.failed", { response });
      sink.bytes(DONE);
    },
  };
}

/** Without its line ends, of which a split may have left one behind. */
function lengthOf(event: Buffer): number {
  let length = event.length;
  while (event[length - 1] === 10 || event[length - 1] === 13) length--;
  return length;
}

const DONE_TYPE = "[DONE]";

/** Up to the end of its type, where that comes first of all; undefined where it does not. */
function beginningOf(event: Buffer, json: number): Buffer | undefined {
  const type = json < 0 ? undefined : valueAt(event, TYPE, json);
  if (!type || event.subarray(json, type.from).includes(COMMA)) return undefined;
  return Buffer.from(event.subarray(0, type.to));
}
const COMMA = 44;

/** "" for a comment. The name stands in the data, first as a rule; the event's own line is only a copy of it. */
function typeOf(event: Buffer, json: number): string {
  if (json < 0) {
    const read = eventOf(event);
    if (!read) return "";
    return read.data === DONE_TYPE ? DONE_TYPE : (text(parsed(read.data)?.["type"]) ?? read.event);
  }
  if (event[json] === 91) return DONE_TYPE;
  const type = valueAt(event, TYPE, json);
  if (type) return event.toString("latin1", type.from + 1, type.to - 1);
  return eventOf(event)?.event || (dataIn(event)["error"] ? "error" : "unknown");
}

const dataIn = (event: Buffer): JsonObject =>
  parsed(eventOf(event)?.data ?? "") ??
  fail("upstream", "An event of the provider's stream is not a JSON object.", {
    code: "bad_stream",
  });

function sequenceIn(event: Buffer): number {
  return number(parsed(eventOf(event)?.data ?? "")?.["sequence_number"]) ?? 0;
}

/** Something of the answer itself, after which no other answer can take its place. */
const isContent = (type: string): boolean =>
  type.endsWith(".delta") ||
  type === "response.output_item.done" ||
  type === "response.image_generation_call.partial_image";

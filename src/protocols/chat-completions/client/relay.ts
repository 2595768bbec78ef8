// The verbatim lane: an upstream's bytes go on as they came, and what the gateway must know is read in passing. One value
// is written anew, the model's name. An event that differs only in its words from one that was read is not parsed (see
// templates.ts).
import { fail, type Fault } from "../../../model/error.ts";
import type {
  Answering,
  FinishReason,
  JsonObject,
  Relay,
  RelaySink,
  Usage,
} from "../../../plugin/index.ts";
import { dataOf, eventOf, frames, gather, needle, valueAt } from "../../sse/index.ts";
import type { ChatDialect } from "../dialect.ts";
import { finishOf } from "../finish.ts";
import { faultChunk } from "../server/fault.ts";
import { usageSeen, usageTo } from "../usage.ts";
import { list, object, text } from "../words.ts";
import { wordsIn } from "./amount.ts";
import { recounted, retold } from "./counts.ts";
import { faultIn, firstByte, isError, parsed, throwFault } from "./fault.ts";
import { relayWhole, restream } from "./relay-whole.ts";
import { templates } from "./templates.ts";

const MODEL = [needle("model")];
const DONE = Buffer.from("data: [DONE]\n\n");

const CHUNK = "chat.completion.chunk";

const BRACE = 123;
const BRACKET = 91;

export function relay(sink: RelaySink, to: Answering, dialect: ChatDialect): Relay {
  if (!to.stream) return relayWhole(sink, to, dialect);
  const out = gather((b) => sink.bytes(b));
  const known = templates(to.model);
  const quoted = Buffer.from(JSON.stringify(to.model));
  const asked = object(to.body["stream_options"])?.["include_usage"] === true;
  /** What every chunk says of its answer, for one of our own. */
  let frame: JsonObject = { id: `chatcmpl-${to.id}`, object: CHUNK, created: to.created };
  let started = false;
  /** The client has read its usage, where it looks for it. */
  let told = false;
  let committed = false;
  let over = false;
  let calls = false;
  let reason: FinishReason | undefined;
  let tier: string | undefined;
  /** What the event at hand should say of its counts. */
  let better: JsonObject | undefined;
  let plain: Buffer[] | undefined;
  let begun = false;
  /** Bytes of text since they were last told. */
  let words = 0;

  /** Takes what is ours to know; false: the client did not ask for this event. */
  const read = (chunk: JsonObject, name: string): boolean => {
    if (name === "error" || isError(chunk)) throwFault(faultIn(chunk));
    const id = text(chunk["id"]);
    if (!started && id) {
      started = true;
      frame = { id, object: CHUNK, created: chunk["created"] ?? to.created };
      sink.start(id);
    }
    tier ??= text(chunk["service_tier"]);
    const choices = list(chunk["choices"]);
    for (const raw of choices) {
      const choice = object(raw);
      const delta = object(choice?.["delta"]);
      if (list(delta?.["tool_calls"]).length > 0) calls = true;
      if (!committed && delta && says(delta)) {
        committed = true;
        out.flush();
        sink.content(0);
      }
      if (delta) words += wordsIn(delta);
      const word = text(choice?.["finish_reason"]);
      if (word) reason = finishOf(word).reason;
    }
    const usage = usageSeen(chunk, dialect);
    if (usage)
      sink.usage(usage.tier === undefined && tier !== undefined ? { ...usage, tier } : usage);
    better = usage && retold(chunk, usage.usage);
    const counted = object(chunk["usage"]) !== undefined;
    told ||= counted && usage !== undefined;
    // Counts that nobody can believe are nobody's; one that can be told is written at the end.
    return choices.length > 0 || !counted || (asked && usage !== undefined);
  };

  const tell = () => {
    if (committed && words > 0) sink.content(words);
    words = 0;
  };

  const counts = (usage: Usage) => {
    const chunk = { ...frame, model: to.model, choices: [], usage: usageTo(usage) };
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
  };

  const finish = () => {
    if (reason === undefined)
      fail("upstream", "The provider's answer ended before it was finished.", {
        code: "truncated",
      });
    over = true;
    out.flush();
    tell();
    const settled = sink.finish(calls && reason === "stop" ? "tool_calls" : reason!);
    if (asked && !told && settled) sink.bytes(counts(settled));
    sink.bytes(DONE);
  };

  const event = (b: Buffer, from: number, till: number) => {
    // What stands after the end is not part of the answer.
    if (over) return;
    let bytes = from === 0 && till === b.length ? b : b.subarray(from, till);
    const passed = known.pass(bytes, out);
    if (passed !== undefined) {
      words += passed;
      return;
    }
    const told = eventOf(bytes);
    if (!told) return out.add(bytes);
    if (told.data === "[DONE]") return finish();
    const chunk = parsed(told.data);
    if (!read(chunk, told.event)) return;
    const json = dataOf(bytes)?.from;
    // Data over several lines is put together, and written as everybody else writes it.
    if (json === undefined)
      return out.add(
        Buffer.from(
          `data: ${JSON.stringify({ ...chunk, model: to.model, ...(better && { usage: better }) })}\n\n`,
        ),
      );
    if (better) bytes = recounted(bytes, json, better);
    const model = valueAt(bytes, MODEL, json);
    if (!model) return out.add(bytes);
    // Before the commit every event is looked at: an empty word in it may be the next one's first.
    if (committed) known.learn(bytes, json, model);
    out.add(bytes.subarray(0, model.from));
    out.add(quoted);
    out.add(bytes.subarray(model.to));
  };
  const events = frames(event);

  return {
    get between() {
      return events.between && !over;
    },
    push(chunk) {
      if (!begun) {
        const first = firstByte(chunk);
        if (first === undefined) return;
        begun = true;
        if (first === BRACE || first === BRACKET) plain = [];
        if (first === 60)
          fail("upstream", "The provider answered with a page instead of a stream.", {
            code: "malformed_answer",
          });
      }
      if (plain) return void plain.push(chunk);
      events.push(chunk);
      out.flush();
      tell();
    },
    end() {
      if (plain) return restream(Buffer.concat(plain), sink, to, dialect);
      events.end();
      if (!over) finish();
    },
    fail(fault: Fault) {
      over = true;
      sink.bytes(Buffer.from(faultChunk(fault)));
    },
  };
}

const SAYS = [
  "content",
  "reasoning_content",
  "reasoning",
  "refusal",
  "tool_calls",
  "reasoning_details",
  "images",
  "audio",
  "function_call",
];

/** Whether a delta holds something that a client would show or run. */
const says = (delta: JsonObject): boolean =>
  SAYS.some((key) => {
    const value = delta[key];
    return (
      value !== undefined &&
      value !== null &&
      value !== "" &&
      !(Array.isArray(value) && value.length === 0)
    );
  });

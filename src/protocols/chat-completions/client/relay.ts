// The verbatim lane: an upstream's bytes go on as they came, and what the gateway must know is read in passing. One value
// is written anew, the model's name. Events that say nothing we act on are never parsed: keys are looked for in the bytes,
// where text inside a string cannot pass for one (see sse/bytes.ts).
import { fail, type Fault } from "../../../model/error.ts";
import type {
  Answering,
  FinishReason,
  JsonObject,
  Relay,
  RelaySink,
} from "../../../plugin/index.ts";
import { dataOf, eventOf, frames, gather, keyAt, needle, renaming } from "../../sse/index.ts";
import type { ChatDialect } from "../dialect.ts";
import { finishOf } from "../finish.ts";
import { faultChunk } from "../server/fault.ts";
import { usageSeen } from "../usage.ts";
import { list, object, text } from "../words.ts";
import { faultIn, firstByte, isError, parsed, throwFault } from "./fault.ts";
import { relayWhole, restream } from "./relay-whole.ts";

const CHOICES = needle("choices");
const FINISH = needle("finish_reason");
const USAGE = needle("usage");
const ERROR = needle("error");
const CALLS = needle("tool_calls");
const DONE = Buffer.from("data: [DONE]\n\n");

/** The first letter of `null`. */
const N = 110;
const BRACE = 123;
const BRACKET = 91;

export function relay(sink: RelaySink, to: Answering, dialect: ChatDialect): Relay {
  if (!to.stream) return relayWhole(sink, to, dialect);
  const out = gather((b) => sink.bytes(b));
  const rename = renaming(["model"], to.model);
  const asked = object(to.body["stream_options"])?.["include_usage"] === true;
  let started = false;
  let committed = false;
  let over = false;
  let calls = false;
  let reason: FinishReason | undefined;
  let tier: string | undefined;
  let plain: Buffer[] | undefined;
  let begun = false;

  /** Something in this event is ours to know. */
  const telling = (event: Buffer): boolean => {
    if (!started || !committed || keyAt(event, CHOICES) < 0 || keyAt(event, ERROR) >= 0)
      return true;
    return said(event, FINISH) || said(event, USAGE) || (!calls && said(event, CALLS));
  };

  /** Takes what is ours to know; false: the client did not ask for this event. */
  const read = (chunk: JsonObject, name: string): boolean => {
    if (name === "error" || isError(chunk)) throwFault(faultIn(chunk));
    const id = text(chunk["id"]);
    if (!started && id) {
      started = true;
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
        sink.content();
      }
      const word = text(choice?.["finish_reason"]);
      if (word) reason = finishOf(word).reason;
    }
    const usage = usageSeen(chunk, dialect);
    if (usage)
      sink.usage(usage.tier === undefined && tier !== undefined ? { ...usage, tier } : usage);
    return asked || choices.length > 0 || !object(chunk["usage"]);
  };

  const finish = () => {
    if (reason === undefined)
      fail("upstream", "The provider's answer ended before it was finished.", {
        code: "truncated",
      });
    over = true;
    out.flush();
    sink.finish(calls && reason === "stop" ? "tool_calls" : reason!);
    sink.bytes(DONE);
  };

  const event = (b: Buffer, from: number, till: number) => {
    // What stands after the end is not part of the answer.
    if (over) return;
    const bytes = from === 0 && till === b.length ? b : b.subarray(from, till);
    const at = dataOf(bytes);
    const first = at && bytes[at.from];
    if (at && first === BRACE && bytes[0] === 100) {
      if (telling(bytes) && !read(parsed(bytes.toString("utf8", at.from, at.to)), "")) return;
      return rename(bytes, at.from, out);
    }
    const told = eventOf(bytes);
    if (!told) return out.add(bytes);
    if (told.data === "[DONE]") return finish();
    // Several lines of data, or a name: put together, and written as everybody else writes it.
    const chunk = parsed(told.data);
    if (!read(chunk, told.event)) return;
    if (at && first === BRACE) return rename(bytes, at.from, out);
    out.add(Buffer.from(`data: ${JSON.stringify({ ...chunk, model: to.model })}\n\n`));
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

/** The key stands there, with something in it. */
function said(event: Buffer, key: Buffer): boolean {
  for (let i = keyAt(event, key); i >= 0; i = keyAt(event, key, i)) if (event[i] !== N) return true;
  return false;
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

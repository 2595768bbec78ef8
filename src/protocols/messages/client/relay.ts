// The verbatim lane: bytes pass as they came. Only `message_start` names the model, so only it is written into; the tap
// reads it and `message_delta`. Everything else, known to us or not, is recognised by its first bytes and never parsed.
import { parseShallow } from "../../../lib/json.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import {
  dataOf,
  eventOf,
  frames,
  gather,
  needle,
  renaming,
  valueAt,
  type Gather,
} from "../../sse/index.ts";
import { fault as refusal } from "../server/fault.ts";
import { usageTo } from "../usage.ts";
import { isObject, text } from "../../json.ts";
import { throwFailure } from "../../failure/failure.ts";
import { CAP } from "./stream.ts";
import { Tap } from "./tap.ts";
import { wordsIn, wordsOf } from "./amount.ts";
import { answerOf } from "./whole.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? streamed(sink, to) : wholly(sink, to);

const LF = 10;
const STOP = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n');

/** Blocks that say nothing in their start: their first delta is the first content. */
const SILENT = new Set(["text", "thinking", "tool_use", "server_tool_use", "mcp_tool_use"]);

function streamed(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((b) => sink.bytes(b));
  const rename = renaming(["message", "model"], to.model);
  const tap = new Tap(sink);
  let over = false;
  // Events that stay as they are and follow one another leave as the one range they came as.
  let run: Buffer | undefined;
  let from = 0;
  let until = 0;

  const pass = (b: Buffer, start: number, end: number): void => {
    if (run === b && until === start) {
      until = end;
      return;
    }
    settle();
    run = b;
    from = start;
    until = end;
  };
  const settle = (): void => {
    if (run) out.add(from === 0 && until === run.length ? run : run.subarray(from, until));
    run = undefined;
  };
  const flush = (): void => {
    settle();
    out.flush();
  };
  /** The end as upstream named it, held back while nobody has counted: this wire's clients read their counts off it. */
  let held: JsonObject | undefined;
  const finish = (): void => {
    // What stands before the terminal is the client's already; the terminal waits for the bill.
    flush();
    over = true;
    const settled = tap.finish();
    if (held || settled) out.add(ending(held, settled));
    held = undefined;
  };
  const events = frames((b, start, end) => {
    // After its end a message has no more to say, and clients take a second one for a fault. Only the last line's
    // feed may still be on its way.
    if (over) return b[start] === LF ? pass(b, start, end) : undefined;
    const named = nameOf(b, start, end);
    const told = named === undefined ? unnamed(b.subarray(start, end)) : undefined;
    const type = named ?? told?.type;
    switch (type) {
      case "content_block_delta":
        tap.content(named === undefined ? end - start : wordsIn(b, start, end));
        break;
      case "content_block_start": {
        const block = jsonOf(b.subarray(start, end))["content_block"];
        if (isObject(block) && !SILENT.has(text(block["type"]) ?? "")) tap.content();
        break;
      }
      case "message_delta": {
        const delta = jsonOf(b.subarray(start, end));
        tap.delta(delta);
        if (tap.counted && !held) break;
        const said = held ? (held["delta"] as Record<string, Json | undefined>) : {};
        held = { ...delta, delta: Object.assign(said, inside(delta)) };
        if (!tap.counted) return;
        settle();
        out.add(ending(held, undefined));
        held = undefined;
        return;
      }
      case "message_stop":
        finish();
        break;
      case "error":
        return throwFailure(jsonOf(b.subarray(start, end)));
      case "[DONE]":
        return;
    }
    if (told?.nameless) {
      settle();
      out.add(Buffer.from(`event: ${type}\n`));
    }
    if (type !== "message_start") return pass(b, start, end);
    settle();
    started(b.subarray(start, end), tap, rename, out, to);
  }, CAP);

  return {
    get between() {
      return events.between;
    },
    push(chunk) {
      try {
        events.push(chunk);
      } finally {
        flush();
        tap.told();
      }
    },
    end() {
      events.end();
      if (!over) {
        if (!tap.ended)
          fail("upstream", "The provider's stream ended before its answer did.", {
            code: "truncated",
          });
        finish();
        out.add(STOP);
      }
      flush();
    },
    fail(f: Fault) {
      sink.bytes(Buffer.from(`event: error\ndata: ${JSON.stringify(refusal(f, to).body)}\n\n`));
    },
  };
}

const inside = (event: JsonObject | undefined): JsonObject =>
  isObject(event?.["delta"]) ? event["delta"] : {};

/** `message_delta`, with the counts that were settled. */
function ending(held: JsonObject | undefined, settled: Usage | undefined): Buffer {
  const delta = { stop_reason: "end_turn", stop_sequence: null, ...inside(held) };
  const told = isObject(held?.["usage"]) ? held["usage"] : {};
  const usage = settled ? { ...told, ...usageTo(settled) } : told;
  const said = JSON.stringify({ type: "message_delta", ...held, delta, usage });
  return Buffer.from(`event: message_delta\ndata: ${said}\n\n`);
}

function started(
  event: Buffer,
  tap: Tap,
  rename: ReturnType<typeof renaming>,
  out: Gather,
  to: AnswerContext,
): void {
  const start = jsonOf(event);
  const said = isObject(start["message"]) ? start["message"] : {};
  tap.start(said);
  const data = dataOf(event);
  if (data && isObject(said["usage"])) return rename(event, data.from, out);
  // Its data is spread over lines, or lacks the counts that clients build upon: written anew, in one.
  const message = { usage: usageTo({}), ...said, model: to.model };
  out.add(Buffer.from(`event: message_start\ndata: ${JSON.stringify({ ...start, message })}\n\n`));
}

const NAME = Buffer.from("event:");
/** Most of a stream: told by one native comparison. */
const DELTA = Buffer.from("event: content_block_delta\n");

const begins = (b: Buffer, from: number, end: number, with_: Buffer): boolean =>
  end - from >= with_.length && b.compare(with_, 0, with_.length, from, from + with_.length) === 0;

/** The event's name, where its first line tells it: there it stands in all but broken streams. */
function nameOf(b: Buffer, from: number, end: number): string | undefined {
  if (begins(b, from, end, DELTA)) return "content_block_delta";
  if (!begins(b, from, end, NAME)) return undefined;
  from += NAME.length;
  if (b[from] === 32) from++;
  let to = from;
  while (to < end && b[to]! > 32) to++;
  return b.toString("latin1", from, to);
}

/** Where the name does not come first. Without any, this wire's clients do not see the event: its data tells what to call it. */
function unnamed(event: Buffer): { type: string; nameless: boolean } | undefined {
  const said = eventOf(event);
  if (!said) return undefined;
  if (said.event !== "") return { type: said.event, nameless: false };
  if (said.data === "[DONE]") return { type: said.data, nameless: false };
  const { type } = jsonOf(event);
  return typeof type === "string" && /^\w+$/.test(type) ? { type, nameless: true } : undefined;
}

function jsonOf(event: Buffer): JsonObject {
  let json: unknown;
  try {
    json = parseShallow(eventOf(event)?.data ?? "");
  } catch {
    json = undefined;
  }
  return isObject(json)
    ? json
    : fail("upstream", "An event of the provider's stream is not a JSON object.", {
        code: "bad_stream",
      });
}

const MODEL = needle("model");

/** A JSON answer comes in one piece. */
function wholly(sink: RelaySink, to: AnswerContext): Relay {
  const tap = new Tap(sink);
  return {
    between: true,
    push(body) {
      const answer = answerOf(body);
      tap.whole(answer);
      tap.content(wordsOf(answer["content"]));
      const settled = tap.finish();
      if (settled)
        return sink.bytes(
          Buffer.from(JSON.stringify({ ...answer, model: to.model, usage: usageTo(settled) })),
        );
      const at = valueAt(body, [MODEL], body.indexOf(123));
      const name = at && body.toString("utf8", at.from, at.to);
      // Written twice, and differently, it means the last to us and perhaps the first to others.
      if (!at || name !== JSON.stringify(answer["model"]))
        return sink.bytes(Buffer.from(JSON.stringify({ ...answer, model: to.model })));
      const out = gather((b) => sink.bytes(b));
      out.add(body.subarray(0, at.from));
      out.add(Buffer.from(JSON.stringify(to.model)));
      out.add(body.subarray(at.to));
      out.flush();
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(refusal(f, to).body)));
    },
  };
}

// Server half: an answer as this protocol tells it. Blocks may be open together; here one item is written at a time, and
// what belongs to a later one waits for its turn.
import type {
  AnswerContext,
  Encoder,
  Fault,
  FinishReason,
  Json,
  JsonObject,
  ModelAnswer,
  ModelEvent,
  OpenBlock,
  Opt,
  UsageSeen,
} from "../../../plugin/index.ts";
import { wholeCharacters } from "../../characters.ts";
import type { ResponsesDialect } from "../dialect.ts";
import { naming } from "../names.ts";
import { failure } from "./fault.ts";
import { responseObject, type ResponseState } from "./object.ts";
import { carrier, itemFor, type OutputContext, type Item } from "./output/index.ts";

/** Which limit, where the answer ended at one. */
const LIMITS: Readonly<Partial<Record<FinishReason, string>>> = {
  length: "max_output_tokens",
  context: "max_output_tokens",
  pause: "max_output_tokens",
  filtered: "content_filter",
};

/** Of a block that nobody opened but we. */
const LAST = Number.MAX_SAFE_INTEGER;

interface Telling extends Encoder {
  /** The response as it stands at its end. */
  last(): ResponseState;
}

/** Who writes what is told: `tell` the events that carry the whole response, the others everything else. */
interface Voice extends Pick<OutputContext, "say" | "delta"> {
  tell(type: string, now: ResponseState): void;
}

function telling(to: AnswerContext, dialect: ResponsesDialect, voice: Voice): Telling {
  const { say, delta, tell } = voice;
  const desk: OutputContext = { to, dialect, say, delta, name: naming(to.body) };
  const output: JsonObject[] = [];
  let item: Item | undefined;
  /** The block that the item is being fed from; -1 between two. */
  let live = -1;
  /** Blocks that wait for their turn, in the order in which they were opened. */
  const waiting = new Map<number, ModelEvent[]>();
  let draining = false;
  /** Blocks that this wire has no item for. */
  const unsaid = new Set<number>();
  let refused = false;
  let begun = false;
  let seen: Opt<UsageSeen>;
  let standing: ResponseState = { status: "in_progress", output };

  const begin = () => {
    if (begun) return;
    begun = true;
    tell("response.created", standing);
    tell("response.in_progress", standing);
  };
  const conclude = (cut: boolean) => {
    if (!item) return;
    const done = item.done(cut);
    if (done) output.push(done);
    for (const encrypted of item.left) output.push(carrier(encrypted, output.length, desk));
    item = undefined;
  };
  const open = (index: number, block: OpenBlock) => {
    if (block.type === "refusal") refused = true;
    if (!item?.takes(block)) {
      conclude(false);
      item = itemFor(block, output.length, desk);
      if (!item) {
        unsaid.add(index);
        return;
      }
    }
    item.open(block);
    live = index;
  };
  /** Whoever is next in line may be whole already, and make room in its turn. */
  const drain = () => {
    if (draining) return;
    draining = true;
    for (const [index, events] of waiting) {
      if (live >= 0) break;
      waiting.delete(index);
      for (const event of events) take(event);
    }
    draining = false;
  };
  const close = () => {
    item!.close();
    live = -1;
    drain();
  };
  const take = (event: ModelEvent) => {
    switch (event.type) {
      case "start":
        return begin();
      case "usage":
        seen = event;
        return;
      case "finish":
        return finish(event);
      case "open":
        begin();
        if (live < 0) return open(event.index, event.block);
        waiting.set(event.index, [event]);
        return;
      default: {
        const { index } = event;
        if (index === live) return event.type === "close" ? close() : item!.inside(event);
        if (!unsaid.has(index)) waiting.get(index)?.push(event);
      }
    }
  };
  const finish = ({ reason, detail }: Extract<ModelEvent, { type: "finish" }>) => {
    begin();
    if (live >= 0) close();
    let limit = LIMITS[reason];
    if (reason === "refusal" && !refused) {
      // Somebody declined without a word of their own: the reason given is the refusal, if one was.
      if (detail === undefined) limit = "content_filter";
      else {
        take({ type: "open", index: LAST, block: { type: "refusal" } });
        take({ type: "delta", index: LAST, text: detail });
        take({ type: "close", index: LAST });
      }
    }
    if (reason === "other" && detail === "max_messages") limit = detail;
    conclude(limit !== undefined);
    end(limit === undefined ? "completed" : "incomplete", { reason: limit });
  };
  const end = (status: ResponseState["status"], more: Partial<ResponseState>) => {
    standing = { status, output, usage: seen?.usage, tier: seen?.tier, ...more };
    tell(`response.${status}`, standing);
  };
  return {
    event: take,
    fail(fault) {
      begin();
      // A block that was closed is whole; of the others, what nobody acts upon is worth keeping.
      if (item && live >= 0 && item.harmless) item.close();
      if (item && (live < 0 || item.harmless)) conclude(live >= 0);
      // Some readers stop at the first of these, some wait for the second.
      const { event, error } = failure(fault, to);
      say("error", event);
      end("failed", { error });
    },
    last: () => standing,
  };
}

export function stream(
  write: (text: string) => void,
  to: AnswerContext,
  dialect: ResponsesDialect,
): Encoder {
  const response = responseObject(to);
  let number = 0;
  let over = false;
  const put = (type: string, fields: string) =>
    write(`event: ${type}\ndata: {"type":"${type}","sequence_number":${number++},${fields}\n\n`);
  const encoder = telling(to, dialect, {
    say: (type, fields) => put(type, JSON.stringify(fields).slice(1)),
    delta: (type, head, text, tail) => put(type, `${head}${JSON.stringify(text)}${tail}}`),
    tell(type, now) {
      put(type, `"response":${response.written(now)}}`);
      over = now.status !== "in_progress";
      if (over) write("data: [DONE]\n\n");
    },
  });
  const unlessOver =
    <A>(then: (a: A) => void) =>
    (a: A) => {
      if (!over) then(a);
    };
  return wholeCharacters({
    event: unlessOver(encoder.event),
    fail: unlessOver<Fault>(encoder.fail),
  });
}

const SILENT: Voice = { say() {}, delta() {}, tell() {} };

/** The same object that the stream ends with, so that both lanes of a client's code read the same. */
export function whole(
  answer: ModelAnswer,
  to: AnswerContext,
  dialect: ResponsesDialect,
): JsonObject {
  const encoder = telling(to, dialect, SILENT);
  encoder.event({ type: "start" });
  answer.blocks.forEach((block, index) => retell(block, index, encoder.event));
  if (Object.keys(answer.usage).length > 0) encoder.event({ type: "usage", usage: answer.usage });
  encoder.event(answer.finish);
  return responseObject(to).whole(encoder.last());
}

/** A block as the events that spell it. */
function retell(
  block: ModelAnswer["blocks"][number],
  index: number,
  event: (e: ModelEvent) => void,
): void {
  const delta = (text: Opt<string>, logprobs?: Opt<readonly Json[]>) => {
    if (text !== undefined && text !== "") event({ type: "delta", index, text, logprobs });
  };
  switch (block.type) {
    case "text":
    case "refusal":
      event({ type: "open", index, block: { type: block.type } });
      delta(block.text, block.type === "text" ? block.logprobs : undefined);
      if (block.type === "text")
        for (const citation of block.citations ?? []) event({ type: "cite", index, citation });
      break;
    case "reasoning": {
      const digest = block.text === undefined && block.summary !== undefined;
      event({ type: "open", index, block: { type: "reasoning", summary: digest } });
      delta(block.text ?? block.summary?.join("\n\n"));
      break;
    }
    case "call":
      event({ type: "open", index, block: { ...block, type: "call" } });
      delta(block.args);
      break;
    case "image":
    case "audio":
      event({ type: "open", index, block: { type: block.type } });
      event({ type: "media", index, media: block.media, note: block.note });
      break;
    case "opaque":
      event({ type: "open", index, block });
      delta(block.text);
      break;
    default:
      return;
  }
  if (block.proof) event({ type: "proof", index, proof: block.proof });
  event({ type: "close", index });
}

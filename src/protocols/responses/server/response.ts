// Server half: encodes a non-streaming response.
import type {
  ResponseContext,
  Json,
  JsonObject,
  ModelResponse,
  Opt,
  Encoder,
  Fault,
  ModelEvent,
} from "../../../plugin/index.ts";
import type { ResponsesDialect } from "../constants.ts";
import { responseObject, type ResponseState } from "./response-object.ts";
import { ResponseWriter, type EventSink } from "./response-writer.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";

const NO_EVENTS: EventSink = { write() {}, delta() {}, writeResponse() {} };

/** Returns the same object that ends a stream, so that clients get equal results in both modes. */
export function encodeResponse(
  answer: ModelResponse,
  to: ResponseContext,
  dialect: ResponsesDialect,
): JsonObject {
  const encoder = new ResponseWriter(to, dialect, NO_EVENTS);
  encoder.writeEvent({ type: "start" });
  answer.blocks.forEach((block, index) => replayBlock(block, index, encoder));
  if (Object.keys(answer.usage).length > 0)
    encoder.writeEvent({ type: "usage", usage: answer.usage });
  encoder.writeEvent(answer.finish);
  return responseObject(to).toJson(encoder.finalState);
}

/** Writes a block as a sequence of events. */
function replayBlock(
  block: ModelResponse["blocks"][number],
  index: number,
  to: ResponseWriter,
): void {
  const delta = (text: Opt<string>, logprobs?: Opt<readonly Json[]>) => {
    if (text !== undefined && text !== "") to.writeEvent({ type: "delta", index, text, logprobs });
  };
  switch (block.type) {
    case "text":
    case "refusal":
      to.writeEvent({ type: "open", index, block: { type: block.type } });
      delta(block.text, block.type === "text" ? block.logprobs : undefined);
      if (block.type === "text")
        for (const citation of block.citations ?? [])
          to.writeEvent({ type: "cite", index, citation });
      break;
    case "reasoning": {
      const digest = block.text === undefined && block.summary !== undefined;
      to.writeEvent({ type: "open", index, block: { type: "reasoning", summary: digest } });
      delta(block.text ?? block.summary?.join("\n\n"));
      break;
    }
    case "call":
      to.writeEvent({ type: "open", index, block: { ...block, type: "call" } });
      delta(block.args);
      break;
    case "image":
    case "audio":
      to.writeEvent({ type: "open", index, block: { type: block.type } });
      to.writeEvent({ type: "media", index, media: block.media, note: block.note });
      break;
    case "opaque":
      to.writeEvent({ type: "open", index, block });
      delta(block.text);
      break;
    default:
      return;
  }
  if (block.proof) to.writeEvent({ type: "proof", index, proof: block.proof });
  to.writeEvent({ type: "close", index });
}

/** Server half: encodes a response as a stream of numbered and named events. */
export function createEncoder(
  write: (text: string) => void,
  to: ResponseContext,
  dialect: ResponsesDialect,
): Encoder {
  const events = createNumberedEvents(write, to);
  const writer = new ResponseWriter(to, dialect, events);
  return joinSurrogatePairs({
    writeEvent(event: ModelEvent) {
      if (!events.isOver) writer.writeEvent(event);
    },
    writeFault(fault: Fault) {
      if (!events.isOver) writer.writeFault(fault);
    },
  });
}

interface NumberedEvents extends EventSink {
  /** Whether the last event has been written. No event may follow it. */
  isOver: boolean;
}

function createNumberedEvents(write: (text: string) => void, to: ResponseContext): NumberedEvents {
  const response = responseObject(to);
  let number = 0;
  const put = (type: string, fields: string) =>
    write(`event: ${type}\ndata: {"type":"${type}","sequence_number":${number++},${fields}\n\n`);
  const events: NumberedEvents = {
    isOver: false,
    write: (type, fields) => put(type, JSON.stringify(fields).slice(1)),
    delta: (type, head, text, tail) => put(type, `${head}${JSON.stringify(text)}${tail}}`),
    writeResponse(type: string, now: ResponseState) {
      put(type, `"response":${response.toText(now)}}`);
      events.isOver = now.status !== "in_progress";
      if (events.isOver) write("data: [DONE]\n\n");
    },
  };
  return events;
}

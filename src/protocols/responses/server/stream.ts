// Server half: encodes a response as a stream of numbered and named events.
import type { ResponseContext, Encoder, Fault, ModelEvent } from "../../../plugin/index.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";
import type { ResponsesDialect } from "../dialect.ts";
import { responseObject, type ResponseState } from "./response-object.ts";
import { ResponseWriter, type EventSink } from "./response-writer.ts";

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

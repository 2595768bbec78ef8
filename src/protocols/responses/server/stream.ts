// Server half: an answer as a stream, whose every event is numbered and named.
import type { AnswerContext, Encoder, Fault, ModelEvent } from "../../../plugin/index.ts";
import { wholeCharacters } from "../../characters.ts";
import type { ResponsesDialect } from "../dialect.ts";
import { responseObject, type ResponseState } from "./object.ts";
import { ResponseWriter, type EventSink } from "./response-writer.ts";

export function stream(
  write: (text: string) => void,
  to: AnswerContext,
  dialect: ResponsesDialect,
): Encoder {
  const events = numbered(write, to);
  const writer = new ResponseWriter(to, dialect, events);
  return wholeCharacters({
    event(event: ModelEvent) {
      if (!events.over) writer.event(event);
    },
    fail(fault: Fault) {
      if (!events.over) writer.fail(fault);
    },
  });
}

interface NumberedEvents extends EventSink {
  /** The last event is written: nothing follows it. */
  over: boolean;
}

function numbered(write: (text: string) => void, to: AnswerContext): NumberedEvents {
  const response = responseObject(to);
  let number = 0;
  const put = (type: string, fields: string) =>
    write(`event: ${type}\ndata: {"type":"${type}","sequence_number":${number++},${fields}\n\n`);
  const events: NumberedEvents = {
    over: false,
    say: (type, fields) => put(type, JSON.stringify(fields).slice(1)),
    delta: (type, head, text, tail) => put(type, `${head}${JSON.stringify(text)}${tail}}`),
    tell(type: string, now: ResponseState) {
      put(type, `"response":${response.written(now)}}`);
      events.over = now.status !== "in_progress";
      if (events.over) write("data: [DONE]\n\n");
    },
  };
  return events;
}

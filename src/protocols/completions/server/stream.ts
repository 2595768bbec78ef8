// An answer as a stream of events.
import type { ModelEvent } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { object } from "../../json.ts";
import { fault } from "../../responses/server/fault.ts";
import { usageTo } from "../usage.ts";
import { choice, frameOf, reasonTo } from "./saying.ts";

export function stream(write: (text: string) => void, to: AnswerContext): Encoder {
  const frame = frameOf(to);
  const told = object(to.body["stream_options"])?.["include_usage"] === true;
  const texts = new Set<number>();
  let usage: Usage = {};
  const put = (said: JsonObject): void =>
    write(`data: ${JSON.stringify({ ...frame, ...said })}\n\n`);
  return {
    event(e: ModelEvent) {
      switch (e.type) {
        case "open":
          if (e.block.type === "text") texts.add(e.index);
          return undefined;
        case "delta":
          return texts.has(e.index) ? put({ choices: [choice(e.text)] }) : undefined;
        case "usage":
          usage = e.usage;
          return undefined;
        case "finish":
          put({ choices: [choice("", reasonTo(e.reason))] });
          if (told) put({ choices: [], usage: usageTo(usage) });
          return write("data: [DONE]\n\n");
      }
    },
    fail: (f) => write(`data: ${JSON.stringify(fault(f, to).body)}\n\ndata: [DONE]\n\n`),
  };
}

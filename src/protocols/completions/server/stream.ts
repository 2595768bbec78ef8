// Encodes a response as a stream of events.
import type { ModelEvent } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { asObject } from "../../json-values.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { usageTo } from "../usage.ts";
import { choice, responseFrame, formatFinishReason } from "./response-common.ts";

export function createEncoder(write: (text: string) => void, to: ResponseContext): Encoder {
  const frame = responseFrame(to);
  const includesUsage = asObject(to.body["stream_options"])?.["include_usage"] === true;
  const texts = new Set<number>();
  let usage: Usage = {};
  const put = (chunk: JsonObject): void =>
    write(`data: ${JSON.stringify({ ...frame, ...chunk })}\n\n`);
  return {
    writeEvent(e: ModelEvent) {
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
          put({ choices: [choice("", formatFinishReason(e.reason))] });
          if (includesUsage) put({ choices: [], usage: usageTo(usage) });
          return write("data: [DONE]\n\n");
      }
    },
    writeFault: (f) =>
      write(`data: ${JSON.stringify(encodeFault(f, to).body)}\n\ndata: [DONE]\n\n`),
  };
}

// Decodes a stream into events: one block of text.
import type { FinishReason, ModelEvent } from "../../../model/event.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined, asText } from "../../json-values.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { usageOf } from "../usage.ts";
import { parseResponseObject, parseChoices, failTruncated } from "./parse-response.ts";

export function createDecoder(emit: (event: ModelEvent) => void): Decoder {
  let begun = false;
  let over = false;
  let reason: FinishReason | undefined;
  const finish = (): void => {
    over = true;
    if (reason === undefined) return failTruncated();
    emit({ type: "close", index: 0 });
    return emit({ type: "finish", reason });
  };
  const events = createEventDecoder((_event, data) => {
    if (over) return;
    if (data === "[DONE]") return finish();
    const parsedChunk = parseResponseObject(data);
    if (!begun) {
      begun = true;
      emit(omitUndefined({ type: "start" as const, id: asText(parsedChunk["id"]) }));
      emit({ type: "open", index: 0, block: { type: "text" } });
    }
    const { text: words, reason: why } = parseChoices(parsedChunk);
    if (words !== "") emit({ type: "delta", index: 0, text: words });
    reason = why ?? reason;
    const usage = asObject(parsedChunk["usage"]);
    if (usage) emit({ type: "usage", usage: usageOf(usage) });
  });
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!over) finish();
    },
  };
}

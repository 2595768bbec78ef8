// A host's stream, as events: one block of text.
import type { FinishReason, ModelEvent } from "../../../model/event.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { object, present, text } from "../../json.ts";
import { sse } from "../../sse/index.ts";
import { usageOf } from "../usage.ts";
import { answerIn, choicesIn, truncated } from "./reading.ts";

export function stream(emit: (event: ModelEvent) => void): Decoder {
  let begun = false;
  let over = false;
  let reason: FinishReason | undefined;
  const finish = (): void => {
    over = true;
    if (reason === undefined) return truncated();
    emit({ type: "close", index: 0 });
    return emit({ type: "finish", reason });
  };
  const events = sse((_event, data) => {
    if (over) return;
    if (data === "[DONE]") return finish();
    const said = answerIn(data);
    if (!begun) {
      begun = true;
      emit(present({ type: "start" as const, id: text(said["id"]) }));
      emit({ type: "open", index: 0, block: { type: "text" } });
    }
    const { text: words, reason: why } = choicesIn(said);
    if (words !== "") emit({ type: "delta", index: 0, text: words });
    reason = why ?? reason;
    const usage = object(said["usage"]);
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

// A host's answer that is one JSON text, as events.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import { list, object, present, text } from "../../json.ts";
import { usageOf } from "../usage.ts";
import { answerIn, choicesIn } from "./reading.ts";

export function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = answerIn(body.toString("utf8"));
  if (list(answer["choices"]).length === 0)
    return fail("upstream", "The provider answered without a choice.", { code: "bad_answer" });
  const { text: words, reason = "stop" } = choicesIn(answer);
  emit(present({ type: "start" as const, id: text(answer["id"]) }));
  emit({ type: "open", index: 0, block: { type: "text" } });
  if (words !== "") emit({ type: "delta", index: 0, text: words });
  emit({ type: "close", index: 0 });
  emit({ type: "usage", usage: usageOf(object(answer["usage"])) });
  emit({ type: "finish", reason });
}

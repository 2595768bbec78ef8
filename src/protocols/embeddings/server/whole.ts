// An answer that is one JSON text.
import type { ModelAnswer } from "../../../model/event.ts";
import type { Vector } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { usageTo } from "../usage.ts";
import { checked, wishOf, written } from "../vectors.ts";

export function whole(answer: ModelAnswer, to: Pick<AnswerContext, "body" | "model">): JsonObject {
  const wish = wishOf(to.body);
  const vectors = checked((answer.items ?? []) as readonly Vector[], wish);
  return {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: written(vector, wish) as Json,
    })),
    model: to.model,
    usage: usageTo(answer.usage),
  };
}

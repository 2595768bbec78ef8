// An answer that is one JSON text: each verdict as its vendor words it, since categories of two vendors are not the same.
import type { ModelAnswer } from "../../../model/event.ts";
import type { Judgement } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";

export const whole = (
  { id, items = [], usage: { input } }: ModelAnswer,
  to: Pick<AnswerContext, "id" | "model">,
): JsonObject => ({
  id: id ?? `modr-${to.id}`,
  model: to.model,
  results: (items as readonly Judgement[]).map(({ said }) => said),
  // Most vendors count nothing.
  ...(input !== undefined && { usage: { prompt_tokens: input, total_tokens: input } }),
});

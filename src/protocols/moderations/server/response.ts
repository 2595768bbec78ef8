// An answer that is one JSON text: each verdict as its vendor words it, since categories of two vendors are not the same.
import type { ModelResponse } from "../../../model/event.ts";
import type { ModerationResult } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";

export const encodeResponse = (
  { id, items = [], usage: { input } }: ModelResponse,
  to: Pick<ResponseContext, "id" | "model">,
): JsonObject => ({
  id: id ?? `modr-${to.id}`,
  model: to.model,
  results: (items as readonly ModerationResult[]).map(({ raw }) => raw),
  // Most vendors count nothing.
  ...(input !== undefined && { usage: { prompt_tokens: input, total_tokens: input } }),
});

// Encodes a response as one JSON text. Each result keeps its vendor's categories, because
// categories differ between vendors.
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
  // Most vendors report no counts.
  ...(input !== undefined && { usage: { prompt_tokens: input, total_tokens: input } }),
});

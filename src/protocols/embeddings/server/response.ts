// Encodes a non-streaming response.
import type { ModelResponse } from "../../../model/event.ts";
import type { Embedding } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { usageTo } from "../usage.ts";
import { validateEmbeddings, readExpectation, encodeEmbedding } from "../embedding-values.ts";

export function encodeResponse(
  answer: ModelResponse,
  to: Pick<ResponseContext, "body" | "model">,
): JsonObject {
  const wish = readExpectation(to.body);
  const vectors = validateEmbeddings((answer.items ?? []) as readonly Embedding[], wish);
  return {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: encodeEmbedding(vector, wish) as Json,
    })),
    model: to.model,
    usage: usageTo(answer.usage),
  };
}

// Encodes a response that clients of both Cohere and Jina can read. The members for one do not
// disturb the other.
import type { ModelResponse } from "../../../model/event.ts";
import type { RankedDocument } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { toDocumentObject, validateRanking, readRankingExpectation } from "../ranking.ts";
import { metaTo, tokensTo } from "../usage.ts";

type To = Pick<ResponseContext, "body" | "id" | "model">;

export const encodeResponse = (answer: ModelResponse, to: To): JsonObject => ({
  id: answer.id ?? to.id,
  model: to.model,
  results: rowsTo(answer, to),
  meta: metaTo(answer.usage),
  usage: tokensTo(answer.usage),
});

/** Encodes a response for Voyage's clients. */
export const encodeVoyageResponse = (answer: ModelResponse, to: To): JsonObject => ({
  object: "list",
  data: rowsTo(answer, to).map(({ document, ...row }) =>
    document === undefined ? row : { ...row, document: (document as JsonObject)["text"] },
  ),
  model: to.model,
  usage: tokensTo(answer.usage),
});

function rowsTo({ items = [] }: ModelResponse, { body }: To): readonly JsonObject[] {
  const wish = readRankingExpectation(body);
  return validateRanking(items as readonly RankedDocument[], wish).map(({ index, score }) => ({
    index,
    relevance_score: score,
    ...(wish.returnDocuments && { document: toDocumentObject(wish.documents[index]) }),
  }));
}

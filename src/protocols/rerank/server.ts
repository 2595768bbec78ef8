// The half of the rerank protocol that faces clients.
import type { Fault } from "../../model/error.ts";
import type { ModelResponse } from "../../model/event.ts";
import type { RerankRequest, RankedDocument } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { ResponseContext, ErrorResponse } from "../../plugin/protocol.ts";
import { asBoolean, asList, asNumber, omitUndefined, asText } from "../json-values.ts";
import { encodeFault as refusal } from "../failure/openai-error.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";
import {
  COMMON_FIELDS,
  toDocumentObject,
  validateRanking,
  readRankingExpectation,
  metaTo,
  tokensTo,
} from "./spec.ts";

/** Decodes a client's request into the common form. */
export const decodeRequest = (body: Body): RerankRequest =>
  omitUndefined({
    operation: "rerank" as const,
    model: asText(body["model"]) ?? "",
    stream: false,
    query: asText(body["query"]) ?? "",
    documents: asList(body["documents"]) as RerankRequest["documents"],
    topN: asNumber(body["top_n"]) ?? asNumber(body["top_k"]),
    returnDocuments: asBoolean(body["return_documents"]),
    maxTokensPerDocument: asNumber(body["max_tokens_per_doc"]),
    truncate: asBoolean(body["truncation"]),
    user: asText(body["user"]),
    rest: unknownTopLevelFields(
      body,
      (name) => (body[name] as Json | undefined) === null || COMMON_FIELDS.includes(name),
    ),
    ext: {},
  });

/**
 * Encodes a response that clients of both Cohere and Jina can read. The members for one do not
 * disturb the other.
 */
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

/**
 * Encodes errors for all readers of this protocol. Cohere's clients read `message`, Voyage's
 * clients read `detail`, and other clients read OpenAI's `error`.
 */
export function encodeFault(f: Fault, x: { id: string }): ErrorResponse {
  const error = refusal(f, x);
  const { message } = error.body["error"] as JsonObject;
  return { ...error, body: { message, detail: message, ...error.body } };
}

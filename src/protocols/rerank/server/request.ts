// Decodes a client's request into the common form.
import type { RerankRequest } from "../../../model/request.ts";
import type { Body, Json } from "../../../model/values.ts";
import { asBoolean, asList, asNumber, omitUndefined, asText } from "../../json-values.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import { COMMON_FIELDS } from "../constants.ts";

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

// Encodes a request in this protocol.
import { fail } from "../../../model/error.ts";
import type { RerankRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { omitUndefined, asText } from "../../json-values.ts";

/** Encodes a request for Cohere and compatible backends. */
export function encodeRequest(
  r: RerankRequest,
  of: Pick<CallContext, "model" | "reportLoss">,
): Body {
  if (r.truncate === false) of.reportLoss("truncation", "dropped");
  return omitUndefined({
    model: of.model,
    query: r.query,
    documents: r.documents,
    top_n: r.topN,
    return_documents: r.returnDocuments,
    max_tokens_per_doc: r.maxTokensPerDocument,
    user: r.user,
  });
}

/**
 * Encodes a request for Voyage, which ranks text only and has one switch for truncating long
 * documents.
 */
export function encodeVoyageRequest(
  r: RerankRequest,
  of: Pick<CallContext, "model" | "reportLoss">,
): Body {
  if (r.maxTokensPerDocument !== undefined) of.reportLoss("max_tokens_per_doc", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  return omitUndefined({
    model: of.model,
    query: r.query,
    documents: requireTexts(r.documents, of.model),
    top_k: r.topN,
    return_documents: r.returnDocuments,
    truncation: r.truncate,
  });
}

export const requireTexts = (
  documents: RerankRequest["documents"],
  model: string,
): readonly string[] =>
  documents.map(
    (document) =>
      asText(document) ??
      asText((document as { text?: unknown }).text) ??
      fail("unsupported", `${model} supports text documents only.`, { param: "documents" }),
  );

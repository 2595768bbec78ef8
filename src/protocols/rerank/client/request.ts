// A request in this wire's words.
import { fail } from "../../../model/error.ts";
import type { RerankRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { present, text } from "../../json.ts";

/** As Cohere and those after it have it. */
export function request(r: RerankRequest, of: Pick<CallContext, "model" | "lose">): Body {
  if (r.truncate === false) of.lose("truncation", "dropped");
  return present({
    model: of.model,
    query: r.query,
    documents: r.documents,
    top_n: r.most,
    return_documents: r.returned,
    max_tokens_per_doc: r.perDocument,
    user: r.user,
  });
}

/** As Voyage has it: texts, and one switch for those that are too long. */
export function voyageRequest(r: RerankRequest, of: Pick<CallContext, "model" | "lose">): Body {
  if (r.perDocument !== undefined) of.lose("max_tokens_per_doc", "dropped");
  if (r.user !== undefined) of.lose("user", "dropped");
  return present({
    model: of.model,
    query: r.query,
    documents: textsIn(r.documents, of.model),
    top_k: r.most,
    return_documents: r.returned,
    truncation: r.truncate,
  });
}

export const textsIn = (documents: RerankRequest["documents"], model: string): readonly string[] =>
  documents.map(
    (document) =>
      text(document) ??
      text((document as { text?: unknown }).text) ??
      fail("unsupported", `${model} ranks texts.`, { param: "documents" }),
  );

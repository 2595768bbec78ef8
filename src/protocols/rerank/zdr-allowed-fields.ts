// Request fields that may be sent under `Service-ZDR`, reviewed against the documentation of Cohere
// and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["what is asked, and the documents", { ...valueFields("query"), ...freeTextFields("documents") }],
  ["what is told of them", valueFields("top_n top_k return_documents rank_fields")],
  [
    "what becomes of a text that is too long",
    valueFields("max_tokens_per_doc truncation truncate"),
  ],
];

// Request fields that may be sent under `Service-ZDR`, reviewed against the documentation of Cohere
// and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["query and documents", { ...valueFields("query"), ...freeTextFields("documents") }],
  ["contents of the result", valueFields("top_n top_k return_documents rank_fields")],
  ["handling of texts that are too long", valueFields("max_tokens_per_doc truncation truncate")],
];

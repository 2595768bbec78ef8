// What of a request may leave under Service-ZDR: read in Cohere's documentation and in that of the hosts that are compatible.
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

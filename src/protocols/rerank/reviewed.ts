// What of a request may leave under Service-ZDR: read in Cohere's documentation and in that of the hosts that are compatible.
import type { Review } from "../../plugin/index.ts";
import { free, plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["what is asked, and the documents", { ...plain("query"), ...free("documents") }],
  ["what is told of them", plain("top_n top_k return_documents rank_fields")],
  ["what becomes of a text that is too long", plain("max_tokens_per_doc truncation truncate")],
];

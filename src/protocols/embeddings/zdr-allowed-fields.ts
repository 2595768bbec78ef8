// Lists the request fields that may be sent under zero data retention, from the documentation of
// OpenAI and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["inputs to embed", valueFields("input")],
  [
    "format of the embeddings",
    valueFields("encoding_format dimensions output_dimension output_dtype normalized"),
  ],
  ["purpose of the embeddings, which models use", valueFields("input_type task_type task")],
  ["handling of texts that are too long", valueFields("truncate truncation")],
  ["the user identifier, sent as a hash", valueFields("user")],
];

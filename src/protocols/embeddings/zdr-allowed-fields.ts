// Lists the request fields that may be sent under zero data retention, from the documentation of
// OpenAI and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["what is to be embedded", valueFields("input")],
  [
    "the form of the vectors",
    valueFields("encoding_format dimensions output_dimension output_dtype normalized"),
  ],
  ["what they are for, which models read", valueFields("input_type task_type task")],
  ["what becomes of a text that is too long", valueFields("truncate truncation")],
  ["the user: told hashed", valueFields("user")],
];

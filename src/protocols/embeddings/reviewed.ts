// What of a request may leave under Service-ZDR: read in OpenAI's documentation and in that of the hosts that are compatible.
import type { Review } from "../../plugin/index.ts";
import { plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["what is to be embedded", plain("input")],
  [
    "the form of the vectors",
    plain("encoding_format dimensions output_dimension output_dtype normalized"),
  ],
  ["what they are for, which models read", plain("input_type task_type task")],
  ["what becomes of a text that is too long", plain("truncate truncation")],
  ["the user: told hashed", plain("user")],
];

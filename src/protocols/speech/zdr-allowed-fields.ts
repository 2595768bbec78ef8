// What of a request may leave under Service-ZDR: read in OpenAI's documentation. A voice that was made to order is kept, and is named
// by an object: it stays here.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["what is to be spoken", valueFields("input")],
  ["how it is spoken", valueFields("voice instructions speed")],
  ["the form of the sound", valueFields("response_format stream_format stream")],
];

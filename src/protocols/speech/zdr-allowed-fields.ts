// Request fields that may be sent under `Service-ZDR`, reviewed against OpenAI's documentation. A
// custom voice is stored by the provider and is named by an object, so it is not allowed.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["what is to be spoken", valueFields("input")],
  ["how it is spoken", valueFields("voice instructions speed")],
  ["the form of the sound", valueFields("response_format stream_format stream")],
];

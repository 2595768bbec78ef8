// Request fields that may be sent under `Service-ZDR`, reviewed against OpenAI's documentation. A
// custom voice is stored by the provider and is named by an object, so it is not allowed.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["text to speak", valueFields("input")],
  ["voice and style", valueFields("voice instructions speed")],
  ["format of the audio", valueFields("response_format stream_format stream")],
];

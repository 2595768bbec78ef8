// Request fields that may be sent under `Service-ZDR`, reviewed against the documentation of OpenAI
// and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["what is to be written down", valueFields("file")],
  ["what may be heard in it", valueFields("language languages prompt keywords")],
  ["whose voices may be heard in it", valueFields("known_speaker_names known_speaker_references")],
  [
    "how it is heard",
    {
      ...valueFields("temperature"),
      chunking_strategy: valueFields("type prefix_padding_ms silence_duration_ms threshold"),
    },
  ],
  [
    "the form of the transcript",
    valueFields("response_format timestamp_granularities include stream"),
  ],
];

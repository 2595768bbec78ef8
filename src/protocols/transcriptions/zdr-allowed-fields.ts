// Request fields that may be sent under `Service-ZDR`, reviewed against the documentation of OpenAI
// and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["audio to transcribe", valueFields("file")],
  ["hints about its content", valueFields("language languages prompt keywords")],
  ["speakers whose voices may occur", valueFields("known_speaker_names known_speaker_references")],
  [
    "transcription settings",
    {
      ...valueFields("temperature"),
      chunking_strategy: valueFields("type prefix_padding_ms silence_duration_ms threshold"),
    },
  ],
  [
    "format of the transcript",
    valueFields("response_format timestamp_granularities include stream"),
  ],
];

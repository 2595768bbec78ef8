// What of a request may leave under Service-ZDR: read in OpenAI's documentation and in that of the hosts that are compatible.
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

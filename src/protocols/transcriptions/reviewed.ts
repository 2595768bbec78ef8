// What of a request may leave under Service-ZDR: read in OpenAI's documentation and in that of the hosts that are compatible.
import type { Review } from "../../plugin/index.ts";
import { plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["what is to be written down", plain("file")],
  ["what may be heard in it", plain("language languages prompt keywords")],
  ["whose voices may be heard in it", plain("known_speaker_names known_speaker_references")],
  [
    "how it is heard",
    {
      ...plain("temperature"),
      chunking_strategy: plain("type prefix_padding_ms silence_duration_ms threshold"),
    },
  ],
  ["the form of the transcript", plain("response_format timestamp_granularities include stream")],
];

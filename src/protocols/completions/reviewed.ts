// What of a request may leave under Service-ZDR: read in OpenAI's documentation and in that of the hosts that are compatible.
import type { Review } from "../../plugin/index.ts";
import { free, plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["what goes on, and what it shall lead to", plain("prompt suffix")],
  [
    "steers one answer and is gone with it",
    {
      ...plain(
        "max_tokens min_tokens temperature top_p top_k n best_of echo logprobs stop seed random_seed presence_penalty " +
          "frequency_penalty repetition_penalty stream",
      ),
      ...free("logit_bias"),
      stream_options: plain("include_usage"),
    },
  ],
  ["the user: told hashed", plain("user")],
];

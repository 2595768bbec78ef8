// Lists the request fields that may be sent under zero data retention, from the documentation of
// OpenAI and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["text to continue and its suffix", valueFields("prompt suffix")],
  [
    "parameters of a single response",
    {
      ...valueFields(
        "max_tokens min_tokens temperature top_p top_k n best_of echo logprobs stop seed random_seed presence_penalty " +
          "frequency_penalty repetition_penalty stream",
      ),
      ...freeTextFields("logit_bias"),
      stream_options: valueFields("include_usage"),
    },
  ],
  ["the user identifier, sent as a hash", valueFields("user")],
];

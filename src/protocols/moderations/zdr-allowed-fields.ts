// Request fields that may be sent under `Service-ZDR`, reviewed against OpenAI's documentation.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  [
    "content to moderate",
    {
      input: [null, { text: valueFields("text"), image_url: { image_url: valueFields("url") } }],
    },
  ],
  ["the user identifier, sent as a hash", valueFields("user")],
];

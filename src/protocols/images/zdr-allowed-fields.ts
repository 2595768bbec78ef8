// Lists the request fields that may be sent under zero data retention, from the documentation of
// OpenAI and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["what is to be drawn", valueFields("prompt negative_prompt style")],
  [
    "the form of the picture",
    valueFields(
      "n size width height aspect_ratio resolution quality background response_format output_format output_compression " +
        "complexity frame_count frame_duration_ms stream partial_images",
    ),
  ],
  [
    "steers one picture and is gone with it",
    valueFields("seed steps num_inference_steps guidance guidance_scale"),
  ],
  [
    "the pictures to be changed, with their mask, and how near to them it stays",
    {
      ...valueFields("input_fidelity"),
      image: valueFields("image_url url type"),
      images: valueFields("image_url url type"),
      mask: valueFields("image_url"),
    },
  ],
  ["how strictly it is filtered, which keeps nothing", valueFields("moderation")],
  ["the user: told hashed", valueFields("user safety_identifier")],
];

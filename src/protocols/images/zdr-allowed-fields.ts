// Lists the request fields that may be sent under zero data retention, from the documentation of
// OpenAI and of compatible backends.
import type { FieldAllowlist } from "../../plugin/index.ts";
import { valueFields } from "../references/index.ts";

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["description of the image", valueFields("prompt negative_prompt style")],
  [
    "format of the image",
    valueFields(
      "n size width height aspect_ratio resolution quality background response_format output_format output_compression " +
        "complexity frame_count frame_duration_ms stream partial_images",
    ),
  ],
  [
    "parameters of a single image",
    valueFields("seed steps num_inference_steps guidance guidance_scale"),
  ],
  [
    "input images, their mask, and how closely the result follows them",
    {
      ...valueFields("input_fidelity"),
      image: valueFields("image_url url type"),
      images: valueFields("image_url url type"),
      mask: valueFields("image_url"),
    },
  ],
  ["strictness of the content filter, which stores nothing", valueFields("moderation")],
  ["the user identifier, sent as a hash", valueFields("user safety_identifier")],
];

// What of a request may leave under Service-ZDR: read in OpenAI's documentation and in that of the hosts that are compatible.
import type { Review } from "../../plugin/index.ts";
import { plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["what is to be drawn", plain("prompt negative_prompt style")],
  [
    "the form of the picture",
    plain(
      "n size width height aspect_ratio resolution quality background response_format output_format output_compression " +
        "complexity frame_count frame_duration_ms stream partial_images",
    ),
  ],
  [
    "steers one picture and is gone with it",
    plain("seed steps num_inference_steps guidance guidance_scale"),
  ],
  [
    "the pictures to be changed, with their mask, and how near to them it stays",
    {
      ...plain("input_fidelity"),
      image: plain("image_url url type"),
      images: plain("image_url url type"),
      mask: plain("image_url"),
    },
  ],
  ["how strictly it is filtered, which keeps nothing", plain("moderation")],
  ["the user: told hashed", plain("user safety_identifier")],
];

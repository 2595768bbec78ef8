// What of a request may leave under Service-ZDR: read in OpenAI's documentation.
import type { Review } from "../../plugin/index.ts";
import { plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  [
    "what is judged",
    {
      input: [null, { text: plain("text"), image_url: { image_url: plain("url") } }],
    },
  ],
  ["the user: told hashed", plain("user")],
];

// What of a request may leave under Service-ZDR: read in OpenAI's documentation. A voice that was made to order is kept, and is named
// by an object: it stays here.
import type { Review } from "../../plugin/index.ts";
import { plain } from "../look/index.ts";

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["what is to be spoken", plain("input")],
  ["how it is spoken", plain("voice instructions speed")],
  ["the form of the sound", plain("response_format stream_format stream")],
];

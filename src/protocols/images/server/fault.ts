// OpenAI's one error shape, with the words that its image endpoint has for refused prompts.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorAnswer } from "../../../plugin/protocol.ts";
import { fault as refusal } from "../../responses/server/fault.ts";
import { object } from "../../json.ts";

export function fault(f: Fault, x: { id: string }): ErrorAnswer {
  const said = refusal(f.kind === "content_policy" ? { code: "moderation_blocked", ...f } : f, x);
  if (f.kind !== "content_policy") return said;
  const error = object(said.body["error"]);
  return { ...said, body: { error: { ...error, type: "image_generation_user_error" } } };
}

/** The error event of a stream: SDKs of this protocol throw on it. */
export const failure = (f: Fault, x: { id: string }): string => {
  const error = fault(f, x).body["error"] as JsonObject;
  return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
};

// Encodes errors in OpenAI's form, with the type and code that its images endpoint uses for
// rejected prompts.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { encodeFault as refusal } from "../../responses/server/fault.ts";
import { asObject } from "../../json-values.ts";

export function encodeFault(f: Fault, x: { id: string }): ErrorResponse {
  const errorResponse = refusal(
    f.kind === "content_policy" ? { code: "moderation_blocked", ...f } : f,
    x,
  );
  if (f.kind !== "content_policy") return errorResponse;
  const error = asObject(errorResponse.body["error"]);
  return { ...errorResponse, body: { error: { ...error, type: "image_generation_user_error" } } };
}

/** Returns the error event of a stream. SDKs of this protocol throw on it. */
export const streamErrorEvent = (f: Fault, x: { id: string }): string => {
  const error = encodeFault(f, x).body["error"] as JsonObject;
  return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
};

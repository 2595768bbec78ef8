// The gateway's errors, as all readers of this wire find them: Cohere's look for `message`, others for OpenAI's `error`, Voyage's
// for `detail`.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { encodeFault as refusal } from "../../responses/server/fault.ts";

export function encodeFault(f: Fault, x: { id: string }): ErrorResponse {
  const error = refusal(f, x);
  const { message } = error.body["error"] as JsonObject;
  return { ...error, body: { message, detail: message, ...error.body } };
}

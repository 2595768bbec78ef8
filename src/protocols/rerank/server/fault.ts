// Encodes errors for all readers of this protocol. Cohere's clients read `message`, Voyage's read
// `detail`, and others read OpenAI's `error`.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { encodeFault as refusal } from "../../responses/server/fault.ts";

export function encodeFault(f: Fault, x: { id: string }): ErrorResponse {
  const error = refusal(f, x);
  const { message } = error.body["error"] as JsonObject;
  return { ...error, body: { message, detail: message, ...error.body } };
}

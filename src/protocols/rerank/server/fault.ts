// The gateway's errors, as all readers of this wire find them: Cohere's look for `message`, others for OpenAI's `error`, Voyage's
// for `detail`.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorAnswer } from "../../../plugin/protocol.ts";
import { fault as refusal } from "../../responses/server/fault.ts";

export function fault(f: Fault, x: { id: string }): ErrorAnswer {
  const said = refusal(f, x);
  const { message } = said.body["error"] as JsonObject;
  return { ...said, body: { message, detail: message, ...said.body } };
}

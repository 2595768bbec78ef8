// OpenAI's one error shape, with the words that its image endpoint has for refused prompts.
import type { Fault } from "../../model/error.ts";
import type { HeadersIn, JsonObject } from "../../model/values.ts";
import type { Refusal } from "../../plugin/protocol.ts";
import { fault as refusal, upstreamFault } from "../responses/fault.ts";
import { object } from "../responses/wire.ts";

const REFUSED = new Set([
  "moderation_blocked",
  "content_policy_violation",
  "image_content_policy_violation",
]);

export function fault(f: Fault, x: { id: string }): Refusal {
  const said = refusal(f.kind === "content_policy" ? { code: "moderation_blocked", ...f } : f, x);
  if (f.kind !== "content_policy") return said;
  const error = object(said.body["error"]);
  return { ...said, body: { error: { ...error, type: "image_generation_user_error" } } };
}

export function upstream(status: number, headers: HeadersIn, body: Buffer): Fault {
  const f = upstreamFault(status, headers, body);
  return REFUSED.has(f.code ?? "") ||
    /image_generation_user_error/.test(body.toString("latin1", 0, 4096))
    ? { ...f, kind: "content_policy" }
    : f;
}

/** The error event of a stream: SDKs of this protocol throw on it. */
export const failure = (f: Fault, x: { id: string }): string => {
  const error = fault(f, x).body["error"] as JsonObject;
  return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
};

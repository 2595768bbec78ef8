// Formats of an error in each upstream protocol.
import type { JsonObject } from "tollgate/plugin";
import type { UpstreamName } from "./request-paths.ts";

const OWN_WORDS = "Something went wrong at the provider.";

const MESSAGES: { readonly [status: number]: string } = {
  401: "authentication_error",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function spokenError(into: UpstreamName, status: number): JsonObject {
  if (into === "messages")
    return { type: "error", error: { type: MESSAGES[status]!, message: OWN_WORDS } };
  if (into.startsWith("gemini"))
    return { error: { code: status, message: OWN_WORDS, status: "UNKNOWN" } };
  return { error: { message: OWN_WORDS, type: "server_error", param: null, code: null } };
}

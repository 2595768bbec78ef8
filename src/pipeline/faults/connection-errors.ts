// What broke on the line to a provider, in words that name no address: a client reads them, and a breaker's line in the log.
import { createFault, type ErrorKind } from "../../model/error.ts";

/** The fault of an error of the system, of TLS or of the HTTP client. */
export function toConnectionFault(cause: Error): Error {
  const [kind, message, code] = classifyError(cause);
  return createFault(kind, message, { code, cause });
}

const CONNECT_ERRORS = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

const PROTOCOL_ERRORS = new Set([
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
]);

function classifyError(cause: Error): [ErrorKind, string, string] {
  const { code = "", name } = cause as { code?: string; name: string };
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT")
    return ["timeout", "The provider could not be reached in time.", "connect_timeout"];
  if (CONNECT_ERRORS.has(code))
    return ["upstream", `The provider cannot be reached (${code}).`, "connect_failed"];
  // Its own words name no address: the proxy is the operator's, and the provider was not asked.
  if (code === "proxy_refused")
    return ["upstream", `The provider was not reached. ${cause.message}`, "proxy_refused"];
  if (code.startsWith("address_"))
    return ["upstream", "The provider's address is one that is not dialled.", "address_refused"];
  if (code.includes("CERT"))
    return ["upstream", `The provider's TLS certificate was refused (${code}).`, "tls_failed"];
  if (code.startsWith("ERR_TLS") || code.startsWith("ERR_SSL"))
    return ["upstream", `No TLS was agreed on with the provider (${code}).`, "tls_failed"];
  if (name === "HTTPParserError" || PROTOCOL_ERRORS.has(code) || isUnexpectedResponse(cause))
    return ["upstream", "The provider's answer is not HTTP that can be understood.", "bad_http"];
  return [
    "upstream",
    "The provider closed the connection before its answer was complete.",
    "upstream_disconnected",
  ];
}

/** A 100 or an upgrade that was not asked for has no code of its own. */
const isUnexpectedResponse = ({ message }: Error): boolean =>
  message === "bad response" || message === "bad upgrade";

// Converts connection errors to faults. Their messages contain no addresses, because clients and
// the log lines of circuit breakers show them.
import { createFault, type ErrorKind, type Fault } from "../../model/error.ts";

/** Returns the fault for an error of the system, of TLS, or of the HTTP client. */
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
    return [
      "timeout",
      "Cannot connect to the provider: the connection timed out.",
      "connect_timeout",
    ];
  if (CONNECT_ERRORS.has(code))
    return ["upstream", `Cannot connect to the provider (${code}).`, "connect_failed"];
  // The proxy's own message contains no address. The operator runs the proxy, and the provider was
  // not called.
  if (code === "proxy_refused")
    return ["upstream", `Cannot connect to the provider. ${cause.message}`, "proxy_refused"];
  if (code.startsWith("address_"))
    return [
      "upstream",
      "Connections to the provider's address are not allowed.",
      "address_refused",
    ];
  if (code.includes("CERT"))
    return ["upstream", `The provider's TLS certificate was rejected (${code}).`, "tls_failed"];
  if (code.startsWith("ERR_TLS") || code.startsWith("ERR_SSL"))
    return ["upstream", `The TLS handshake with the provider failed (${code}).`, "tls_failed"];
  if (name === "HTTPParserError" || PROTOCOL_ERRORS.has(code) || isUnexpectedResponse(cause))
    return ["upstream", "The provider's response is not valid HTTP.", "bad_http"];
  return [
    "upstream",
    "The provider closed the connection before its response was complete.",
    "upstream_disconnected",
  ];
}

/**
 * Whether the provider sent an unrequested 100 or an upgrade. This error has no code of its own.
 */
const isUnexpectedResponse = ({ message }: Error): boolean =>
  message === "bad response" || message === "bad upgrade";

/**
 * Matches error codes of systems and libraries, such as "ECONNREFUSED", "UND_ERR_SOCKET", or
 * "CERT_HAS_EXPIRED".
 */
const ERRNO_NAME = /^[A-Z][A-Z0-9_]{2,63}$/;
/** Maximum depth of the chain of causes. A library's error has the system's error as its cause. */
const MAX_CAUSES = 3;
/**
 * Returns the system's code of a connection error. Returns undefined if the fault is no connection
 * error.
 */
export function errnoOf(fault: Fault | undefined): string | undefined {
  let error: unknown = fault?.cause;
  let found: string | undefined;
  for (let i = 0; i < MAX_CAUSES && error instanceof Error; i++) {
    const { code, cause } = error as { code?: unknown; cause?: unknown };
    if (typeof code === "string" && ERRNO_NAME.test(code)) found = code;
    error = cause;
  }
  return found;
}

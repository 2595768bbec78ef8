// Records which party caused a fault. Only the host may do this. The record is kept outside the
// fault because codecs, plugins, and providers write the fields of faults. None of these parties
// may disable a fallback or redirect other requests.
import { isBoundExceeded } from "../../model/bound-exceeded.ts";
import { getFault, type ErrorKind, type Fault, createFault } from "../../model/error.ts";

/**
 * The party that caused a fault. `caller`: a limit or deadline of the client. `gateway`: the
 * gateway rejects the request because it is full. `target`: the connection to the provider, or the
 * provider's rejection. `answer`: an unusable response. A fault without a source was caused by a
 * hook.
 */
type FaultSource = "caller" | "gateway" | "target" | "answer";
interface FaultAttribution {
  readonly source: FaultSource;
  provider: string | undefined;
}

const attributions = new WeakMap<Fault, FaultAttribution>();

/**
 * Attributes a fault to a source. The first attribution, which is closest to the origin, takes
 * precedence. The provider may be added later, when it is known.
 */
export function attributeFault<P>(problem: P, source: FaultSource, provider?: string): P {
  const fault = getFault(problem);
  if (!fault) return problem;
  const known = attributions.get(fault);
  if (!known) attributions.set(fault, { source, provider });
  else if (known.source !== "gateway") known.provider ??= provider;
  return problem;
}

/**
 * Whether the client or the gateway caused the fault. Another candidate would fail in the same way,
 * and no candidate is at fault.
 */
export const isLocalFault = (fault: Fault): boolean => {
  const side = attributions.get(fault)?.source;
  return side === "caller" || side === "gateway";
};

/**
 * Whether the provider caused the fault, through its rejection or its response. Hooks and the
 * gateway did not.
 */
export const isProviderFault = (fault: Fault): boolean => {
  const side = attributions.get(fault)?.source;
  return side === "target" || side === "answer";
};

export const faultProvider = (fault: Fault): string | undefined =>
  attributions.get(fault)?.provider;

/**
 * Whether the fault counts against the target's health. An unreadable response counts like a server
 * error. A single unreadable response may be caused by the request, so it does not divert other
 * requests. A response that exceeds a bound of this gateway is no evidence about the target.
 */
export function countsAgainstTarget(fault: Fault): boolean {
  const side = attributions.get(fault)?.source;
  // A hook found this in a header of the provider's response.
  if (fault.kind === "attestation") return true;
  return side === "target" || (side === "answer" && !isBoundExceeded(fault));
}

/** Whether the error concerns the gateway's account with the provider, not a client. */
export const isProviderAccountError = (
  kind: ErrorKind,
): kind is "upstream_auth" | "upstream_quota" =>
  kind === "upstream_auth" || kind === "upstream_quota";

/** Whether a client's retry cannot succeed. */
export const isRetryPointless = (fault: Fault): boolean => isProviderAccountError(fault.kind);

// Converts connection errors to faults. Their messages contain no addresses, because clients and
// the log lines of circuit breakers show them.

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

/**
 * Matches error codes of a rejected certificate. If the server does not send the intermediate
 * certificates, the code is "UNABLE_TO_VERIFY_LEAF_SIGNATURE".
 */
const CERTIFICATE_ERROR = /CERT|^UNABLE_TO_/;

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
  if (CERTIFICATE_ERROR.test(code))
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

/** Whether the provider sent an unrequested 100 or an upgrade. This error has no specific code. */
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

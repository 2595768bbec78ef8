import type { Fault } from "../../model/error.ts";

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

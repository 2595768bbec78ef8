import type { Fault } from "../../model/error.ts";

/** As systems and libraries spell them: "ECONNREFUSED", "UND_ERR_SOCKET", "CERT_HAS_EXPIRED". */
const ERRNO_NAME = /^[A-Z][A-Z0-9_]{2,63}$/;
/** An error of a library has the system's as its cause. */
const MAX_CAUSES = 3;

/** The system's name of what went wrong on a connection; undefined where it was nothing of that kind. */
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

// Classifies database errors by the reaction they need.
import { fail, getFault } from "tollgate/plugin";

const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Whether the same batch can be retried shortly, because it conflicted with other transactions. */
export const isRetryableConflict = (error: unknown): boolean =>
  ["40001", "40P01", "55P03", "57014", "TG002"].includes(errorCode(error));

/** Whether the node's view of the database is outdated. The actual state must be read first. */
export const needsReread = (error: unknown): boolean =>
  ["TG003", "TG005", "23505"].includes(errorCode(error));

/** Whether a budget lease differs from the node's view. */
export const isLeaseMissing = (error: unknown): boolean => errorCode(error) === "TG004";

/** Whether the database is out of disk space, memory, or connections. */
export const isResourceExhausted = (error: unknown): boolean => errorCode(error).startsWith("53");

/**
 * Whether another session is creating the same schema objects. This causes duplicates, deadlocks,
 * and concurrently updated catalog rows.
 */
export const isSchemaConflict = (error: unknown): boolean =>
  isRetryableConflict(error) ||
  ["23505", "42P06", "42P07", "42710", "42723", "XX000"].includes(errorCode(error));

/**
 * Whether the connection is broken or the database is not the primary. It is unknown whether the
 * batch was committed.
 */
export function isUnavailable(error: unknown): boolean {
  const code = errorCode(error);
  if (/^[0-9A-Z]{5}$/.test(code) && !/^(08|57P|25006)/.test(code)) return false;
  return getFault(error) === undefined;
}

/**
 * Fails because this instance's lease has expired. All calls are rejected until the gateway opens
 * the store again.
 */
export const failFenced = (): never =>
  fail("conflict", "This gateway was fenced because its lease expired.", { code: "fenced" });

/** Fails because the database is unreachable. The message omits the address, which is a secret. */
export const failUnreachable = (error: unknown): never =>
  fail("unavailable", `The database is unreachable: ${errorMessage(error)}.`, {
    code: "store_unreachable",
  });

/**
 * Returns the message of an error. A refused connection to several addresses has its messages in
 * the inner errors.
 */
export const errorMessage = (error: unknown): string =>
  error instanceof AggregateError && error.message === ""
    ? errorMessage(error.errors[0])
    : error instanceof Error
      ? error.message
      : String(error);

// What the database said no with, and what is to be done about it.
import { fail, getFault } from "tollgate/plugin";

const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** The same batch again, after a moment: others were in the way. */
export const isRetryableConflict = (error: unknown): boolean =>
  ["40001", "40P01", "55P03", "57014", "TG002"].includes(errorCode(error));

/** It is not as the node thought: what is really there has to be read first. */
export const needsReread = (error: unknown): boolean =>
  ["TG003", "TG005", "23505"].includes(errorCode(error));

/** A slice is not as the node thought. */
export const isLeaseMissing = (error: unknown): boolean => errorCode(error) === "TG004";

/** It has no room: on its disk, in its memory, for another connection. */
export const isResourceExhausted = (error: unknown): boolean => errorCode(error).startsWith("53");

/** Another session makes the same things in the catalog: duplicates, deadlocks, rows of it that were changed meanwhile. */
export const isSchemaConflict = (error: unknown): boolean =>
  isRetryableConflict(error) ||
  ["23505", "42P06", "42P07", "42710", "42723", "XX000"].includes(errorCode(error));

/** The connection is broken, or the database is not the one that writes: whether the batch has happened is not known. */
export function isUnavailable(error: unknown): boolean {
  const code = errorCode(error);
  if (/^[0-9A-Z]{5}$/.test(code) && !/^(08|57P|25006)/.test(code)) return false;
  return getFault(error) === undefined;
}

/** Refused until the gateway opens the store again. */
export const failFenced = (): never =>
  fail("conflict", "This instance was taken for dead.", { code: "fenced" });

/** In words: the address is a secret, and is not in them. */
export const failUnreachable = (error: unknown): never =>
  fail("unavailable", `The database cannot be reached: ${errorMessage(error)}.`, {
    code: "store_unreachable",
  });

/** A refused connection to several addresses has its words inside. */
export const errorMessage = (error: unknown): string =>
  error instanceof AggregateError && error.message === ""
    ? errorMessage(error.errors[0])
    : error instanceof Error
      ? error.message
      : String(error);

// Filters the requests of the history.
import type { RequestRecord } from "../../plugin/observer.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import { type FinishedRequest, isRoutedRequest } from "../../runtime/requests/request-ring.ts";
import { isWithinAccount } from "../../runtime/requests/series-selection.ts";
import type { InputOf } from "../schema/command-specs.ts";

export type RequestStatus = "ok" | "refused" | "failed" | "canceled";

const STATUS_OF_OUTCOME = {
  ok: "ok",
  client_error: "refused",
  refused: "refused",
  upstream_error: "failed",
  error: "failed",
  canceled: "canceled",
} as const satisfies Record<RequestRecord["outcome"], RequestStatus>;

/**
 * Returns the status of a request: "refused" if it was rejected before it reached a frontend.
 */
export const statusOf = (over: FinishedRequest): RequestStatus =>
  isRoutedRequest(over) ? STATUS_OF_OUTCOME[over.outcome] : "refused";

export const keyOf = (over: FinishedRequest): string | undefined =>
  isRoutedRequest(over) ? over.key : undefined;

/**
 * Whether a request belongs to the account or to an account nested under it. A request that was
 * rejected before it reached a frontend belongs to no account.
 */
export const isOfAccount = (over: FinishedRequest, account: string | undefined): boolean =>
  account === undefined || (isRoutedRequest(over) && isWithinAccount(over.account, account));

export async function createRequestFilter(
  { key, model, failed, from, account, status }: InputOf<"requests.list">,
  idOf: (idOrName: string) => Promise<string>,
): Promise<(over: FinishedRequest) => boolean> {
  const id = key === undefined ? undefined : await idOf(key);
  return (over) =>
    (from === undefined || over.at >= from) &&
    isOfAccount(over, account) &&
    (status === undefined || statusOf(over) === status) &&
    (failed !== true ||
      over.status >= 400 ||
      (isRoutedRequest(over) && over.fault !== undefined)) &&
    (id === undefined || keyOf(over) === id) &&
    (model === undefined || (isRoutedRequest(over) && usesModel(over, model)));
}

/** Whether the pattern matches the model as requested or as served. */
const usesModel = ({ model, calls }: RequestRecord, pattern: string): boolean =>
  matchesPattern(pattern, model) ||
  calls.some((call) => matchesPattern(pattern, `${call.provider}/${call.model}`));

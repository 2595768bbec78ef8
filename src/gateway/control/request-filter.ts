// Which of the remembered requests a list is about.
import type { RequestRecord } from "../../plugin/observer.ts";
import { matches } from "../../walk/candidates/pattern.ts";
import { type Over, reachedFrontend } from "../requests/ring.ts";
import { standsIn } from "../requests/series-choice.ts";
import type { InputOf } from "./table.ts";

export type RequestStatus = "ok" | "refused" | "failed" | "canceled";

const STATUSES = {
  ok: "ok",
  client_error: "refused",
  refused: "refused",
  upstream_error: "failed",
  error: "failed",
  canceled: "canceled",
} as const satisfies Record<RequestRecord["outcome"], RequestStatus>;

/** Requests that were turned away before a frontend saw them were refused. */
export const statusOf = (over: Over): RequestStatus =>
  reachedFrontend(over) ? STATUSES[over.outcome] : "refused";

export const keyOf = (over: Over): string | undefined =>
  reachedFrontend(over) ? over.key : undefined;

/** `account`: only of this account and the accounts below it. What was turned away before a frontend saw it belongs to none. */
export const isOfAccount = (over: Over, account: string | undefined): boolean =>
  account === undefined || (reachedFrontend(over) && standsIn(over.account, account));

export async function filterOf(
  { key, model, failed, from, account, status }: InputOf<"requests.list">,
  idOf: (said: string) => Promise<string>,
): Promise<(over: Over) => boolean> {
  const id = key === undefined ? undefined : await idOf(key);
  return (over) =>
    (from === undefined || over.at >= from) &&
    isOfAccount(over, account) &&
    (status === undefined || statusOf(over) === status) &&
    (failed !== true ||
      over.status >= 400 ||
      (reachedFrontend(over) && over.fault !== undefined)) &&
    (id === undefined || keyOf(over) === id) &&
    (model === undefined || (reachedFrontend(over) && isOf(over, model)));
}

/** As it was requested, or as it was served. */
const isOf = ({ model, calls }: RequestRecord, pattern: string): boolean =>
  matches(pattern, model) ||
  calls.some((call) => matches(pattern, `${call.provider}/${call.model}`));

// Writes the table of retries into docs/guides/fallback.md, from the data that the request pipeline uses.
//
//     npx node --conditions=tollgate-source .build/retries.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ERRORS, type ErrorKind } from "../src/model/error.ts";
import {
  retryModeAfter,
  FAILURE_POINTS,
  type RetryMode,
  type FailurePoint,
} from "../src/model/call-retry.ts";

export const PAGE = join(import.meta.dirname, "../docs/guides/fallback.md");
const HEAD =
  "| Progress of the call | Retry on the same target | Another candidate | Ledger entry |";

const HOW: { readonly [A in RetryMode]: string } = {
  immediate: "immediately, on a new connection",
  backoff: "after the others and a backoff",
  retry_after: "after the others, if `retry-after` is at most 5 s",
};
const ROW: { readonly [R in (typeof FAILURE_POINTS)[FailurePoint]["ledgerResult"]]: string } = {
  void: "void: nothing is billed",
  estimated: "estimated: the input, and the output received",
  partial: "estimated: the input, and the output generated",
};

/** Returns the kinds of failure for each way to retry, in the order of ERRORS. */
function again(stage: FailurePoint): string {
  const kinds = Object.keys(ERRORS) as ErrorKind[];
  const ways = Map.groupBy(kinds, (kind) => retryModeAfter(stage, kind));
  const said = (Object.keys(HOW) as RetryMode[]).flatMap((way) => {
    const of = ways.get(way);
    return of ? [`${of.map((kind) => `\`${kind}\``).join(", ")}: ${HOW[way]}`] : [];
  });
  if (said.length === 0) return "never";
  return (
    said.join("; ") + (FAILURE_POINTS[stage].isFree ? "; not counted in the retry budget" : "")
  );
}

export const table = (): string =>
  [
    HEAD,
    "|---|---|---|---|",
    ...(Object.keys(FAILURE_POINTS) as FailurePoint[]).map((stage) => {
      const { description, allowsFailover, ledgerResult } = FAILURE_POINTS[stage];
      return `| ${description[0]!.toUpperCase()}${description.slice(1)} | ${again(stage)} | ${allowsFailover ? "yes" : "never"} | ${ROW[ledgerResult]} |`;
    }),
  ].join("\n");

/** Returns the page with the table replaced. */
export function written(page: string): string {
  const from = page.indexOf(HEAD);
  if (from < 0) throw new Error("docs/guides/fallback.md has no table of retries");
  const end = page.indexOf("\n\n", from);
  return page.slice(0, from) + table() + page.slice(end);
}

if (import.meta.main) writeFileSync(PAGE, written(readFileSync(PAGE, "utf8")));

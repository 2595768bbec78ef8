import type { HeadersOut, LimitState } from "../../../plugin/index.ts";

/** The request's id, and the tightest limit of each sort, by the names that clients know. */
export function head({ id, limits }: { id: string; limits: readonly LimitState[] }): HeadersOut {
  return {
    "x-request-id": id,
    ...named(
      "requests",
      limits.filter((l) => l.unit === "requests"),
    ),
    ...named(
      "tokens",
      limits.filter((l) => l.unit === "tokens" || l.unit === "input" || l.unit === "output"),
    ),
  };
}

function named(what: string, limits: readonly LimitState[]): HeadersOut {
  let tightest = limits[0];
  for (const limit of limits) if (limit.left < tightest!.left) tightest = limit;
  if (!tightest) return {};
  return {
    [`x-ratelimit-limit-${what}`]: String(tightest.max),
    [`x-ratelimit-remaining-${what}`]: String(tightest.left < 0 ? 0 : tightest.left),
  };
}

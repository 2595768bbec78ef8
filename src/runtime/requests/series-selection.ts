// Selects the series of a query, and the names under which they are summed.
import type { Series } from "./time-slots.ts";

/**
 * The dimension of a query. `model` is the provider with the upstream model name. With `model` and
 * `provider`, calls are counted instead of requests.
 */
export type StatsBy = "all" | "frontend" | "model" | "provider" | "key" | "account";

export interface SeriesSelection {
  includes(series: Series): boolean;
  /** Returns the series to which this series is added. */
  mapTo(series: Series): Series;
}

export interface SeriesQuery {
  readonly by: StatsBy;
  /**
   * Restricts the query to this account and the accounts below it. Allowed only for `all` or
   * `account`.
   */
  readonly account?: string | undefined;
  /** Restricts the query to calls of this provider. Allowed only for `all` or `model`. */
  readonly provider?: string | undefined;
}

const ACCOUNT_PREFIX = "account:";
const MODEL_PREFIX = "model:";

/** Whether the account at `path` is this account or one below it. */
export const isWithinAccount = (path: string | undefined, account: string): boolean =>
  path !== undefined && `/${path}/`.includes(`/${account}/`);

export function selectSeries({ by, account, provider }: SeriesQuery): SeriesSelection {
  const as = (series: Series) => (by === "all" ? "" : series);
  if (account !== undefined)
    return {
      includes: (series) =>
        series.startsWith(ACCOUNT_PREFIX) &&
        isWithinAccount(series.slice(ACCOUNT_PREFIX.length), account),
      mapTo: as,
    };
  if (provider !== undefined) {
    const beginning = `${MODEL_PREFIX}${provider}/`;
    return { includes: (series) => series.startsWith(beginning), mapTo: as };
  }
  if (by === "all") return { includes: (series) => series === "", mapTo: as };
  if (by === "provider")
    return {
      includes: (series) => series.startsWith(MODEL_PREFIX),
      mapTo: (series) => `provider:${series.slice(MODEL_PREFIX.length).split("/", 1)[0]}`,
    };
  return { includes: (series) => series.startsWith(`${by}:`), mapTo: as };
}

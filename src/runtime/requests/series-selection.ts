// Which of the counted series an answer is about, and under which names it sums them up.
import type { Series } from "./time-slots.ts";

/** What is counted separately. `model`: provider and upstream name; there and under `provider`, calls are counted instead of requests. */
export type StatsBy = "all" | "frontend" | "model" | "provider" | "key" | "account";

export interface SeriesSelection {
  includes(series: Series): boolean;
  /** The series that this one is added to. */
  mapTo(series: Series): Series;
}

export interface SeriesQuery {
  readonly by: StatsBy;
  /** Only of this account and the accounts below it. By `all` or `account`. */
  readonly account?: string | undefined;
  /** Only calls of this provider. By `all` or `model`. */
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

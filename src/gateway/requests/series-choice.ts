// Which of the counted series an answer is about, and under which names it sums them up.
import type { Series } from "./slots.ts";

/** What is counted separately. `model`: provider and upstream name; there and under `provider`, calls are counted instead of requests. */
export type StatsBy = "all" | "frontend" | "model" | "provider" | "key" | "account";

export interface SeriesChoice {
  wants(series: Series): boolean;
  /** The series that this one is added to. */
  as(series: Series): Series;
}

export interface SeriesQuery {
  readonly by: StatsBy;
  /** Only of this account and the accounts below it. By `all` or `account`. */
  readonly account?: string | undefined;
  /** Only calls of this provider. By `all` or `model`. */
  readonly provider?: string | undefined;
}

const ACCOUNT = "account:";
const MODEL = "model:";

/** Whether the account at `path` is this account or one below it. */
export const standsIn = (path: string | undefined, account: string): boolean =>
  path !== undefined && `/${path}/`.includes(`/${account}/`);

export function choiceOf({ by, account, provider }: SeriesQuery): SeriesChoice {
  const as = (series: Series) => (by === "all" ? "" : series);
  if (account !== undefined)
    return {
      wants: (series) =>
        series.startsWith(ACCOUNT) && standsIn(series.slice(ACCOUNT.length), account),
      as,
    };
  if (provider !== undefined) {
    const beginning = `${MODEL}${provider}/`;
    return { wants: (series) => series.startsWith(beginning), as };
  }
  if (by === "all") return { wants: (series) => series === "", as };
  if (by === "provider")
    return {
      wants: (series) => series.startsWith(MODEL),
      as: (series) => `provider:${series.slice(MODEL.length).split("/", 1)[0]}`,
    };
  return { wants: (series) => series.startsWith(`${by}:`), as };
}

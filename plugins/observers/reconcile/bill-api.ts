// Reads the pages of a provider's billing API. Numbers are kept as their text, because amounts of
// money must not become floats.
import { fail, type Context } from "tollgate/plugin";

/** A period of whole days in UTC, in Unix milliseconds. The end is not included. */
export interface BillPeriod {
  readonly from: number;
  readonly to: number;
}

export interface BillApi {
  readonly fetch: Context["fetch"];
  /** Origin of the API. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
}

type Query = Readonly<Record<string, string | readonly string[]>>;

interface Page<T> {
  readonly data: readonly T[];
  readonly has_more?: boolean;
  readonly next_page?: string | null;
}

/** Maximum number of pages, so that a provider that repeats a page cannot loop forever. */
const MAX_PAGES = 1_000;

export async function* readPages<T>(
  api: BillApi,
  path: string,
  query: Query,
): AsyncGenerator<T, void> {
  let next: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const url = new URL(path, api.origin);
    for (const [name, value] of Object.entries(query))
      for (const each of [value].flat()) url.searchParams.append(name, each as string);
    if (next !== undefined) url.searchParams.set("page", next);
    const answer = await api.fetch(url, { headers: api.headers });
    const text = await answer.text();
    if (answer.status !== 200)
      fail(
        "upstream",
        `${url.host}${path} returned status ${answer.status}: ${text.slice(0, 200)}`,
        {
          code: "bill_unreadable",
        },
      );
    const { data, has_more: hasMore, next_page: nextPage } = parseExact(text) as Page<T>;
    yield* data;
    if (hasMore !== true || nextPage == null) return;
    next = nextPage;
  }
  fail("upstream", `${path} has more than ${MAX_PAGES} pages.`, { code: "bill_unreadable" });
}

/** Parses JSON in which each number becomes `{ digits }`. */
export const parseExact = (text: string): unknown =>
  JSON.parse(text, ((_key: string, value: unknown, context: { readonly source: string }) =>
    typeof value === "number" ? { digits: context.source } : value) as (
    key: string,
    value: unknown,
  ) => unknown);

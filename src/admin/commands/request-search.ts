// Searches the whole ledger for requests, newest first. The ledger is read backward in time ranges.
// A range becomes longer if reading is fast and shorter if it is slow. One response therefore reads
// a bounded number of rows in a bounded time, whatever the size of the ledger and the query are.
// The next response continues where the previous one ended.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { LedgerEntry, LedgerQuery, Store } from "../../plugin/store/store.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import { isClientError } from "../../pipeline/stages/request-outcome.ts";
import { KeyNames } from "../../runtime/requests/key-names.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import { resolveKeyId } from "./ledger-names.ts";
import type { RequestStatus } from "./request-filter.ts";

/** One call of a request, from its settle row, without corrections. */
export interface SearchedCall extends Pick<
  LedgerEntry,
  "attempt" | "state" | "outcome" | "usage" | "costNano" | "ms"
> {
  readonly n: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
}

/** A request with its matching calls, from the ledger. */
export interface SearchedRequest {
  readonly id: string;
  /** Time when the last call of the request was settled, in Unix milliseconds. */
  readonly at: number;
  readonly status: RequestStatus;
  readonly key: string;
  readonly account: string | undefined;
  readonly labels: LedgerEntry["labels"];
  readonly privacy: LedgerEntry["privacy"];
  /**
   * Model in the client's request, if the ledger contains it. Otherwise the model that was called.
   */
  readonly model: string;
  readonly frontend: string | undefined;
  readonly stream: boolean | undefined;
  /** Calls in order. */
  readonly calls: readonly SearchedCall[];
}

export interface SearchPage {
  readonly items: readonly SearchedRequest[];
  /** Cursor of the next page. Unset if the whole range was searched. */
  readonly next: string | undefined;
  /** Start of the time range that was searched completely, in Unix milliseconds. */
  readonly searchedBackTo: number;
}

export interface SearchQuery {
  readonly query: Omit<LedgerQuery, "from" | "to">;
  readonly status: RequestStatus | undefined;
  readonly from: number;
  readonly to: number;
  /** `next` of the previous page. */
  readonly cursor: string | undefined;
  /**
   * Number of requests after which the page ends. All requests in the time range of the last
   * request are included.
   */
  readonly limit: number;
}

export interface SearchLimits {
  /** Monotonic time, in milliseconds. */
  now(): number;
  /** Time in milliseconds after which a search reads no further range. */
  readonly budgetMs: number;
  /** Time after which a range is aborted, in milliseconds. A shorter range is then read. */
  readonly maxStretchMs: number;
}

/**
 * The limits ensure that a page loads quickly enough for a user, whatever the size of the ledger
 * is.
 */
const DEFAULT_LIMITS: SearchLimits = {
  now: () => performance.now(),
  budgetMs: 150,
  maxStretchMs: 1_000,
};

interface NamedSearchPage extends Omit<SearchPage, "items"> {
  readonly items: readonly (SearchedRequest & { readonly keyName: string | undefined })[];
}

export function createSearchCommand(store: Pick<Store, "listEntries" | "listKeys">) {
  const names = new KeyNames(store);
  return withInputChecks({
    "requests.search": async (input): Promise<NamedSearchPage> => {
      const { from = 0, to = wallClock() + 1, status, after, limit = 50, key, ...rest } = input;
      const query = { ...rest, key: await resolveKeyId(key, store) };
      const page = await searchRequests(
        store,
        { query, status, from, to, cursor: after, limit },
        DEFAULT_LIMITS,
      );
      const called = await names.readAll();
      const items = page.items.map((each) => ({ ...each, keyName: called.get(each.key) }));
      return { ...page, items };
    },
  });
}

const MINUTE_MS = 60_000;
const FIRST_STRETCH_MS = 60 * MINUTE_MS;
const MAX_STRETCH_MS = 400 * 24 * 60 * MINUTE_MS;
/** Returns the maximum number of rows per range. A call has at least 2 rows. */
const rowLimitFor = (limit: number): number => Math.min(1_000, 4 * limit);

export async function searchRequests(
  store: Pick<Store, "listEntries">,
  options: SearchQuery,
  times: SearchLimits,
): Promise<SearchPage> {
  const began = times.now();
  let { to, span, isNarrowed, seq } =
    options.cursor === undefined
      ? { ...FIRST_CURSOR, to: options.to }
      : parseCursor(options.cursor);
  const { query, fits } = createFilters(options);
  const rowLimit = rowLimitFor(options.limit);
  const early = await oldestTimeOf(store, options);
  const found: LedgerEntry[] = [];
  while (to > options.from) {
    const from =
      seq !== undefined
        ? to - 1
        : to <= early && !isNarrowed
          ? options.from
          : Math.max(options.from, to - span);
    const read = await readStretch(
      store,
      { ...query, from, to },
      { after: seq, limit: rowLimit },
      times,
    );
    if (read === undefined) {
      span = Math.max(1, Math.floor((to - from) / 4));
      isNarrowed = true;
      if (times.now() - began >= times.budgetMs) break;
      continue;
    }
    const { rows } = read;
    found.push(...rows.toSorted(newestFirst).filter(fits));
    seq = read.next;
    if (seq === undefined) to = from;
    if (rows.length === 0) span = Math.min(Math.max(MAX_STRETCH_MS, to), span * 2);
    else if (rows.length * 4 < rowLimit) span = Math.min(MAX_STRETCH_MS, span * 2);
    if (new Set(found.map(({ request }) => request)).size >= options.limit) break;
    if (times.now() - began >= times.budgetMs) break;
  }
  return {
    items: groupByRequest(found),
    next: to > options.from ? formatCursor({ to, span, isNarrowed, seq }) : undefined,
    searchedBackTo: Math.max(to, options.from),
  };
}

/**
 * Returns the time of the first written row. Few rows have an earlier time, because they were
 * written late. The time before is therefore read as one range. With an account filter, this step
 * is skipped, because it would read rows of other accounts.
 */
async function oldestTimeOf(
  store: Pick<Store, "listEntries">,
  options: SearchQuery,
): Promise<number> {
  if (options.query.account !== undefined) return -Infinity;
  return (await store.listEntries({}, { limit: 1 })).items[0]?.at ?? options.to;
}

/** Splits the query into the store's filters and a filter for the returned rows. */
function createFilters({ query, status }: SearchQuery): {
  readonly query: SearchQuery["query"];
  readonly fits: (row: LedgerEntry) => boolean;
} {
  const { model, ...rest } = query;
  // The store filters models by the full name of the called model.
  const isServedName = model === undefined || (model.includes("/") && !model.includes("*"));
  if (isServedName) return { query, fits: (row) => matchesStatus(row, status) };
  return { query: rest, fits: (row) => matchesStatus(row, status) && usesModel(row, model) };
}

const usesModel = ({ clientRequest, target }: LedgerEntry, pattern: string): boolean =>
  [clientRequest?.model, target.model, `${target.provider}/${target.model}`].some(
    (name) => name !== undefined && matchesPattern(pattern, name),
  );

/**
 * Reads a time range. Returns undefined if the range has too many rows or takes too long to read.
 * Ranges of up to 1 minute have no timeout. A range of 1 ms cannot be shortened, so it is read page
 * by page: `next` is the cursor of the next page.
 */
async function readStretch(
  store: Pick<Store, "listEntries">,
  query: LedgerQuery & { readonly from: number; readonly to: number },
  page: { readonly after: string | undefined; readonly limit: number },
  { maxStretchMs }: SearchLimits,
): Promise<
  { readonly rows: readonly LedgerEntry[]; readonly next: string | undefined } | undefined
> {
  const width = query.to - query.from;
  const signal = width > MINUTE_MS ? AbortSignal.timeout(maxStretchMs) : undefined;
  try {
    const { items, next } = await store.listEntries(query, page, { signal });
    if (signal?.aborted) return undefined;
    if (next === undefined) return { rows: items, next: undefined };
    return width > 1 ? undefined : { rows: items, next: `${items.at(-1)!.seq}` };
  } catch (error) {
    if (signal?.aborted) return undefined;
    throw error;
  }
}

/**
 * Position of a page. `isNarrowed`: a range was too large, so the remaining time is not read as one
 * range. `seq`: in the millisecond before `to`, the rows up to this row were read.
 */
interface SearchCursor {
  readonly to: number;
  readonly span: number;
  readonly isNarrowed: boolean;
  readonly seq: string | undefined;
}

const FIRST_CURSOR = { span: FIRST_STRETCH_MS, isNarrowed: false, seq: undefined };
const CURSOR_PATTERN = /^(\d{1,16})-(\d{1,16})(c?)(?:\.(\d{1,16}))?$/;

const formatCursor = ({ to, span, isNarrowed, seq }: SearchCursor): string =>
  `${to}-${span}${isNarrowed ? "c" : ""}${seq === undefined ? "" : `.${seq}`}`;

function parseCursor(after: string): SearchCursor {
  const [, to, span, cut, seq] = CURSOR_PATTERN.exec(after) ?? [];
  if (to === undefined)
    return fail("invalid", "Invalid `after`. Pass the `next` value of the previous page.", {
      code: "bad_input",
      param: "/after",
    });
  return { to: Number(to), span: Math.max(1, Number(span)), isNarrowed: cut === "c", seq };
}

const requestStatusOf = (outcome: string): RequestStatus =>
  outcome === "ok"
    ? "ok"
    : outcome === "canceled"
      ? "canceled"
      : isClientError(outcome)
        ? "refused"
        : "failed";

const matchesStatus = (
  { kind, outcome }: LedgerEntry,
  status: RequestStatus | undefined,
): boolean => kind === "settle" && (status === undefined || requestStatusOf(outcome) === status);

/**
 * Compares rows by time. They are listed in the order in which they were written, which is nearly
 * the order of time.
 */
const newestFirst = (a: LedgerEntry, b: LedgerEntry): number => b.at - a.at || b.seq - a.seq;

/** Groups rows into requests, newest first like the rows. */
function groupByRequest(rows: readonly LedgerEntry[]): SearchedRequest[] {
  const found = Map.groupBy(rows, ({ request }) => request);
  return [...found.values()].map((its) => {
    const [last] = its as [LedgerEntry];
    const { key, account, labels, privacy, clientRequest, target } = last;
    return {
      id: last.request,
      at: last.at,
      status: requestStatusOf(last.outcome),
      key,
      account: account ?? undefined,
      labels,
      privacy,
      model: clientRequest?.model ?? `${target.provider}/${target.model}`,
      frontend: clientRequest?.frontend,
      stream: clientRequest?.stream,
      calls: its.map(toSearchedCall).toSorted((a, b) => a.n - b.n),
    };
  });
}

const toSearchedCall = ({
  attempt,
  n,
  target,
  state,
  outcome,
  usage,
  costNano,
  ms,
}: LedgerEntry) => ({
  attempt,
  n: n ?? 1,
  provider: target.provider,
  model: target.model,
  credential: target.credential,
  state,
  outcome,
  usage,
  costNano,
  ms,
});

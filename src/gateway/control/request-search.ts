// A search for requests over the whole ledger, the newest first. The ledger is read backward in stretches of time that become longer
// where they are cheap and shorter where they are not, so that one answer reads a bounded number of rows for a bounded time, however
// large the ledger is and whatever is searched for. Where it stops, the next answer goes on.
import { wallClock } from "../../lib/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { Entry, LedgerQuery, Store } from "../../plugin/store.ts";
import { matches } from "../../walk/candidates/pattern.ts";
import { isClientError } from "../../walk/stations/request-outcome.ts";
import { KeyNames } from "../requests/key-names.ts";
import { answering } from "./input.ts";
import { keyOf } from "./ledger-names.ts";
import type { RequestStatus } from "./request-filter.ts";

/** One call of a request, as its settle row has it. Corrections are not in it. */
export interface SearchedCall extends Pick<
  Entry,
  "attempt" | "state" | "outcome" | "usage" | "costNano" | "ms"
> {
  readonly n: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
}

/** A request, as the ledger has it: the calls of it that match. */
export interface SearchedRequest {
  readonly id: string;
  /** When its last call was settled, in Unix milliseconds. */
  readonly at: number;
  readonly status: RequestStatus;
  readonly key: string;
  readonly account: string | undefined;
  readonly labels: Entry["labels"];
  readonly privacy: Entry["privacy"];
  /** As the client wrote it, where the ledger has that; otherwise as it was served. */
  readonly model: string;
  readonly frontend: string | undefined;
  readonly stream: boolean | undefined;
  /** In their order. */
  readonly calls: readonly SearchedCall[];
}

export interface SearchPage {
  readonly items: readonly SearchedRequest[];
  /** Where the next page begins. Absent: the whole time was searched. */
  readonly next: string | undefined;
  /** Everything from this moment on was searched, in Unix milliseconds. */
  readonly reached: number;
}

export interface SearchOf {
  readonly query: Omit<LedgerQuery, "from" | "to">;
  readonly status: RequestStatus | undefined;
  readonly from: number;
  readonly to: number;
  /** `next` of the page before. */
  readonly after: string | undefined;
  /** As many requests, and those that are in the same stretch of time as the last of them. */
  readonly limit: number;
}

export interface SearchTimes {
  /** Milliseconds, as of a stopwatch. */
  now(): number;
  /** After this time no further stretch is read for one answer. */
  readonly budgetMs: number;
  /** A stretch that takes longer is given up, and a shorter one is read. */
  readonly mostMs: number;
}

/** A page takes about as long as a person waits for it, whatever the ledger has. */
const TIMES: SearchTimes = { now: () => performance.now(), budgetMs: 150, mostMs: 1_000 };

interface FoundSearch extends Omit<SearchPage, "items"> {
  readonly items: readonly (SearchedRequest & { readonly keyName: string | undefined })[];
}

export function searchCommand(store: Pick<Store, "entries" | "keys">) {
  const names = new KeyNames(store);
  return answering({
    "requests.search": async (input): Promise<FoundSearch> => {
      const { from = 0, to = wallClock() + 1, status, after, limit = 50, key, ...rest } = input;
      const query = { ...rest, key: await keyOf(key, store) };
      const page = await searched(store, { query, status, from, to, after, limit }, TIMES);
      const called = await names.all();
      const items = page.items.map((each) => ({ ...each, keyName: called.get(each.key) }));
      return { ...page, items };
    },
  });
}

const MINUTE = 60_000;
const FIRST = 60 * MINUTE;
const LONGEST = 400 * 24 * 60 * MINUTE;
/** Rows of one stretch; a call has at least two. */
const rowsFor = (limit: number): number => Math.min(1_000, 4 * limit);

export async function searched(
  store: Pick<Store, "entries">,
  of: SearchOf,
  times: SearchTimes,
): Promise<SearchPage> {
  const began = times.now();
  let { to, span, cut, seq } = of.after === undefined ? { ...START, to: of.to } : placeOf(of.after);
  const { query, fits } = filterOf(of);
  const most = rowsFor(of.limit);
  const early = await oldestOf(store, of);
  const found: Entry[] = [];
  while (to > of.from) {
    const from =
      seq !== undefined ? to - 1 : to <= early && !cut ? of.from : Math.max(of.from, to - span);
    const read = await stretch(store, { ...query, from, to }, { after: seq, limit: most }, times);
    if (read === undefined) {
      span = Math.max(1, Math.floor((to - from) / 4));
      cut = true;
      if (times.now() - began >= times.budgetMs) break;
      continue;
    }
    const { rows } = read;
    found.push(...rows.toSorted(newestFirst).filter(fits));
    seq = read.next;
    if (seq === undefined) to = from;
    if (rows.length === 0) span = Math.min(Math.max(LONGEST, to), span * 2);
    else if (rows.length * 4 < most) span = Math.min(LONGEST, span * 2);
    if (new Set(found.map(({ request }) => request)).size >= of.limit) break;
    if (times.now() - began >= times.budgetMs) break;
  }
  return {
    items: requestsOf(found),
    next: to > of.from ? wordOf({ to, span, cut, seq }) : undefined,
    reached: Math.max(to, of.from),
  };
}

/**
 * When the oldest row was written. Few rows are older than it, those that were written late: the rest of the time is one stretch. Of one account
 * nothing is read that other accounts have.
 */
async function oldestOf(store: Pick<Store, "entries">, of: SearchOf): Promise<number> {
  if (of.query.account !== undefined) return -Infinity;
  return (await store.entries({}, { limit: 1 })).items[0]?.at ?? of.to;
}

/** What the store chooses rows by, and what is chosen among the rows that it returns. */
function filterOf({ query, status }: SearchOf): {
  readonly query: SearchOf["query"];
  readonly fits: (row: Entry) => boolean;
} {
  const { model, ...rest } = query;
  // The store knows a model as it was served, by its whole name.
  const isServedName = model === undefined || (model.includes("/") && !model.includes("*"));
  if (isServedName) return { query, fits: (row) => isMeant(row, status) };
  return { query: rest, fits: (row) => isMeant(row, status) && isOfModel(row, model) };
}

const isOfModel = ({ asked, target }: Entry, pattern: string): boolean =>
  [asked?.model, target.model, `${target.provider}/${target.model}`].some(
    (name) => name !== undefined && matches(pattern, name),
  );

/**
 * Undefined: there is too much in it, or it takes too long. A stretch of a minute takes as long as it takes. One of a millisecond cannot be made
 * shorter, so it is read a page at a time: `next` is where the next page begins.
 */
async function stretch(
  store: Pick<Store, "entries">,
  query: LedgerQuery & { readonly from: number; readonly to: number },
  page: { readonly after: string | undefined; readonly limit: number },
  { mostMs }: SearchTimes,
): Promise<{ readonly rows: readonly Entry[]; readonly next: string | undefined } | undefined> {
  const width = query.to - query.from;
  const signal = width > MINUTE ? AbortSignal.timeout(mostMs) : undefined;
  try {
    const { items, next } = await store.entries(query, page, { signal });
    if (signal?.aborted) return undefined;
    if (next === undefined) return { rows: items, next: undefined };
    return width > 1 ? undefined : { rows: items, next: `${items.at(-1)!.seq}` };
  } catch (error) {
    if (signal?.aborted) return undefined;
    throw error;
  }
}

/**
 * Where a page begins. `cut`: a stretch was too large, so the rest of the time is not tried at once. `seq`: of the millisecond before `to`, the rows
 * up to this one were read.
 */
interface SearchPlace {
  readonly to: number;
  readonly span: number;
  readonly cut: boolean;
  readonly seq: string | undefined;
}

const START = { span: FIRST, cut: false, seq: undefined };
const PLACE = /^(\d{1,16})-(\d{1,16})(c?)(?:\.(\d{1,16}))?$/;

const wordOf = ({ to, span, cut, seq }: SearchPlace): string =>
  `${to}-${span}${cut ? "c" : ""}${seq === undefined ? "" : `.${seq}`}`;

function placeOf(after: string): SearchPlace {
  const [, to, span, cut, seq] = PLACE.exec(after) ?? [];
  if (to === undefined)
    return fail("invalid", "Invalid `after`: pass the `next` of the page before.", {
      code: "bad_input",
      param: "/after",
    });
  return { to: Number(to), span: Math.max(1, Number(span)), cut: cut === "c", seq };
}

const statusOfOutcome = (outcome: string): RequestStatus =>
  outcome === "ok"
    ? "ok"
    : outcome === "canceled"
      ? "canceled"
      : isClientError(outcome)
        ? "refused"
        : "failed";

const isMeant = ({ kind, outcome }: Entry, status: RequestStatus | undefined): boolean =>
  kind === "settle" && (status === undefined || statusOfOutcome(outcome) === status);

/** Rows are listed as they were written, which is nearly in the order of their times. */
const newestFirst = (a: Entry, b: Entry): number => b.at - a.at || b.seq - a.seq;

/** The newest first, as the rows are. */
function requestsOf(rows: readonly Entry[]): SearchedRequest[] {
  const found = Map.groupBy(rows, ({ request }) => request);
  return [...found.values()].map((its) => {
    const [last] = its as [Entry];
    const { key, account, labels, privacy, asked, target } = last;
    return {
      id: last.request,
      at: last.at,
      status: statusOfOutcome(last.outcome),
      key,
      account: account ?? undefined,
      labels,
      privacy,
      model: asked?.model ?? `${target.provider}/${target.model}`,
      frontend: asked?.frontend,
      stream: asked?.stream,
      calls: its.map(callOf).toSorted((a, b) => a.n - b.n),
    };
  });
}

const callOf = ({ attempt, n, target, state, outcome, usage, costNano, ms }: Entry) => ({
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

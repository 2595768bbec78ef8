// A search for requests over the whole ledger, the newest first. The ledger is read backward in stretches of time that become longer
// where they are cheap and shorter where they are not, so that one answer reads a bounded number of rows for a bounded time, however
// large the ledger is and whatever is searched for. Where it stops, the next answer goes on.
import { wallClock } from "../../lib/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { Entry, LedgerQuery, Store } from "../../plugin/store.ts";
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
  let { to, span, cut } = of.after === undefined ? { ...START, to: of.to } : placeOf(of.after);
  const [oldest] = (await store.entries({}, { limit: 1 })).items;
  // Few rows are older than the first one, those that were written late: the rest of the time is one stretch.
  const early = oldest?.at ?? of.to;
  const found: Entry[] = [];
  while (to > of.from) {
    const from = to <= early && !cut ? of.from : Math.max(of.from, to - span);
    const rows = await stretch(store, { ...of.query, from, to }, rowsFor(of.limit), times);
    if (rows === undefined) {
      span = Math.max(1, Math.floor((to - from) / 4));
      cut = true;
      if (times.now() - began >= times.budgetMs) break;
      continue;
    }
    found.push(...rows.toSorted(newestFirst).filter((row) => isMeant(row, of.status)));
    to = from;
    if (rows.length * 4 < rowsFor(of.limit)) span = Math.min(LONGEST, span * 2);
    if (new Set(found.map(({ request }) => request)).size >= of.limit) break;
    if (times.now() - began >= times.budgetMs) break;
  }
  return {
    items: requestsOf(found),
    next: to > of.from ? `${to}-${span}${cut ? "c" : ""}` : undefined,
    reached: Math.max(to, of.from),
  };
}

/** Undefined: there is too much in it, or it takes too long. A stretch of a minute takes as long as it takes, one of a millisecond is read whole. */
async function stretch(
  store: Pick<Store, "entries">,
  query: LedgerQuery & { readonly from: number; readonly to: number },
  most: number,
  { mostMs }: SearchTimes,
): Promise<readonly Entry[] | undefined> {
  const width = query.to - query.from;
  const signal = width > MINUTE ? AbortSignal.timeout(mostMs) : undefined;
  const read = (after?: string) => store.entries(query, { after, limit: most }, { signal });
  try {
    const page = await read();
    if (signal?.aborted) return undefined;
    if (page.next === undefined) return page.items;
    if (width > 1) return undefined;
    const rows = [...page.items];
    for (let next: string | undefined = page.next; next !== undefined;) {
      const more = await read(next);
      rows.push(...more.items);
      next = more.next;
    }
    return rows;
  } catch (error) {
    if (signal?.aborted) return undefined;
    throw error;
  }
}

/** Where a page begins. `cut`: a stretch was too large, so the rest of the time is not tried at once. */
interface SearchPlace {
  readonly to: number;
  readonly span: number;
  readonly cut: boolean;
}

const START = { span: FIRST, cut: false };
const PLACE = /^(\d{1,16})-(\d{1,13})(c?)$/;

function placeOf(after: string): SearchPlace {
  const [, to, span, cut] = PLACE.exec(after) ?? [];
  if (to === undefined)
    return fail("invalid", "Invalid `after`: pass the `next` of the page before.", {
      code: "bad_input",
      param: "/after",
    });
  return { to: Number(to), span: Math.min(LONGEST, Math.max(1, Number(span))), cut: cut === "c" };
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

// Search of the whole ledger, newest first: page by page, with a button to search further back.
import { useEffect, useState } from "preact/hooks";
import { runCommand, CommandError } from "../../admin-client.ts";
import type { ObservedRequest, ObservedCall } from "../../api-types.ts";

interface FoundCall extends Omit<ObservedCall, "startMs" | "protocol" | "mode" | "fault" | "ms"> {
  readonly attempt: string;
  readonly outcome: string;
  readonly ms?: ObservedCall["ms"];
}

interface FoundLedgerRequest {
  readonly id: string;
  readonly at: number;
  readonly status: "ok" | "refused" | "failed" | "canceled";
  readonly key: string;
  readonly keyName?: string;
  readonly account?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly model: string;
  readonly frontend?: string;
  readonly stream?: boolean;
  readonly calls: readonly FoundCall[];
}

interface FoundPage {
  readonly items: readonly FoundLedgerRequest[];
  readonly next?: string;
  readonly searchedBackTo: number;
}

export interface SearchedRequests {
  readonly items: readonly ObservedRequest[] | undefined;
  /** All requests after this time have been searched. */
  readonly searchedBackTo: number | undefined;
  readonly isSearching: boolean;
  /** Whether the ledger has older rows to search. */
  readonly hasMore: boolean;
  readonly problem: CommandError | undefined;
  searchFurther(): void;
}

interface State extends Pick<
  SearchedRequests,
  "items" | "searchedBackTo" | "isSearching" | "problem"
> {
  readonly next: string | undefined;
}

/**
 * Number of rows that one search adds, and maximum number of pages that it reads. A page ends after
 * a short time, even if it has no match.
 */
const ROWS_PER_SEARCH = 50;
const MAX_PAGES = 20;
/** Maximum number of rows in the table. */
const MAX_ROWS = 2_000;

const INITIAL_STATE: State = {
  items: undefined,
  searchedBackTo: undefined,
  next: undefined,
  isSearching: true,
  problem: undefined,
};

/** Searches requests. `input` is undefined while there is no search. */
export function useSearchedRequests(
  input: Readonly<Record<string, unknown>> | undefined,
): SearchedRequests {
  const [state, set] = useState<State>(INITIAL_STATE);
  const name = JSON.stringify(input);
  const [requested, setRequested] = useState({ name, n: 0 });
  const n = requested.name === name ? requested.n : 0;
  useEffect(() => {
    if (!input) return undefined;
    const over = new AbortController();
    if (n === 0) set(INITIAL_STATE);
    void searchPages(input, n === 0 ? undefined : state.next, set, over.signal);
    return () => over.abort();
  }, [name, n]);
  return {
    ...state,
    hasMore: state.next !== undefined && (state.items?.length ?? 0) < MAX_ROWS,
    searchFurther: () => setRequested({ name, n: n + 1 }),
  };
}

async function searchPages(
  input: Readonly<Record<string, unknown>>,
  from: string | undefined,
  set: (change: (before: State) => State) => void,
  over: AbortSignal,
): Promise<void> {
  let after = from;
  let found = 0;
  set((before) => ({ ...before, isSearching: true, problem: undefined }));
  try {
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await runCommand<FoundPage>(
        "requests.search",
        { ...input, limit: ROWS_PER_SEARCH, ...(after && { after }) },
        over,
      );
      after = answer.next;
      found += answer.items.length;
      const done = after === undefined || found >= ROWS_PER_SEARCH || page === MAX_PAGES - 1;
      set(({ items = [] }) => ({
        items: mergeRows(items, answer.items.map(toObservedRequest)),
        searchedBackTo: answer.searchedBackTo,
        next: after,
        isSearching: !done,
        problem: undefined,
      }));
      if (done) return;
    }
  } catch (error) {
    if (over.aborted) return;
    const problem =
      error instanceof CommandError ? error : new CommandError(0, { message: `${error}` });
    set((before) => ({ ...before, items: before.items ?? [], isSearching: false, problem }));
  }
}

/** Merges rows, because the calls of one request may be on two pages. */
function mergeRows(
  before: readonly ObservedRequest[],
  more: readonly ObservedRequest[],
): readonly ObservedRequest[] {
  const all = new Map(before.map((each) => [each.id, each]));
  for (const each of more) {
    const there = all.get(each.id);
    const calls = [...(there?.calls ?? []), ...(each.calls ?? [])];
    all.set(each.id, {
      ...(there ?? each),
      calls: [...new Map(calls.map((call) => [call.n, call])).values()].toSorted(
        (a, b) => a.n - b.n,
      ),
    });
  }
  return [...all.values()];
}

const OUTCOMES = {
  ok: "ok",
  refused: "client_error",
  failed: "upstream_error",
  canceled: "canceled",
} as const;

/** Converts a ledger entry to the form of a recent request. The ledger stores no HTTP status. */
function toObservedRequest({ status, calls, ...rest }: FoundLedgerRequest): ObservedRequest {
  const last = calls.at(-1);
  return {
    ...rest,
    status: 0,
    outcome: OUTCOMES[status],
    ...(status !== "ok" && last && { code: last.outcome }),
    ...(last && { served: `${last.provider}/${last.model}` }),
    ...(last?.ms?.firstToken !== undefined && { firstTokenMs: last.ms.firstToken }),
    ...(last?.ms && { ms: last.ms.total }),
    calls: calls.map((call) => ({
      ...call,
      startMs: 0,
      protocol: null,
      mode: "",
      ms: call.ms ?? { total: 0 },
    })),
  };
}

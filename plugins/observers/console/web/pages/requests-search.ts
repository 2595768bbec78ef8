// Requests of the whole ledger, the newest first: a page at a time, and further back by a button.
import { useEffect, useState } from "preact/hooks";
import { ask, Refusal } from "../ask.ts";
import type { Seen, SeenCall } from "../shapes.ts";

interface FoundCall extends Omit<SeenCall, "startMs" | "protocol" | "lane" | "fault" | "ms"> {
  readonly attempt: string;
  readonly outcome: string;
  readonly ms?: SeenCall["ms"];
}

interface FoundOne {
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
  readonly items: readonly FoundOne[];
  readonly next?: string;
  readonly reached: number;
}

export interface Searched {
  readonly items: readonly Seen[] | undefined;
  /** Everything from this moment on was searched. */
  readonly reached: number | undefined;
  readonly busy: boolean;
  /** There is more, further back. */
  readonly more: boolean;
  readonly problem: Refusal | undefined;
  further(): void;
}

interface State extends Pick<Searched, "items" | "reached" | "busy" | "problem"> {
  readonly next: string | undefined;
}

/** Rows that one search adds, and pages that it may take. A page ends after a moment, whether it has found anything or not. */
const WANTED = 50;
const PAGES = 20;
/** In the table at once. */
const MOST = 2_000;

const NEW: State = {
  items: undefined,
  reached: undefined,
  next: undefined,
  busy: true,
  problem: undefined,
};

/** `input`: undefined while nothing is searched for. */
export function useSearched(input: Readonly<Record<string, unknown>> | undefined): Searched {
  const [state, set] = useState<State>(NEW);
  const name = JSON.stringify(input);
  const [asked, again] = useState({ name, n: 0 });
  const n = asked.name === name ? asked.n : 0;
  useEffect(() => {
    if (!input) return undefined;
    const over = new AbortController();
    if (n === 0) set(NEW);
    void searching(input, n === 0 ? undefined : state.next, set, over.signal);
    return () => over.abort();
  }, [name, n]);
  return {
    ...state,
    more: state.next !== undefined && (state.items?.length ?? 0) < MOST,
    further: () => again({ name, n: n + 1 }),
  };
}

async function searching(
  input: Readonly<Record<string, unknown>>,
  from: string | undefined,
  set: (change: (before: State) => State) => void,
  over: AbortSignal,
): Promise<void> {
  let after = from;
  let found = 0;
  set((before) => ({ ...before, busy: true, problem: undefined }));
  try {
    for (let page = 0; page < PAGES; page++) {
      const answer = await ask<FoundPage>(
        "requests.search",
        { ...input, limit: WANTED, ...(after && { after }) },
        over,
      );
      after = answer.next;
      found += answer.items.length;
      const done = after === undefined || found >= WANTED || page === PAGES - 1;
      set(({ items = [] }) => ({
        items: merged(items, answer.items.map(seenOf)),
        reached: answer.reached,
        next: after,
        busy: !done,
        problem: undefined,
      }));
      if (done) return;
    }
  } catch (error) {
    if (over.aborted) return;
    const problem = error instanceof Refusal ? error : new Refusal(0, { message: `${error}` });
    set((before) => ({ ...before, items: before.items ?? [], busy: false, problem }));
  }
}

/** The calls of one request may be in two pages. */
function merged(before: readonly Seen[], more: readonly Seen[]): readonly Seen[] {
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

/** As a request that the gateway remembers. The ledger knows no status of HTTP. */
function seenOf({ status, calls, ...rest }: FoundOne): Seen {
  const last = calls.at(-1);
  return {
    ...rest,
    status: 0,
    outcome: OUTCOMES[status],
    ...(status !== "ok" && last && { code: last.outcome }),
    ...(last && { served: `${last.provider}/${last.model}` }),
    ...(last?.ms?.content !== undefined && { contentMs: last.ms.content }),
    ...(last?.ms && { ms: last.ms.total }),
    calls: calls.map((call) => ({
      ...call,
      startMs: 0,
      protocol: null,
      lane: "",
      ms: call.ms ?? { total: 0 },
    })),
  };
}

// Requests as they end: the last ones, and from then on each new one.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal } from "../ask.ts";
import type { Seen } from "../shapes.ts";

interface PageOf {
  readonly items: readonly Seen[];
  readonly next: number;
  readonly missed: number;
  readonly since: number;
}

/** In the table at once. */
const MOST = 400;
const WAIT_MS = 20_000;

export interface Followed {
  readonly items: readonly Seen[] | undefined;
  readonly missed: number;
  readonly since: number;
  readonly problem: Refusal | undefined;
}

/** The last ones, and from then on each as it ends: a question waits at the gateway until there is an answer. */
export function useFollowed(filter: Readonly<Record<string, unknown>>, live: boolean): Followed {
  const [state, set] = useState<Followed>({
    items: undefined,
    missed: 0,
    since: 0,
    problem: undefined,
  });
  const next = useRef<number>(undefined);
  useEffect(() => {
    next.current = undefined;
    set({ items: undefined, missed: 0, since: 0, problem: undefined });
  }, [filter]);
  useEffect(() => {
    if (!live) return undefined;
    const over = new AbortController();
    void following(filter, next, set, over.signal);
    return () => over.abort();
  }, [filter, live]);
  return state;
}

async function following(
  filter: Readonly<Record<string, unknown>>,
  next: { current: number | undefined },
  set: (change: (before: Followed) => Followed) => void,
  over: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!over.aborted) {
    if (document.hidden) {
      await new Promise((resolve) =>
        document.addEventListener("visibilitychange", resolve, { once: true }),
      );
      continue;
    }
    const from =
      next.current === undefined
        ? { last: 2_000, limit: MOST }
        : { after: next.current, waitMs: WAIT_MS, limit: MOST };
    try {
      const page = await ask<PageOf>("requests.list", { ...filter, ...from }, over);
      failures = 0;
      next.current = page.next;
      set((before) => ({
        items: [...page.items.toReversed(), ...(before.items ?? [])].slice(0, MOST),
        missed: before.missed + (before.items ? page.missed : 0),
        since: page.since,
        problem: undefined,
      }));
    } catch (error) {
      if (over.aborted) return;
      const problem = error instanceof Refusal ? error : new Refusal(0, { message: `${error}` });
      set((before) => ({ ...before, items: before.items ?? [], problem }));
      await new Promise((resolve) =>
        setTimeout(resolve, Math.min(1_000 * 2 ** failures++, 30_000)),
      );
    }
  }
}

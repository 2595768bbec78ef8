// Live list of requests: the most recent requests, and each new request as it ends.
import { useEffect, useRef, useState } from "preact/hooks";
import { runCommand, CommandError } from "../../admin-client.ts";
import type { ObservedRequest } from "../../api-types.ts";

interface FollowPage {
  readonly items: readonly ObservedRequest[];
  readonly next: number;
  readonly missed: number;
  readonly rememberedSince: number;
}

/** Maximum number of rows in the table. */
const MAX_ROWS = 400;
const LONG_POLL_MS = 20_000;

export interface FollowedRequests {
  readonly items: readonly ObservedRequest[] | undefined;
  readonly missed: number;
  readonly since: number;
  readonly problem: CommandError | undefined;
}

/**
 * Loads the most recent requests and then each new request by long polling: a poll waits at the
 * gateway until a request ends.
 */
export function useFollowedRequests(
  filter: Readonly<Record<string, unknown>>,
  live: boolean,
): FollowedRequests {
  const [state, set] = useState<FollowedRequests>({
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
    void pollRequests(filter, next, set, over.signal);
    return () => over.abort();
  }, [filter, live]);
  return state;
}

async function pollRequests(
  filter: Readonly<Record<string, unknown>>,
  next: { current: number | undefined },
  set: (change: (before: FollowedRequests) => FollowedRequests) => void,
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
        ? { last: 2_000, limit: MAX_ROWS }
        : { after: next.current, waitMs: LONG_POLL_MS, limit: MAX_ROWS };
    try {
      const page = await runCommand<FollowPage>("requests.list", { ...filter, ...from }, over);
      failures = 0;
      next.current = page.next;
      set((before) => ({
        items: [...page.items.toReversed(), ...(before.items ?? [])].slice(0, MAX_ROWS),
        missed: before.missed + (before.items ? page.missed : 0),
        since: page.rememberedSince,
        problem: undefined,
      }));
    } catch (error) {
      if (over.aborted) return;
      const problem =
        error instanceof CommandError ? error : new CommandError(0, { message: `${error}` });
      set((before) => ({ ...before, items: before.items ?? [], problem }));
      await new Promise((resolve) =>
        setTimeout(resolve, Math.min(1_000 * 2 ** failures++, 30_000)),
      );
    }
  }
}

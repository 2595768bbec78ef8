// What pages show of the gateway: asked once, or again and again while they are looked at. A new answer takes the place of the old
// one when it is there, so that no number jumps; what was seen before is shown at once when a page is opened again.
import { useEffect, useRef, useState } from "preact/hooks";
import { runCommand, CommandError } from "./admin-client.ts";
import { isAllowed } from "./permissions.ts";

export interface QueryState<T> {
  /** The newest that there is; undefined: none yet. */
  readonly value: T | undefined;
  /** Why there is no newer one. */
  readonly error: CommandError | undefined;
  readonly isLoading: boolean;
  /** The reader may not ask this, so nothing is asked. */
  readonly isDenied: boolean;
  refetch(): void;
}

const MAX_CACHED = 60;
const cache = new Map<string, unknown>();
function addToCache(name: string, value: unknown): void {
  cache.delete(name);
  cache.set(name, value);
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value!);
}
/** Of what a change may have made untrue. */
export const clearCache = (): void => cache.clear();

interface QueryOptions {
  /** Milliseconds from one answer to the next question. Absent: asked once. */
  readonly intervalMs?: number | undefined;
  /** Nothing is asked. */
  readonly isDisabled?: boolean | undefined;
}

/** After a failure it waits longer, a minute at most. */
const pollDelay = (every: number, failures: number) =>
  Math.min(every * 2 ** Math.min(failures, 6), 60_000);

export function useQuery<T>(
  command: string,
  input: Readonly<Record<string, unknown>> = {},
  { intervalMs, isDisabled = false }: QueryOptions = {},
): QueryState<T> {
  const name = `${command} ${JSON.stringify(input)}`;
  const denied = !isAllowed(command);
  const [state, set] = useState<{ name: string; value?: T; problem?: CommandError; busy: boolean }>(
    {
      name,
      busy: true,
    },
  );
  const again = useRef(() => {});
  useEffect(() => {
    if (isDisabled || denied) return undefined;
    const over = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let asking = false;
    const next = () => {
      clearTimeout(timer);
      if (intervalMs === undefined || over.signal.aborted || document.hidden) return;
      timer = setTimeout(once, pollDelay(intervalMs, failures));
    };
    async function once(): Promise<void> {
      if (asking || over.signal.aborted) return;
      asking = true;
      set((before) => ({ ...before, busy: true }));
      try {
        const value = await runCommand<T>(command, input, over.signal);
        failures = 0;
        addToCache(name, value);
        set({ name, value, busy: false });
      } catch (error) {
        if (over.signal.aborted) return;
        failures++;
        const problem =
          error instanceof CommandError ? error : new CommandError(0, { message: `${error}` });
        set((before) => ({ ...before, name, problem, busy: false }));
      } finally {
        asking = false;
        next();
      }
    }
    again.current = () => void once();
    const shown = () => {
      if (document.hidden) clearTimeout(timer);
      else if (intervalMs !== undefined) void once();
    };
    document.addEventListener("visibilitychange", shown);
    void once();
    return () => {
      over.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [name, intervalMs, isDisabled, denied]);
  // The one before stays until its successor is there, also when other things are asked for.
  const value =
    state.name === name ? (state.value ?? (cache.get(name) as T)) : (cache.get(name) as T);
  return {
    value: value ?? state.value,
    error: state.name === name ? state.problem : undefined,
    isLoading: state.busy && !denied,
    isDenied: denied,
    refetch: () => again.current(),
  };
}

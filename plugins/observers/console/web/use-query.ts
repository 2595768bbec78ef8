// Hook that loads data from the gateway, once or periodically while the page is visible. A new
// result replaces the previous one when it has arrived, so that numbers do not flicker. If a page
// is opened again, cached results are shown immediately.
import { useEffect, useRef, useState } from "preact/hooks";
import { runCommand, CommandError } from "./admin-client.ts";
import { isAllowed } from "./session.ts";

export interface QueryState<T> {
  /** The latest result. Undefined before the first result. */
  readonly value: T | undefined;
  /** Reason why no newer result is available. */
  readonly error: CommandError | undefined;
  readonly isLoading: boolean;
  /** Whether the user may not run the command. No request is sent in that case. */
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
/** Discards all cached results, because a change may have made them outdated. */
export const clearCache = (): void => cache.clear();

interface QueryOptions {
  /** Milliseconds between a response and the next request. If unset, the command runs once. */
  readonly intervalMs?: number | undefined;
  /** Whether requests are suppressed. */
  readonly isDisabled?: boolean | undefined;
}

/** Returns the delay until the next request. The delay grows after failures, up to 60 s. */
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
  // The previous result stays visible until the next result arrives, even if the input has changed.
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

// Hook that runs a command when the user presses a button, one run at a time, and returns its
// result or its error.

type Input = Readonly<Record<string, unknown>>;

interface CommandState<T> {
  readonly value: T | undefined;
  readonly error: CommandError | undefined;
  readonly isRunning: boolean;
  /** Resolves with the result, or with undefined if the command failed or the page was closed. */
  run(input?: Input): Promise<T | undefined>;
  clear(): void;
}

interface State<T> {
  readonly value?: T;
  readonly problem?: CommandError;
  readonly busy: boolean;
}

/**
 * Runs commands. `changes`: whether the command changes data, so that cached query results must be
 * discarded.
 */
export function useCommand<T>(
  command: string,
  { changes = true }: { changes?: boolean } = {},
): CommandState<T> {
  const [state, set] = useState<State<T>>({ busy: false });
  const isUnmounted = useRef(false);
  useEffect(() => () => void (isUnmounted.current = true), []);
  return {
    value: state.value,
    error: state.problem,
    isRunning: state.busy,
    clear: () => set({ busy: false }),
    async run(input = {}) {
      set(({ value }) => ({ busy: true, ...(value !== undefined && { value }) }));
      try {
        const value = await runCommand<T>(command, input);
        if (changes) clearCache();
        if (!isUnmounted.current) set({ value, busy: false });
        return isUnmounted.current ? undefined : value;
      } catch (error) {
        const problem =
          error instanceof CommandError ? error : new CommandError(0, { message: `${error}` });
        if (!isUnmounted.current) set({ problem, busy: false });
        return undefined;
      }
    },
  };
}

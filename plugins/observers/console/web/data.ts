// What pages show of the gateway: asked once, or again and again while they are looked at. A new answer takes the place of the old
// one when it is there, so that no number jumps; what was seen before is shown at once when a page is opened again.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal } from "./ask.ts";
import { may } from "./rights.ts";

export interface Answer<T> {
  /** The newest that there is; undefined: none yet. */
  readonly value: T | undefined;
  /** Why there is no newer one. */
  readonly problem: Refusal | undefined;
  readonly busy: boolean;
  /** The reader may not ask this, so nothing is asked. */
  readonly denied: boolean;
  again(): void;
}

const KEPT = 60;
const seen = new Map<string, unknown>();
function keep(name: string, value: unknown): void {
  seen.delete(name);
  seen.set(name, value);
  if (seen.size > KEPT) seen.delete(seen.keys().next().value!);
}
/** Of what a change may have made untrue. */
export const forget = (): void => seen.clear();

interface Asking {
  /** Milliseconds from one answer to the next question. Absent: asked once. */
  readonly every?: number | undefined;
  /** Nothing is asked. */
  readonly off?: boolean | undefined;
}

/** After a failure it waits longer, a minute at most. */
const waitOf = (every: number, failures: number) =>
  Math.min(every * 2 ** Math.min(failures, 6), 60_000);

export function useAsk<T>(
  command: string,
  input: Readonly<Record<string, unknown>> = {},
  { every, off = false }: Asking = {},
): Answer<T> {
  const name = `${command} ${JSON.stringify(input)}`;
  const denied = !may(command);
  const [state, set] = useState<{ name: string; value?: T; problem?: Refusal; busy: boolean }>({
    name,
    busy: true,
  });
  const again = useRef(() => {});
  useEffect(() => {
    if (off || denied) return undefined;
    const over = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let asking = false;
    const next = () => {
      clearTimeout(timer);
      if (every === undefined || over.signal.aborted || document.hidden) return;
      timer = setTimeout(once, waitOf(every, failures));
    };
    async function once(): Promise<void> {
      if (asking || over.signal.aborted) return;
      asking = true;
      set((before) => ({ ...before, busy: true }));
      try {
        const value = await ask<T>(command, input, over.signal);
        failures = 0;
        keep(name, value);
        set({ name, value, busy: false });
      } catch (error) {
        if (over.signal.aborted) return;
        failures++;
        const problem = error instanceof Refusal ? error : new Refusal(0, { message: `${error}` });
        set((before) => ({ ...before, name, problem, busy: false }));
      } finally {
        asking = false;
        next();
      }
    }
    again.current = () => void once();
    const shown = () => {
      if (document.hidden) clearTimeout(timer);
      else if (every !== undefined) void once();
    };
    document.addEventListener("visibilitychange", shown);
    void once();
    return () => {
      over.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [name, every, off, denied]);
  // The one before stays until its successor is there, also when other things are asked for.
  const value =
    state.name === name ? (state.value ?? (seen.get(name) as T)) : (seen.get(name) as T);
  return {
    value: value ?? state.value,
    problem: state.name === name ? state.problem : undefined,
    busy: state.busy && !denied,
    denied,
    again: () => again.current(),
  };
}

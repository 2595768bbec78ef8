// What a page does when a button is pressed: one thing at a time, with its answer or the reason why there is none.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal } from "./ask.ts";
import { forget } from "./data.ts";

type Input = Readonly<Record<string, unknown>>;

export interface Act<T> {
  readonly value: T | undefined;
  readonly problem: Refusal | undefined;
  readonly busy: boolean;
  /** Resolves with the answer; undefined: it was refused, or the page is gone. */
  run(input?: Input): Promise<T | undefined>;
  clear(): void;
}

interface State<T> {
  readonly value?: T;
  readonly problem?: Refusal;
  readonly busy: boolean;
}

/** `changes`: what was seen before may be untrue afterwards. */
export function useAct<T>(command: string, { changes = true }: { changes?: boolean } = {}): Act<T> {
  const [state, set] = useState<State<T>>({ busy: false });
  const gone = useRef(false);
  useEffect(() => () => void (gone.current = true), []);
  return {
    value: state.value,
    problem: state.problem,
    busy: state.busy,
    clear: () => set({ busy: false }),
    async run(input = {}) {
      set(({ value }) => ({ busy: true, ...(value !== undefined && { value }) }));
      try {
        const value = await ask<T>(command, input);
        if (changes) forget();
        if (!gone.current) set({ value, busy: false });
        return gone.current ? undefined : value;
      } catch (error) {
        const problem = error instanceof Refusal ? error : new Refusal(0, { message: `${error}` });
        if (!gone.current) set({ problem, busy: false });
        return undefined;
      }
    },
  };
}

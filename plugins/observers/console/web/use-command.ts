// Hook that runs a command when the reader presses a button, one run at a time, and returns its
// result or its error.
import { useEffect, useRef, useState } from "preact/hooks";
import { runCommand, CommandError } from "./admin-client.ts";
import { clearCache } from "./use-query.ts";

type Input = Readonly<Record<string, unknown>>;

export interface CommandState<T> {
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

/** Runs commands. `changes`: the command changes data, so cached query results are discarded. */
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

/**
 * A check: a name, and a function that resolves if the check passes, and throws a description of
 * the problem if it fails.
 */
export interface Check {
  readonly name: string;
  run(): Promise<void>;
}

/** Creates a check. If `run` throws or rejects, the runner that calls it reports a failed test. */
export const createCheck = (name: string, run: () => unknown): Check => ({
  name,
  run: async () => void (await run()),
});

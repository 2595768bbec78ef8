/** A law as a name and a function: it resolves when the law holds and throws what is wrong when it does not. */
export interface Check {
  readonly name: string;
  run(): Promise<void>;
}

/** A law of that name. `run` may throw or reject; the runner that calls it then has a failed test. */
export const createCheck = (name: string, run: () => unknown): Check => ({
  name,
  run: async () => void (await run()),
});

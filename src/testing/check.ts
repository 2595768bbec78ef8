/** A law as a name and a function: it resolves when the law holds and throws what is wrong when it does not. */
export interface Check {
  readonly name: string;
  run(): Promise<void>;
}

export const check = (name: string, run: () => unknown): Check => ({
  name,
  run: async () => void (await run()),
});

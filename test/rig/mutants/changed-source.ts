// A gateway with one changed line of source: the checker of that line's purpose must find it.
import { join } from "node:path";

export interface ChangedSource {
  /** Path in `src`. A path that starts with `plugins/` belongs to a built-in plugin. */
  readonly in: string;
  readonly line: string;
  readonly instead: string;
}

/** For a gateway's environment. `preloads`: other modules to preload. */
export function preloaded(
  plant: ChangedSource | undefined,
  ...preloads: readonly string[]
): Record<string, string> {
  const all = plant ? [...preloads, join(import.meta.dirname, "changed-source.mjs")] : preloads;
  return {
    NODE_OPTIONS: all.map((path) => `--import=${path}`).join(" "),
    ...(plant && { CHANGED_SOURCE: JSON.stringify(plant) }),
  };
}

/** Name on the command line. Empty: without a defect. */
export function mutantOf<M extends object>(mutants: M, name = ""): keyof M | undefined {
  if (name === "") return undefined;
  if (!Object.hasOwn(mutants, name))
    throw new Error(`Unknown mutant "${name}". Available: ${Object.keys(mutants).join(", ")}`);
  return name as keyof M;
}

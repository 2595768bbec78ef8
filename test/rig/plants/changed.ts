// A gateway with one line of its source changed: what that line is there for must be missed by its judge.
import { join } from "node:path";

export interface ChangedSource {
  /** Below `src`. */
  readonly in: string;
  readonly line: string;
  readonly instead: string;
}

/** For a gateway's environment; `preloads`: what else is loaded before it. */
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

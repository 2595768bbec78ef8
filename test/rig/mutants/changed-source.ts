// A gateway with one line of its source changed: what that line is there for must be missed by its judge.
import { join } from "node:path";

export interface ChangedSource {
  /** Below `src`; one that begins with `plugins/` is a built-in plugin's. */
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

/** What a command line names; nothing: a sound one. */
export function mutantOf<M extends object>(mutants: M, name = ""): keyof M | undefined {
  if (name === "") return undefined;
  if (!Object.hasOwn(mutants, name))
    throw new Error(`No mutant is named ${name}. There are: ${Object.keys(mutants).join(", ")}`);
  return name as keyof M;
}

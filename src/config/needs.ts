// What a plugin has declared that it needs of the machine and the network, with the operator's options put in.
import { dirname, resolve } from "node:path";
import type { Plugin } from "../plugin/plugin.ts";
import { originsOf } from "./origins.ts";

export interface DeclaredNeeds {
  /** Reached as they are: the operator's own options name them. */
  readonly origins: ReadonlySet<string>;
  readonly metadata: boolean;
  readonly env: readonly string[];
  /** Absolute. */
  readonly files: readonly string[];
  /** Where relative paths begin: the folder of gateway.yaml. */
  readonly folder: string;
}

/** Where a plugin would be mounted. */
export interface NeedsPlace {
  /** gateway.yaml. */
  readonly file: string;
  /** Of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws for what is no address or no path, and where a function asks for a variable that it does not name. */
export function needsOf(
  definition: Pick<Plugin<any>, "options" | "needs">,
  options: Readonly<Record<string, unknown>>,
  { file, env }: NeedsPlace,
): DeclaredNeeds {
  const { needs } = definition;
  const folder = dirname(file);
  const files = typeof needs?.files === "function" ? needs.files(options) : (needs?.files ?? []);
  for (const path of files)
    if (typeof path !== "string" || path === "")
      throw new Error(`needs.files has ${JSON.stringify(path)}, which is no path`);
  return {
    origins: originsOf(definition, options, env),
    metadata: needs?.metadata === true,
    env: needs?.env ?? [],
    files: files.map((path) => resolve(folder, path)),
    folder,
  };
}

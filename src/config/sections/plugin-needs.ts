// What a plugin has declared that it needs of the machine and the network, with the operator's options put in.
import { dirname, resolve } from "node:path";
import type { Plugin } from "../../plugin/plugin.ts";
import { listAllowedOrigins } from "./allowed-origins.ts";

export interface DeclaredNeeds {
  /** Reached as they are: the operator's own options name them. */
  readonly origins: ReadonlySet<string>;
  readonly usesMetadataService: boolean;
  readonly env: readonly string[];
  /** Absolute. */
  readonly files: readonly string[];
  /** Where relative paths begin: the folder of gateway.yaml. */
  readonly baseDir: string;
}

/** Where a plugin would be mounted. */
export interface NeedsContext {
  /** gateway.yaml. */
  readonly configFile: string;
  /** Of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws for what is no address or no path, and where a function asks for a variable that it does not name. */
export function resolveNeeds(
  definition: Pick<Plugin<any>, "options" | "needs">,
  options: Readonly<Record<string, unknown>>,
  { configFile, env }: NeedsContext,
): DeclaredNeeds {
  const { needs } = definition;
  const folder = dirname(configFile);
  const files = typeof needs?.files === "function" ? needs.files(options) : (needs?.files ?? []);
  for (const path of files)
    if (typeof path !== "string" || path === "")
      throw new Error(`needs.files has ${JSON.stringify(path)}, which is no path`);
  return {
    origins: listAllowedOrigins(definition, options, env),
    usesMetadataService: needs?.metadata === true,
    env: needs?.env ?? [],
    files: files.map((path) => resolve(folder, path)),
    baseDir: folder,
  };
}

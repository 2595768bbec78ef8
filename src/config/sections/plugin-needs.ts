// Resolves a plugin's `needs`, its access to the machine and the network, with the operator's
// options.
import { dirname, resolve } from "node:path";
import type { Plugin } from "../../plugin/plugin.ts";
import { listAllowedOrigins } from "./allowed-origins.ts";

export interface DeclaredNeeds {
  /**
   * Origins that may be connected to without restriction, because the operator's options name them.
   */
  readonly origins: ReadonlySet<string>;
  readonly usesMetadataService: boolean;
  readonly env: readonly string[];
  /** Absolute paths. */
  readonly files: readonly string[];
  /** Base of relative paths: the folder of gateway.yaml. */
  readonly baseDir: string;
}

/** Config file and environment that declared needs are resolved with. */
export interface NeedsContext {
  /** Path of gateway.yaml. */
  readonly configFile: string;
  /** Environment variables of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns the resolved needs. Throws if an origin or path is invalid, or if a function reads a
 * variable that `needs.env` does not name.
 */
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
      throw new Error(`needs.files contains ${JSON.stringify(path)}, which is not a valid path`);
  return {
    origins: listAllowedOrigins(definition, options, env),
    usesMetadataService: needs?.metadata === true,
    env: needs?.env ?? [],
    files: files.map((path) => resolve(folder, path)),
    baseDir: folder,
  };
}

// Resolves a plugin's `needs`, its access to the machine and the network, with the operator's
// options.
import { dirname, resolve } from "node:path";
import type { Plugin } from "../../plugin/plugin.ts";
import { type Schema, getValidator } from "../schema-dialect.ts";
import { valueAt } from "../source/config-tree.ts";

export interface DeclaredNeeds {
  /** Origins that the operator's options contain and that may be reached without restriction. */
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

// Determines the origins that an operator configured for a plugin. The plugin may connect to them,
// even on a private network.

/** Returns the origin of the HTTP address at a pointer, or undefined if there is none. */
export function readOriginAt(value: unknown, pointer: string): string | undefined {
  const text = valueAt(value, pointer);
  return typeof text === "string" ? parseOrigin(text) : undefined;
}

function parseOrigin(text: string): string | undefined {
  const url = URL.parse(text);
  return url && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

/**
 * Returns the origins in options that are marked `x-origin`, and those in the definition's `needs`.
 * Throws if one is not an address.
 */
function listAllowedOrigins(
  { options: schema, needs }: Pick<Plugin<any>, "options" | "needs">,
  options: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): ReadonlySet<string> {
  const marked = schema ? getValidator(schema as Schema)(options).origins : [];
  const declared = (name: string) => {
    if (!needs?.env?.includes(name)) throw new Error(`needs.env does not include ${name}`);
    return env[name];
  };
  const named =
    typeof needs?.origins === "function" ? needs.origins(options, declared) : needs?.origins;
  const origins = new Set<string>();
  for (const pointer of marked) origins.add(readOriginAt(options, pointer) ?? "");
  for (const each of named ?? []) {
    const origin = parseOrigin(each);
    if (origin === undefined)
      throw new Error(
        `needs.origins contains ${JSON.stringify(each)}, which is not a valid origin`,
      );
    origins.add(origin);
  }
  origins.delete("");
  return origins;
}

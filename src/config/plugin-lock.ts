// plugins.lock.yaml, next to gateway.yaml: the packages that an operator accepted, with their state
// at that time.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse, stringify } from "yaml";
import { isMapping } from "./source/config-tree.ts";
import type { PluginTrust } from "./sections/plugin-trust.ts";

/** A package as it was accepted. */
export interface LockedPlugin {
  readonly version: string;
  /**
   * Integrity hash of the tarball, as in npm's own lock file. Unset if the package is not from a
   * registry.
   */
  readonly integrity?: string | undefined;
  /** Hash of all files of the package and its dependencies. */
  readonly tree: string;
  /** Hashes by package, so that a change can be attributed. */
  readonly packages: Readonly<Record<string, string>>;
  /** Definitions of its plugins, by export path. */
  readonly plugins: Readonly<Record<string, LockedDefinition>>;
}

export interface LockedDefinition {
  readonly kind: string;
  readonly api: number;
  /** Needs beyond the public internet, as text. */
  readonly needs: readonly string[];
  /** Destination of request content. Unset for kinds of plugins that do not declare it. */
  readonly sends?: string | undefined;
}

export type PluginLock = ReadonlyMap<string, LockedPlugin>;

const FILE_HEADER =
  "# Written by `tollgate plugin add`. The gateway rejects a package whose content " +
  "differs from this file.\n";

export const lockFilePath = (configFile: string): string =>
  join(dirname(configFile), "plugins.lock.yaml");

/**
 * Returns undefined if no lock file exists. Throws if it is invalid, so that no plugin is taken for
 * accepted.
 */
export function readPluginLock(configFile: string): PluginLock | undefined {
  let text: string;
  try {
    text = readFileSync(lockFilePath(configFile), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const parsed: unknown = parse(text, { maxAliasCount: 0 });
  const plugins = isMapping(parsed) ? parsed["plugins"] : undefined;
  if (!isMapping(plugins)) throw new Error('missing key "plugins"');
  const entries = Object.entries(plugins).map(([name, one]): [string, LockedPlugin] => {
    if (!isMapping(one) || typeof one["tree"] !== "string" || typeof one["version"] !== "string")
      throw new Error(`the entry of ${name} has no version or no tree`);
    return [name, one as unknown as LockedPlugin];
  });
  return new Map(entries);
}

export const formatPluginLock = (lock: PluginLock): string =>
  FILE_HEADER +
  stringify({ plugins: Object.fromEntries([...lock].sort(([a], [b]) => (a < b ? -1 : 1))) });

/** Reads `plugins:`, even if the rest of the file has errors. */
export function readPluginTrust(
  root: Readonly<Record<string, unknown>>,
  file: string,
): PluginTrust {
  const raw = isMapping(root["plugins"]) ? root["plugins"] : {};
  const lock = (["required", "warn", "off"] as const).find((one) => one === raw["lock"]);
  const allow = Array.isArray(raw["allow"])
    ? raw["allow"].filter((one) => typeof one === "string")
    : undefined;
  return { configFile: file, lock, allowedPackages: allow };
}

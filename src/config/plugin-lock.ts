// plugins.lock.yaml, beside gateway.yaml: which packages an operator has accepted, and what each of them was then.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse, stringify } from "yaml";
import { isMapping } from "./source/config-tree.ts";
import type { PluginTrust } from "./sections/plugin-trust.ts";

/** A package as it was accepted. */
export interface LockedPlugin {
  readonly version: string;
  /** Of the tarball, as npm's own lock has it; absent for what came from no registry. */
  readonly integrity?: string | undefined;
  /** Of all its files, and of those of what it depends on. */
  readonly tree: string;
  /** Package by package, so that a change has a name. */
  readonly packages: Readonly<Record<string, string>>;
  /** What it said of itself, by the path under which it is exported. */
  readonly plugins: Readonly<Record<string, LockedDefinition>>;
}

export interface LockedDefinition {
  readonly kind: string;
  readonly api: number;
  /** What it reaches beyond the public internet, in words. */
  readonly needs: readonly string[];
  /** Where it sends what people wrote; absent for kinds that do not say. */
  readonly sends?: string | undefined;
}

export type PluginLock = ReadonlyMap<string, LockedPlugin>;

const FILE_HEADER =
  "# Written by tollgate plugin add. A gateway refuses a package that is not, byte for byte, what stands here.\n";

export const lockFilePath = (configFile: string): string =>
  join(dirname(configFile), "plugins.lock.yaml");

/** Undefined: there is none. Throws where it cannot be read as one: no plugin is taken for accepted then. */
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
  if (!isMapping(plugins)) throw new Error("it has no `plugins:`");
  const entries = Object.entries(plugins).map(([name, one]): [string, LockedPlugin] => {
    if (!isMapping(one) || typeof one["tree"] !== "string" || typeof one["version"] !== "string")
      throw new Error(`what it says of ${name} has no version or no tree`);
    return [name, one as unknown as LockedPlugin];
  });
  return new Map(entries);
}

export const formatPluginLock = (lock: PluginLock): string =>
  FILE_HEADER +
  stringify({ plugins: Object.fromEntries([...lock].sort(([a], [b]) => (a < b ? -1 : 1))) });

/** What `plugins:` says, however wrong the rest of the file is. */
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

// Reads and writes the lock file next to gateway.yaml.
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  lockFilePath,
  formatPluginLock,
  readPluginLock,
  type LockedPlugin,
} from "../../config/plugin-lock.ts";
import { fail } from "../../model/error.ts";
import type { CliInput } from "../support/command.ts";
import { configFile } from "../support/load-config.ts";

export interface LockFile {
  /** Folder of gateway.yaml, whether or not the file exists. Packages are installed there. */
  readonly folder: string;
  readonly file: string;
  readonly lock: Map<string, LockedPlugin>;
  save(): void;
}

export function openLockFile(given: CliInput): LockFile {
  const config = configFile(given) ?? resolve("gateway.yaml");
  const file = lockFilePath(config);
  let lock: Map<string, LockedPlugin>;
  try {
    lock = new Map(readPluginLock(config));
  } catch (error) {
    return fail("invalid", `Cannot use ${file}: ${(error as Error).message}`);
  }
  return {
    folder: dirname(config),
    file,
    lock,
    // Replaces the file atomically, because a gateway may start in the meantime.
    save() {
      writeFileSync(`${file}.new`, formatPluginLock(lock));
      renameSync(`${file}.new`, file);
    },
  };
}

/** Returns the folder where npm installed a package. */
export function findInstalled(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const place = join(at, "node_modules", name);
    if (existsSync(join(place, "package.json"))) return place;
    if (dirname(at) === at) return undefined;
  }
}

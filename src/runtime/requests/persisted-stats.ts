// Persists request counts and outages across restarts, in one file each in the state directory. The
// files are rewritten once per minute.
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../lib/log/log.ts";
import type { Outages } from "./outages.ts";
import type { RequestStats } from "./request-stats.ts";

interface Persistable {
  serialize(): Buffer;
  restore(bytes: Buffer): void;
}

/** Maximum file size, in bytes. Both files are always smaller. */
const MAX_FILE_BYTES = 64 << 20;

export const readStats = (stateDir: string, stats: RequestStats, log: Log): Promise<void> =>
  readFileInto(join(stateDir, "stats"), stats, log);
export const readOutages = (stateDir: string, outages: Outages, log: Log): Promise<void> =>
  readFileInto(join(stateDir, "outages"), outages, log);
export const writeStats = (stateDir: string, stats: RequestStats): Promise<void> =>
  writeFileOf(join(stateDir, "stats"), stats);
export const writeOutages = (stateDir: string, outages: Outages): Promise<void> =>
  writeFileOf(join(stateDir, "outages"), outages);

/**
 * Reads a file. A damaged file, or one of another version, is left unchanged, and counting starts
 * at zero.
 */
async function readFileInto(path: string, into: Persistable, log: Log): Promise<void> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > MAX_FILE_BYTES) throw new RangeError("The file is too large.");
    into.restore(bytes);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === "ENOENT") return;
    log.warn({ path, err }, "saved request counts not readable, counting restarted");
  }
}

async function writeFileOf(path: string, kept: Persistable): Promise<void> {
  const half = `${path}.${process.pid}.half`;
  try {
    const file = await open(half, "w", 0o600);
    try {
      await file.writeFile(kept.serialize());
    } finally {
      await file.close();
    }
    await rename(half, path);
  } catch (error) {
    await rm(half, { force: true });
    throw error;
  }
}

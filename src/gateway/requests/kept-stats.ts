// The counts and outages of an earlier process: a file each in the state directory, rewritten once a minute.
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../lib/log.ts";
import type { Outages } from "./outages.ts";
import type { Stats } from "./stats.ts";

interface KeptCounts {
  written(): Buffer;
  restore(bytes: Buffer): void;
}

/** More than either file may ever have. */
const MOST_BYTES = 64 << 20;

export const readStats = (stateDir: string, stats: Stats, log: Log): Promise<void> =>
  read(join(stateDir, "stats"), stats, log);
export const readOutages = (stateDir: string, outages: Outages, log: Log): Promise<void> =>
  read(join(stateDir, "outages"), outages, log);
export const writeStats = (stateDir: string, stats: Stats): Promise<void> =>
  write(join(stateDir, "stats"), stats);
export const writeOutages = (stateDir: string, outages: Outages): Promise<void> =>
  write(join(stateDir, "outages"), outages);

/** A file that is damaged or of another version is left as it is: counting starts from zero. */
async function read(path: string, into: KeptCounts, log: Log): Promise<void> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > MOST_BYTES) throw new RangeError("It is too large.");
    into.restore(bytes);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === "ENOENT") return;
    log.warn({ path, err }, "the counts of earlier requests cannot be read; counting begins anew");
  }
}

async function write(path: string, kept: KeptCounts): Promise<void> {
  const half = `${path}.${process.pid}.half`;
  try {
    const file = await open(half, "w", 0o600);
    try {
      await file.writeFile(kept.written());
    } finally {
      await file.close();
    }
    await rename(half, path);
  } catch (error) {
    await rm(half, { force: true });
    throw error;
  }
}

// The counts of an earlier process: one file in the state folder, written anew once a minute.
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../lib/log.ts";
import type { Stats } from "./stats.ts";

const NAME = "stats";
/** More than it may ever have. */
const MOST_BYTES = 64 << 20;

/** What is no such file, or one of another version, is left behind: counts begin anew. */
export async function readStats(stateDir: string, stats: Stats, log: Log): Promise<void> {
  const path = join(stateDir, NAME);
  try {
    const bytes = await readFile(path);
    if (bytes.length > MOST_BYTES) throw new RangeError("It is too large.");
    stats.restore(bytes);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === "ENOENT") return;
    log.warn({ path, err }, "the counts of earlier requests cannot be read; counting begins anew");
  }
}

export async function writeStats(stateDir: string, stats: Stats): Promise<void> {
  const path = join(stateDir, NAME);
  const half = `${path}.${process.pid}.half`;
  try {
    const file = await open(half, "w", 0o600);
    try {
      await file.writeFile(stats.written());
    } finally {
      await file.close();
    }
    await rename(half, path);
  } catch (error) {
    await rm(half, { force: true });
    throw error;
  }
}

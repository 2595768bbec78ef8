// Keeps the history of finished requests: the most recent requests, counts and durations of all
// requests, and outages of providers. It receives records in the primary process, like an observer.
import type { Log } from "../../lib/log/log.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { RequestRecord } from "../../plugin/observer.ts";
import type { MountedObserver } from "../observers/observer-subscriber.ts";
import { Outages } from "./outages.ts";
import { RequestRing } from "./request-ring.ts";
import { RequestStats } from "./request-stats.ts";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

const SAVE_INTERVAL_MS = 60_000;

export interface RequestHistory {
  readonly recentRequests: RequestRing;
  readonly requestStats: RequestStats;
  readonly outages: Outages;
  /** Observer that receives the records. */
  readonly observer: MountedObserver;
  /**
   * Writes the stats once more and stops writing, because another process takes over. If the
   * takeover fails, `resumePersisting` continues to write.
   */
  stopPersisting(): Promise<void>;
  resumePersisting(): void;
}

export async function createRequestHistory(of: {
  readonly most: number;
  readonly stateDir: string;
  readonly log: Log;
  readonly scope: LifetimeScope;
}): Promise<RequestHistory> {
  const { stateDir, log, scope } = of;
  const ring = new RequestRing(of.most);
  const stats = new RequestStats();
  const outages = new Outages();
  await readStats(stateDir, stats, log);
  await readOutages(stateDir, outages, log);
  let saved = ring.count;
  let savedOutages = 0;
  let ceded = false;
  const save = async () => {
    if (ceded) return;
    if (outages.version !== savedOutages) {
      savedOutages = outages.version;
      await writeOutages(stateDir, outages);
    }
    if (ring.count === saved) return;
    saved = ring.count;
    await writeStats(stateDir, stats);
  };
  const failed = (err: unknown) => log.error({ err }, "saving request counts failed");
  scope.every(SAVE_INTERVAL_MS, save, failed);
  scope.defer(() => save().catch(failed));
  return {
    recentRequests: ring,
    requestStats: stats,
    outages,
    async stopPersisting() {
      await save().catch(failed);
      ceded = true;
    },
    resumePersisting: () => void (ceded = false),
    observer: {
      id: "gateway",
      sends: "nowhere",
      observer: {
        onRequests(batch: readonly RequestRecord[]) {
          if (ring.capacity === 0) return;
          ring.add(batch);
          stats.add(batch);
        },
        onRejected: (batch) => ring.add(batch),
        onEvent: (notice) => outages.onEvent(notice),
      },
    },
  };
}

// Persists request counts and outages across restarts, in one file each in the state directory. The
// files are rewritten once per minute.

interface Persistable {
  serialize(): Buffer;
  restore(bytes: Buffer): void;
}

/** Maximum file size, in bytes. Both files are always smaller than this size. */
const MAX_FILE_BYTES = 64 << 20;

const readStats = (stateDir: string, stats: RequestStats, log: Log): Promise<void> =>
  readFileInto(join(stateDir, "stats"), stats, log);
const readOutages = (stateDir: string, outages: Outages, log: Log): Promise<void> =>
  readFileInto(join(stateDir, "outages"), outages, log);
export const writeStats = (stateDir: string, stats: RequestStats): Promise<void> =>
  writeFileOf(join(stateDir, "stats"), stats);
export const writeOutages = (stateDir: string, outages: Outages): Promise<void> =>
  writeFileOf(join(stateDir, "outages"), outages);

/**
 * Reads a file. A damaged file, or a file of another version, is left unchanged, and counting
 * starts at zero.
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

// What the gateway remembers of requests that are over: the last ones, counts and times of all, and when providers were in cooldown. It
// receives them as an observer does, in the primary process.
import type { Log } from "../../lib/log.ts";
import type { Scope } from "../../lib/scope.ts";
import type { RequestRecord } from "../../plugin/observer.ts";
import type { MountedObserver } from "../observers/subscriber.ts";
import { readOutages, readStats, writeOutages, writeStats } from "./kept-stats.ts";
import { Outages } from "./outages.ts";
import { RequestRing } from "./ring.ts";
import { Stats } from "./stats.ts";

const SAVE_MS = 60_000;

export interface Remembered {
  readonly ring: RequestRing;
  readonly stats: Stats;
  readonly outages: Outages;
  /** How it hears of them. */
  readonly ear: MountedObserver;
  /** Its counts are another process's from now on: written down once more, and not again unless that comes to nothing. */
  cede(): Promise<void>;
  keep(): void;
}

export async function remember(of: {
  readonly most: number;
  readonly stateDir: string;
  readonly log: Log;
  readonly scope: Scope;
}): Promise<Remembered> {
  const { stateDir, log, scope } = of;
  const ring = new RequestRing(of.most);
  const stats = new Stats();
  const outages = new Outages();
  await readStats(stateDir, stats, log);
  await readOutages(stateDir, outages, log);
  let saved = ring.count;
  let savedOutages = 0;
  let ceded = false;
  const save = async () => {
    if (ceded) return;
    if (outages.changes !== savedOutages) {
      savedOutages = outages.changes;
      await writeOutages(stateDir, outages);
    }
    if (ring.count === saved) return;
    saved = ring.count;
    await writeStats(stateDir, stats);
  };
  const failed = (err: unknown) =>
    log.error({ err }, "counts of requests could not be written down");
  scope.every(SAVE_MS, save, failed);
  scope.defer(() => save().catch(failed));
  return {
    ring,
    stats,
    outages,
    async cede() {
      await save().catch(failed);
      ceded = true;
    },
    keep: () => void (ceded = false),
    ear: {
      id: "gateway",
      sends: "nowhere",
      observer: {
        seen(batch: readonly RequestRecord[]) {
          if (ring.most === 0) return;
          ring.add(batch);
          stats.add(batch);
        },
        turnedAway: (batch) => ring.add(batch),
        told: (notice) => outages.told(notice),
      },
    },
  };
}

// Collects the live stats of this process.
import type { Services } from "../services.ts";
import { EventLoopDelay } from "./event-loop-delay.ts";
import { GcStats } from "./gc-stats.ts";
import { sortByEnd, type LocalStats } from "./sum-stats.ts";
import type { GenerationSlot } from "../generation/generation-slot.ts";
import { listUnreachablePlugins } from "./unreachable-plugins.ts";
import { statSync } from "node:fs";

/**
 * Returns the number of open files and sockets. Listing thousands of entries would cost more than
 * the measurement is worth, and Linux reports the number as the size of the directory.
 */
function countOpenFiles(): number | undefined {
  const size = statSync("/proc/self/fd", { throwIfNoEntry: false })?.size ?? 0;
  return size > 0 ? size : undefined;
}

type StatsServices = Pick<
  Services,
  "targetHealth" | "pools" | "ledgerQueue" | "rejections" | "observerSink"
>;
type Slot = Pick<GenerationSlot, "inFlight" | "inFlightByFrontend" | "current">;

export class LocalStatsReader {
  readonly #loopDelay = new EventLoopDelay();
  readonly #gcStats = new GcStats();
  readonly #services: StatsServices;
  readonly #slot: Slot;

  constructor(services: StatsServices, slot: Slot) {
    this.#services = services;
    this.#slot = slot;
  }

  read(): LocalStats {
    const { targetHealth, pools, ledgerQueue, rejections, observerSink } = this.#services;
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const loopDelayMs = this.#loopDelay.read();
    return {
      process: {
        pid: process.pid,
        startedAt: Math.round(performance.timeOrigin),
        cpu: { user: user / 1e6, system: system / 1e6 },
        memory: { rss, heapUsed, heapTotal, external },
        loopDelayMs,
        gc: this.#gcStats.read(),
        openFiles: countOpenFiles(),
      },
      inFlight: this.#slot.inFlight,
      inFlightByFrontend: this.#slot.inFlightByFrontend(),
      cooldowns: sortByEnd(targetHealth.cooldowns()),
      unreachable: listUnreachablePlugins(this.#slot.current.built).map(
        ({ plugin, since, requests }) => ({
          plugin,
          since,
          requests,
          processes: 1,
        }),
      ),
      pools: pools.stats(),
      queuedCommands: ledgerQueue.pendingCount,
      loopDelayMs,
      memory: { rss, heapUsed, external },
      rejections: rejections.counts(),
      droppedRecords: observerSink.droppedCounts(),
    };
  }
}

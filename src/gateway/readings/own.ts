// What this process says of itself.
import type { Services } from "../services/services.ts";
import { LoopDelay } from "./loop-delay.ts";
import { Collections } from "./collections.ts";
import { openFiles } from "./open-files.ts";
import { longestFirst, type OwnReadings } from "./sum.ts";
import type { GenerationSlot } from "../generation/slot.ts";
import { unreachableIn } from "../status-of.ts";

type Read = Pick<Services, "rests" | "pools" | "ledger" | "refusals" | "observing">;
type Slot = Pick<GenerationSlot, "inFlight" | "inFlightOf" | "current">;

export class OwnReader {
  readonly #delay = new LoopDelay();
  readonly #collections = new Collections();
  readonly #services: Read;
  readonly #slot: Slot;

  constructor(services: Read, slot: Slot) {
    this.#services = services;
    this.#slot = slot;
  }

  read(): OwnReadings {
    const { rests, pools, ledger, refusals, observing } = this.#services;
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const loopDelayMs = this.#delay.read();
    return {
      process: {
        pid: process.pid,
        startedAt: Math.round(performance.timeOrigin),
        cpu: { user: user / 1e6, system: system / 1e6 },
        memory: { rss, heapUsed, heapTotal, external },
        loopDelayMs,
        gc: this.#collections.read(),
        openFiles: openFiles(),
      },
      inFlight: this.#slot.inFlight,
      inFlightOf: this.#slot.inFlightOf(),
      resting: longestFirst(rests.all()),
      unreachable: unreachableIn(this.#slot.current.built).map(({ plugin, since, requests }) => ({
        plugin,
        since,
        requests,
        processes: 1,
      })),
      pools: pools.readings(),
      queue: ledger.waiting,
      loopDelayMs,
      memory: { rss, heapUsed, external },
      refusals: refusals.counts(),
      dropped: observing.dropped(),
    };
  }
}

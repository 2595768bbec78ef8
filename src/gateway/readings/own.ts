// What this process says of itself.
import type { Services } from "../services/services.ts";
import { LoopDelay } from "./loop-delay.ts";
import { Collections } from "./collections.ts";
import { openFiles } from "./open-files.ts";
import { longestFirst, type OwnReadings } from "./sum.ts";

type Read = Pick<Services, "rests" | "pools" | "ledger" | "refusals" | "observing">;

export class OwnReader {
  readonly #delay = new LoopDelay();
  readonly #collections = new Collections();
  readonly #services: Read;
  readonly #inFlight: () => number;

  constructor(services: Read, inFlight: () => number) {
    this.#services = services;
    this.#inFlight = inFlight;
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
      inFlight: this.#inFlight(),
      resting: longestFirst(rests.all()),
      pools: pools.readings(),
      ledger: { ok: ledger.healthy, queue: ledger.waiting },
      loopDelayMs,
      memory: { rss, heapUsed, external },
      refusals: refusals.counts(),
      dropped: observing.dropped(),
    };
  }
}

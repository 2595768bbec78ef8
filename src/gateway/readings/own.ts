// What this process says of itself.
import type { Services } from "../services/services.ts";
import { LoopDelay } from "./loop-delay.ts";
import { longestFirst, type OwnReadings } from "./sum.ts";

type Read = Pick<Services, "rests" | "pools" | "ledger" | "refusals" | "observing">;

export class OwnReader {
  readonly #delay = new LoopDelay();
  readonly #services: Read;
  readonly #inFlight: () => number;

  constructor(services: Read, inFlight: () => number) {
    this.#services = services;
    this.#inFlight = inFlight;
  }

  read(): OwnReadings {
    const { rests, pools, ledger, refusals, observing } = this.#services;
    const { rss, heapUsed, external } = process.memoryUsage();
    return {
      inFlight: this.#inFlight(),
      resting: longestFirst(rests.all()),
      pools: pools.readings(),
      ledger: { ok: ledger.healthy, queue: ledger.waiting },
      loopDelayMs: this.#delay.read(),
      memory: { rss, heapUsed, external },
      refusals: refusals.counts(),
      dropped: observing.dropped(),
    };
  }
}

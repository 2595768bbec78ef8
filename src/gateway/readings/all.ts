// The readings of all processes, in the primary. It asks once for all that want to know at one time.
import { wallClock } from "../../lib/wall-clock.ts";
import type { FleetReading, Readings } from "../../plugin/readings.ts";
import type { StoreSize } from "../../plugin/keeping.ts";
import {
  type Counters,
  counted,
  NO_COUNTERS,
  type OwnReadings,
  type PrimaryReadings,
  summed,
} from "./sum.ts";

/** Another process that may be asked; undefined: it does not answer in time. */
export interface ReadingSource {
  ask(): Promise<OwnReadings | undefined>;
}

/** What there is once for all processes, and where the store is. */
export interface PrimarySource {
  read(): PrimaryReadings;
  commits(): Readings["ledger"]["commits"];
  /** Undefined: the ledger accepts rows. */
  trouble(): string | undefined;
  /** Undefined: the store does not say it, or not in time. */
  size(): Promise<StoreSize | undefined>;
  certificates(): Promise<Readings["certificates"]>;
  /** Undefined: the store belongs to this gateway alone, or does not say it in time. */
  fleet(): Promise<FleetReading | undefined>;
}

export class AllReadings {
  readonly #own: { read(): OwnReadings };
  readonly #primary: PrimarySource;
  readonly #sources: () => readonly ReadingSource[];
  readonly #last = new Map<ReadingSource, OwnReadings>();
  #ended: Counters = NO_COUNTERS;
  #asking: Promise<Readings> | undefined;

  constructor(
    own: { read(): OwnReadings },
    primary: PrimarySource,
    sources: () => readonly ReadingSource[] = () => [],
  ) {
    this.#own = own;
    this.#primary = primary;
    this.#sources = sources;
  }

  read(): Promise<Readings> {
    return (this.#asking ??= this.#read().finally(() => (this.#asking = undefined)));
  }

  /** It answers no more: what it had counted stays. */
  ended(source: ReadingSource): void {
    const last = this.#last.get(source);
    if (!last) return;
    this.#last.delete(source);
    this.#ended = counted(this.#ended, last);
  }

  async #read(): Promise<Readings> {
    const sources = this.#sources();
    let answered = 1;
    const [size, fleet] = [this.#primary.size(), this.#primary.fleet()];
    const certificates = this.#primary.certificates();
    await Promise.all(
      sources.map(async (source) => {
        const said = await source.ask();
        // One that has ended meanwhile is among the ended, or has said nothing.
        if (!said || !this.#sources().includes(source)) return;
        answered++;
        this.#last.set(source, said);
      }),
    );
    const there = this.#sources();
    const others = there.flatMap((source) => this.#last.get(source) ?? []);
    const { queue, ...sum } = summed([this.#own.read(), ...others], this.#ended);
    return {
      at: wallClock(),
      ...this.#primary.read(),
      processes: { there: there.length + 1, answered },
      ledger: ledgerOf(this.#primary, queue, await size),
      fleet: await fleet,
      certificates: await certificates,
      ...sum,
    };
  }
}

function ledgerOf(
  primary: PrimarySource,
  queue: number,
  size: StoreSize | undefined,
): Readings["ledger"] {
  const why = primary.trouble();
  return { ok: why === undefined, why, queue, commits: primary.commits(), size };
}

// The readings of all processes, in the primary. It asks once for all that want to know at one time.
import type { Readings } from "../../plugin/readings.ts";
import { type Counters, counted, NO_COUNTERS, type OwnReadings, summed } from "./sum.ts";

/** Another process that may be asked; undefined: it does not answer in time. */
export interface ReadingSource {
  ask(): Promise<OwnReadings | undefined>;
}

export class AllReadings {
  readonly #own: { read(): OwnReadings };
  readonly #sources: () => readonly ReadingSource[];
  readonly #last = new Map<ReadingSource, OwnReadings>();
  #ended: Counters = NO_COUNTERS;
  #asking: Promise<Readings> | undefined;

  constructor(own: { read(): OwnReadings }, sources: () => readonly ReadingSource[] = () => []) {
    this.#own = own;
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
    return {
      at: Date.now(),
      processes: { there: there.length + 1, answered },
      ...summed([this.#own.read(), ...others], this.#ended),
    };
  }
}

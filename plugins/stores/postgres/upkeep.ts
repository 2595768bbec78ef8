// What has to be done now and again, by whichever gateway comes first: numbers, sums, partitions. Each is a function of the database that does
// nothing where there is nothing to do; one that fails is done the next time.
import type { Ask } from "./line.ts";
import { close, summed } from "./reads.ts";

/** Entries are numbered so soon after they are written, where nothing asks for them earlier. */
const NUMBERED_MS = 250;
/** Sums are brought up to date so often: what is newer is added from its rows. */
const SUMMED_MS = 10_000;
/** Next month's partitions are looked for so often. */
const MONTHS_MS = 3_600_000;

export interface Upkeep {
  begin(): void;
  /** Rows were written. */
  written(): void;
  end(): void;
}

export function upkeepOf(ask: Ask, s: string): Upkeep {
  let timers: NodeJS.Timeout[] = [];
  let numbering: NodeJS.Timeout | undefined;
  const every = (ms: number, work: () => Promise<unknown>) =>
    void timers.push(setInterval(() => void work().catch(() => undefined), ms).unref());
  const end = (): void => {
    clearTimeout(numbering);
    for (const timer of timers) clearInterval(timer);
    numbering = undefined;
    timers = [];
  };
  return {
    begin() {
      end();
      every(SUMMED_MS, () => summed(ask, s));
      every(MONTHS_MS, () => ask({ text: `SELECT ${s}.months_1(1)` }));
    },
    written() {
      numbering ??= setTimeout(() => {
        numbering = undefined;
        close(ask, s).catch(() => undefined);
      }, NUMBERED_MS).unref();
    },
    end,
  };
}

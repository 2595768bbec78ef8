// What has to be done now and again, by whichever gateway comes first: numbers, sums, partitions. Each is a function of the database that does
// nothing where there is nothing to do; one that fails is done the next time.
import type { Ask } from "./line.ts";
import { closeSoon, summed } from "./reads.ts";

/** Entries are numbered so soon after they are written, where nothing asks for them earlier and no other gateway is at it. */
const NUMBERED_MS = 250;
/** Where another gateway does it, this one looks once more whether its last entries were among them. */
const LATER_MS = 1_000;
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
  const written = (ms = NUMBERED_MS): void => {
    numbering ??= setTimeout(async () => {
      numbering = undefined;
      const done = await closeSoon(ask, s).catch(() => true);
      if (!done && timers.length > 0) written(LATER_MS);
    }, ms).unref();
  };
  return {
    begin() {
      end();
      every(SUMMED_MS, () => summed(ask, s));
      every(MONTHS_MS, () => ask({ text: `SELECT ${s}.months_1(1)` }));
    },
    written: () => written(),
    end,
  };
}

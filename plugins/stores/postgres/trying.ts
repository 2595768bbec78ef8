// Again, while others are in the way or the database is away; not for longer than the host would wait.
import { setTimeout as sleep } from "node:timers/promises";
import type { Ask, Line } from "./line.ts";
import { isAway, isCrossed, wordsOf } from "./trouble.ts";

/** A batch is tried for so long; the host asks again after that. */
const PATIENCE_MS = 4_000;

/** A database that was asked in vain: how often for this work, since when, and what it said. */
export interface Trouble {
  readonly times: number;
  readonly ms: number;
  readonly why: string;
}

/** `away` hears of each connection that broke; a throw of it ends the work. */
export async function trying<T>(
  line: Line,
  work: (ask: Ask) => Promise<T>,
  away: (trouble: Trouble) => void,
): Promise<T> {
  const began = performance.now();
  for (let times = 0; ;) {
    try {
      return await work(await line.ask());
    } catch (error) {
      const gone = isAway(error);
      if (gone) line.drop();
      const ms = performance.now() - began;
      if (gone)
        away({ times: ++times, ms, why: `The database cannot be reached: ${wordsOf(error)}` });
      if (!(gone || isCrossed(error)) || ms > PATIENCE_MS) throw error;
      await sleep(5 + Math.random() * (gone ? 200 : 45), undefined, { ref: false });
    }
  }
}

/** One after the other, in the order in which they were asked for, whatever becomes of those before. */
export function turns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work, work);
    last = turn.catch(() => undefined);
    return turn;
  };
}

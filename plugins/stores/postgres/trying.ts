// Again, while others are in the way or the database is away; not for longer than the host would wait.
import { setTimeout as sleep } from "node:timers/promises";
import type { Ask, Line } from "./line.ts";
import { isAway, isCrossed, wordsOf } from "./trouble.ts";

/** A batch is tried for so long; the host asks again after that. */
const PATIENCE_MS = 4_000;

/** `away`: the database was asked again, in vain; once for each work. */
export async function trying<T>(
  line: Line,
  work: (ask: Ask) => Promise<T>,
  away: (why: string) => void,
): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (let broken = 0; ;) {
    try {
      return await work(await line.ask());
    } catch (error) {
      const gone = isAway(error);
      if (gone) line.drop();
      if (gone && ++broken === 2) away(`The database cannot be reached: ${wordsOf(error)}`);
      if (!(gone || isCrossed(error)) || performance.now() > until) throw error;
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

// Reads a config only when its files are completely written. A file may be truncated, written in
// pieces, or replaced. It is read twice, with a pause, until both results are the same.
import { setTimeout as sleep } from "node:timers/promises";
import { readContentHash } from "../../lib/content-hash.ts";

/**
 * Pause between two reads, in milliseconds. With the watcher's debounce, a change is applied about
 * 100 ms after the last write.
 */
export const STABLE_MS = 50;
/**
 * Maximum wait, in milliseconds. A continuous writer must not delay a reload forever. The content
 * is validated anyway.
 */
const MAX_WAIT_MS = 2_000;

export interface StabilityTimes {
  readonly stableMs?: number;
  readonly maxWaitMs?: number;
  /** Replaces the pause in tests. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Reads when the files are stable.
 * @param files Files that the read is known to use.
 */
export async function readWhenStable<T extends { readonly sources: readonly string[] }>(
  read: () => Promise<T>,
  files: readonly string[],
  { stableMs = STABLE_MS, maxWaitMs = MAX_WAIT_MS, sleep: pause = sleep }: StabilityTimes = {},
): Promise<T> {
  let before = await readContents(files);
  for (let waited = stableMs; ; waited += stableMs) {
    const found = await read();
    await pause(stableMs);
    const after = await readContents(found.sources);
    const still = [...after].every(([file, hash]) => before.get(file) === hash);
    if (still || waited >= maxWaitMs) return found;
    before = after;
  }
}

const readContents = async (files: readonly string[]): Promise<ReadonlyMap<string, string>> =>
  new Map(
    await Promise.all(files.map(async (file) => [file, await readContentHash(file)] as const)),
  );

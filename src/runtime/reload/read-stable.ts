// Reads what is saved, not what is being saved: a file is cut off, filled in pieces, put in another's place. It is read
// twice, with a moment between, until both say the same.
import { setTimeout as sleep } from "node:timers/promises";
import { readContentHash } from "../../lib/content-hash.ts";

/** With the watcher's own quiet, a change is taken a tenth of a second after the last move. */
export const STABLE_MS = 50;
/** A writer that never rests does not keep a reload for ever; what it has written is checked like everything else. */
const MAX_WAIT_MS = 2_000;

export interface StabilityTimes {
  readonly stableMs?: number;
  readonly maxWaitMs?: number;
  /** Of a test: what happens between the two readings. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** `files`: what the reading will look at, as far as is known. */
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

// Reads what is saved, not what is being saved: a file is cut off, filled in pieces, put in another's place. It is read
// twice, with a moment between, until both say the same.
import { setTimeout as sleep } from "node:timers/promises";
import { contents } from "../../lib/contents.ts";

/** With the watcher's own quiet, a change is taken a tenth of a second after the last move. */
export const STILL_MS = 50;
/** A writer that never rests does not keep a reload for ever; what it has written is checked like everything else. */
const LONGEST_MS = 2_000;

export interface Settling {
  readonly stillMs?: number;
  readonly longestMs?: number;
  /** Of a test: what happens between the two readings. */
  readonly pause?: (ms: number) => Promise<unknown>;
}

/** `files`: what the reading will look at, as far as is known. */
export async function readSettled<T extends { readonly sources: readonly string[] }>(
  read: () => Promise<T>,
  files: readonly string[],
  { stillMs = STILL_MS, longestMs = LONGEST_MS, pause = sleep }: Settling = {},
): Promise<T> {
  let before = await contentsOf(files);
  for (let waited = stillMs; ; waited += stillMs) {
    const found = await read();
    await pause(stillMs);
    const after = await contentsOf(found.sources);
    const still = [...after].every(([file, hash]) => before.get(file) === hash);
    if (still || waited >= longestMs) return found;
    before = after;
  }
}

const contentsOf = async (files: readonly string[]): Promise<ReadonlyMap<string, string>> =>
  new Map(await Promise.all(files.map(async (file) => [file, await contents(file)] as const)));

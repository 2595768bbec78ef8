// Reserves disk space for the case that the disk is full. The ballast file has no useful content.
// It is deleted so that open calls can still be recorded.
import { closeSync, openSync, statSync, unlinkSync, writeSync } from "node:fs";
import { randomFillSync } from "node:crypto";

const MEGABYTE = 1 << 20;
/** How often to retry reserving the space, in milliseconds. */
const RESERVE_RETRY_MS = 1_000;

export interface Ballast {
  /** Reserves the space. Returns false if the disk was full and still is. */
  reserve(): boolean;
  release(): void;
}

export function createBallast(file: string, megabytes: number): Ballast {
  let there = megabytes === 0 || fillFile(file, megabytes);
  let triedAt = -Infinity;
  return {
    reserve() {
      if (there || performance.now() - triedAt < RESERVE_RETRY_MS) return there;
      triedAt = performance.now();
      return (there = fillFile(file, megabytes));
    },
    release() {
      there = false;
      triedAt = performance.now();
      removeFile(file);
    },
  };
}

function fillFile(file: string, megabytes: number): boolean {
  if (statSync(file, { throwIfNoEntry: false })?.size === megabytes * MEGABYTE) return true;
  // Random data, because some file systems do not allocate space for zeros.
  const block = randomFillSync(Buffer.allocUnsafe(MEGABYTE));
  try {
    const handle = openSync(file, "w", 0o600);
    try {
      for (let i = 0; i < megabytes; i++)
        if (writeSync(handle, block) < MEGABYTE) throw new Error("No space left on the disk.");
    } finally {
      closeSync(handle);
    }
    return true;
  } catch {
    removeFile(file);
    return false;
  }
}

function removeFile(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // The file did not exist.
  }
}

// What a check of a package says. Each has a name of its own, which the list of defects in docs/plugins names too.
import { setTimeout as sleep } from "node:timers/promises";
import type { Check } from "../../testing/check.ts";

export interface PackageFinding {
  /** "manifest: keywords", "contract: says what it is". */
  readonly check: string;
  /** What is wrong, and what to do. Absent: it is as it should be. */
  readonly problem?: string;
}

/** A check as a name and a condition with words for where it does not hold. */
export const createFinding = (check: string, holds: boolean, wrong: string): PackageFinding =>
  holds ? { check } : { check, problem: wrong };

/** How long one check may take. */
const CHECK_TIMEOUT_MS = 50_000;

/** Runs a check of the kit. What it throws is what is wrong, and so is a check that does not end. */
export async function runCheck(check: string, { run }: Check): Promise<PackageFinding> {
  const timer = new AbortController();
  const late = sleep(CHECK_TIMEOUT_MS, `it does not end within ${CHECK_TIMEOUT_MS / 1_000} s`, {
    signal: timer.signal,
  }).catch(() => undefined);
  const wrong = await Promise.race([
    late,
    run().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    ),
  ]);
  timer.abort();
  return { check, ...(wrong !== undefined && { problem: wrong }) };
}

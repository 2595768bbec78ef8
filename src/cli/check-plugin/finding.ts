// Findings of a package check. Each check has a stable name, which the list of defects in
// docs/plugins uses too.
import { setTimeout as sleep } from "node:timers/promises";
import type { Check } from "../../testing/check.ts";

export interface PackageFinding {
  /** Name of the check: "manifest: keywords", "contract: the definition is well-formed". */
  readonly check: string;
  /** The defect and how to fix it. Unset if the check passed. */
  readonly problem?: string;
}

/** Returns a finding that passed if `holds`, else one with `wrong` as its problem. */
export const createFinding = (check: string, holds: boolean, wrong: string): PackageFinding =>
  holds ? { check } : { check, problem: wrong };

/** Maximum run time of one check, in milliseconds. */
const CHECK_TIMEOUT_MS = 50_000;

/**
 * Runs a check of the plugin test kit. An error that it throws is the finding's problem, and so is
 * a timeout.
 */
export async function runCheck(check: string, { run }: Check): Promise<PackageFinding> {
  const timer = new AbortController();
  const late = sleep(CHECK_TIMEOUT_MS, `timed out after ${CHECK_TIMEOUT_MS / 1_000} s`, {
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

// What a check of a package says. Each has a name of its own, which the list of defects in docs/plugins names too.
import type { Check } from "../../testing/check.ts";

export interface PackageFinding {
  /** "manifest: keywords", "contract: says what it is". */
  readonly check: string;
  /** What is wrong, and what to do. Absent: it is as it should be. */
  readonly wrong?: string;
}

/** A check as a name and a condition with words for where it does not hold. */
export const finding = (check: string, holds: boolean, wrong: string): PackageFinding =>
  holds ? { check } : { check, wrong };

/** A check of the kit, played: what it throws is what is wrong. */
export const findingOf = (check: string, { run }: Check): Promise<PackageFinding> =>
  run().then(
    () => ({ check }),
    (error: unknown) => ({ check, wrong: error instanceof Error ? error.message : String(error) }),
  );

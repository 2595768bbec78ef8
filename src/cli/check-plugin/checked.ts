// A check of the kit, played: what it throws is what is wrong.
import type { Check } from "../../testing/check.ts";
import type { PackageFinding } from "./finding.ts";

export const findingOf = (check: string, { run }: Check): Promise<PackageFinding> =>
  run().then(
    () => ({ check }),
    (error: unknown) => ({ check, wrong: error instanceof Error ? error.message : String(error) }),
  );

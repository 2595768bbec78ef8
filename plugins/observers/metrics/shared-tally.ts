// Shares the counts between config generations. The previous generation keeps counting with its
// options until the next one receives its first data.
import type { Context } from "tollgate/plugin";
import { ModelLabelValues } from "./label-values.ts";
import { MetricsTally, type MetricsTallyOptions } from "./tally.ts";

export interface SharedTally {
  readonly tally: MetricsTally;
  /** Returns the shared tally, which uses this generation's options and names from then on. */
  activate(): MetricsTally;
}

export function createSharedTally(
  ctx: Pick<Context, "catalog" | "shared">,
  options: MetricsTallyOptions,
): SharedTally {
  const names = new ModelLabelValues(ctx.catalog);
  const tally = ctx.shared("tally", () => new MetricsTally(options, names));
  let follows = false;
  return {
    tally,
    activate() {
      if (!follows) tally.reconfigure(options, names);
      follows = true;
      return tally;
    },
  };
}

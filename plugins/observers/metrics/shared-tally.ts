// What is counted outlives a reload. The generation before counts until this one is told something.
import type { Context } from "tollgate/plugin";
import { ModelLabelValues } from "./label-values.ts";
import { MetricsTally, type MetricsTallyOptions } from "./tally.ts";

export interface SharedTally {
  readonly tally: MetricsTally;
  /** The same, with this generation's options and names from here on. */
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

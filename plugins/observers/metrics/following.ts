// What is counted outlives a reload. The generation before counts until this one is told something.
import type { Context } from "tollgate/plugin";
import { ModelNames } from "./names.ts";
import { Tally, type TallyOptions } from "./tally.ts";

export interface Following {
  readonly tally: Tally;
  /** The same, with this generation's options and names from here on. */
  mine(): Tally;
}

export function following(
  ctx: Pick<Context, "catalogue" | "shared">,
  options: TallyOptions,
): Following {
  const names = new ModelNames(ctx.catalogue);
  const tally = ctx.shared("tally", () => new Tally(options, names));
  let follows = false;
  return {
    tally,
    mine() {
      if (!follows) tally.follow(options, names);
      follows = true;
      return tally;
    },
  };
}

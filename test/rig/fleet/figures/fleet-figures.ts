// Guarantees of a fleet in seconds and counts, measured with default settings: a revoked key, a
// gateway that dies or is suspended, clocks, queries of an idle gateway, and the start during an
// outage.
import { PARTS } from "./parts.ts";
import { staged } from "./stage.ts";
import type { Rig, RigResult } from "../../rig.ts";

export async function fleetFigures(of: {
  tries: number;
  /** Names of parts. None: all. */
  only: readonly string[];
  /** Factor for the limits on a busy machine. */
  patience: number;
  say?: (line: string) => void;
}): Promise<RigResult> {
  const wrong: string[] = [];
  const counts: Record<string, number> = {};
  await using stage = await staged();
  for (const [name, part] of Object.entries(PARTS)) {
    if (of.only.length > 0 && !of.only.includes(name)) continue;
    const heard = await part(stage, of.tries);
    wrong.push(...heard.wrong);
    for (const [what, is, most] of heard.figures) {
      counts[what] = is;
      of.say?.(`${what}: ${is}, at most ${most}`);
      if (is > most * of.patience) wrong.push(`${what} is ${is}, and ${most} at most is promised`);
    }
  }
  const { problems } = await stage.command<{ problems: unknown[] }>(0, "ledger.verify");
  if (problems.length > 0) wrong.push(`the ledger: ${JSON.stringify(problems).slice(0, 500)}`);
  return { wrong, counts, seed: 0 };
}

export const rig: Rig = {
  options: { tries: 100, only: "", patience: 1 },
  run: ({ tries, only = "", patience }, say) =>
    fleetFigures({
      tries: Number(tries),
      only: only === "" ? [] : only.split(","),
      patience: Number(patience),
      say,
    }),
};

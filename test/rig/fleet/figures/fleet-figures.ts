// What a fleet promises in seconds and counts, measured at its default settings: a revoked key, a gateway that dies or stands still, clocks,
// what an idle one asks of its database, and how soon one that began without it is ready.
import { PARTS } from "./parts.ts";
import { staged } from "./stage.ts";
import type { Rig, RigResult } from "../../rig.ts";

export async function fleetFigures(of: {
  tries: number;
  /** Names of parts; none: all. */
  only: readonly string[];
  /** Beside other work what they allow is stretched so far. */
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

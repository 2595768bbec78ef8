import { askControl } from "../gateway/control/asking.ts";
import type { Reloaded } from "../gateway/types.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { counted, errorsIn, reported } from "./report.ts";
import { paint, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "reload [options]",
  about:
    "Makes the running gateway read gateway.yaml again, and waits until all of its processes answer from it. If anything\n" +
    "is wrong the config before goes on: exits with 78 for errors in the file, with 1 for keys that need a restart.",
  options: PLACE,
  examples: ["tollgate reload", "tollgate reload --state-dir /var/lib/tollgate --json"],
  async run(given) {
    const answer = await askControl(await stateDirOf(given), "reload");
    const reloaded = answer as unknown as Reloaded;
    if (given.json) sayJson(reloaded);
    else inWords(reloaded);
    if (reloaded.ok) return EXIT.fine;
    return reloaded.refused ? EXIT.failed : EXIT.config;
  },
};

function inWords({ ok, generation, unchanged, problems, refused }: Reloaded): void {
  const told = problems.filter(({ severity }) => severity !== "note");
  if (told.length > 0) say(`${reported(told, paint)}\n`);
  if (ok)
    return say(
      unchanged
        ? `The file says what it said before: generation ${generation} goes on.`
        : `Reloaded: generation ${generation} answers now.`,
    );
  const why = refused
    ? `${refused.join(", ")} cannot change while running; restart to apply.`
    : `${errorsIn(problems) > 0 ? counted(told) : "the config has errors"}.`;
  remark(`Refused: ${why} Generation ${generation} goes on.`);
}

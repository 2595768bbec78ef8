import { type CliCommand, CONFIG, EXIT } from "./command.ts";
import { configFile, load, nameOf } from "./loading.ts";
import { counted, reported } from "./report.ts";
import { paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "print [options]",
  about:
    "Shows the config that runs: every default filled in, short forms written out, variables as the file names them,\n" +
    "secrets hidden. What it prints is a gateway.yaml itself.",
  options: CONFIG,
  examples: ["tollgate print", "tollgate print --json | jq .listen"],
  async run(given) {
    const file = configFile(given);
    const loaded = await load(file);
    if (loaded.config) {
      say(loaded.print(given.json).trimEnd());
      return EXIT.fine;
    }
    if (given.json) sayJson({ ok: false, file: file ?? null, problems: loaded.problems });
    remark(reported(loaded.problems, paintRemark));
    remark(`\n${nameOf(file)}: ${counted(loaded.problems)}`);
    return EXIT.failed;
  },
};

import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { configFile, loadGatewayConfig, configName } from "../../support/load-config.ts";
import { summarizeProblems, formatProblems } from "../../format/problem-report.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "print [options]",
  description:
    "Prints the complete config: defaults are filled in, short forms are expanded, " +
    "variables stay as the file names them, and secrets are hidden. The output is a " +
    "valid gateway.yaml.",
  options: CONFIG_OPTIONS,
  examples: ["tollgate print", "tollgate print --json | jq .listen"],
  async run(given) {
    const file = configFile(given);
    const loaded = await loadGatewayConfig(file);
    if (loaded.config) {
      print(loaded.print(given.json).trimEnd());
      return EXIT_CODES.ok;
    }
    if (given.json) printJson({ ok: false, file: file ?? null, problems: loaded.problems });
    printRemark(formatProblems(loaded.problems, paintRemark));
    printRemark(`\n${configName(file)}: ${summarizeProblems(loaded.problems)}`);
    return EXIT_CODES.failed;
  },
};

import { callControl } from "../../../admin/socket/control-client.ts";
import type { ReloadResult } from "../../../runtime/gateway-api.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { summarizeProblems, countErrors, formatProblems } from "../../format/problem-report.ts";
import { paint, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "reload [options]",
  description:
    "Reloads gateway.yaml in the running gateway, and waits until all of its " +
    "processes use it. If the file is invalid, the previous config stays in use. " +
    "Exits with 78 if the file has errors, and with 1 if keys changed that need a " +
    "restart.",
  options: GATEWAY_OPTIONS,
  examples: ["tollgate reload", "tollgate reload --state-dir /var/lib/tollgate --json"],
  async run(given) {
    const answer = await callControl(await findStateDir(given), "reload");
    const reloaded = answer as unknown as ReloadResult;
    if (given.json) printJson(reloaded);
    else printResult(reloaded);
    if (reloaded.ok) return EXIT_CODES.ok;
    return reloaded.restartKeys ? EXIT_CODES.failed : EXIT_CODES.config;
  },
};

function printResult({ ok, generation, isUnchanged, problems, restartKeys }: ReloadResult): void {
  const told = problems.filter(({ severity }) => severity !== "note");
  if (told.length > 0) print(`${formatProblems(told, paint)}\n`);
  if (ok)
    return print(
      isUnchanged
        ? `The config is unchanged. Generation ${generation} stays in use.`
        : `Reloaded. Generation ${generation} is in use.`,
    );
  const why = restartKeys
    ? `${restartKeys.join(", ")} cannot change without a restart. Restart the gateway to apply the change.`
    : `${countErrors(problems) > 0 ? summarizeProblems(told) : "the config has errors"}.`;
  printRemark(`Rejected: ${why} Generation ${generation} stays in use.`);
}

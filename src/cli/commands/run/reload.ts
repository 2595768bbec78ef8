import type { ReloadResult } from "../../../runtime/gateway-api.ts";
import { type CliCommand, EXIT_CODES } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { summarizeProblems, countErrors, formatProblems } from "../../format/problem-report.ts";
import { paint, printRemark, print } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<ReloadResult>("reload", {
  print: printResult,
  exitCode: ({ ok, restartKeys }) =>
    ok ? EXIT_CODES.ok : restartKeys ? EXIT_CODES.failed : EXIT_CODES.config,
});

function printResult({ ok, generation, isUnchanged, problems, restartKeys }: ReloadResult): void {
  const shownProblems = problems.filter(({ severity }) => severity !== "note");
  if (shownProblems.length > 0) print(`${formatProblems(shownProblems, paint)}\n`);
  if (ok)
    return print(
      isUnchanged
        ? `The config is unchanged. Generation ${generation} stays in use.`
        : `Reloaded. Generation ${generation} is in use.`,
    );
  const why = restartKeys
    ? `${restartKeys.join(", ")} cannot change without a restart. Restart the gateway to apply the change.`
    : `${countErrors(problems) > 0 ? summarizeProblems(shownProblems) : "the config has errors"}.`;
  printRemark(`Rejected: ${why} Generation ${generation} stays in use.`);
}

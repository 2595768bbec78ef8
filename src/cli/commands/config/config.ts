import { readFile } from "node:fs/promises";
import type { CheckedConfig, ShownConfig } from "../../../admin/commands/config-commands.ts";
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  type CliInput,
  createCommandGroup,
  EXIT_CODES,
  type Subcommand,
} from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { summarizeProblems, formatProblems } from "../../format/problem-report.ts";
import { alignColumns, paint, printRemark, print } from "../../format/terminal.ts";

const show = gatewayCommand<ShownConfig>("config.show", {
  options: { "no-defaults": { description: "Omit defaults" } },
  toJson: (answer, given) => ({ ...answer, shownValues: wantedValues(answer, given) }),
  print({ file, generation, ...answer }, given) {
    const name = file === null ? "" : `${file}:`;
    print(
      alignColumns(
        wantedValues(answer, given).map(({ path, value, source, location }) => [
          path,
          String(value),
          paint(
            "gray",
            location === undefined ? source : `${source}, ${location.replace(name, "line ")}`,
          ),
        ]),
      ),
    );
    printRemark(`${file ?? "the default config"}, generation ${generation}`);
  },
});

const wantedValues = ({ shownValues }: Pick<ShownConfig, "shownValues">, given: CliInput) =>
  given.has("no-defaults") ? shownValues.filter(({ source }) => source !== "default") : shownValues;

const check: Subcommand = {
  ...gatewayCommand<CheckedConfig>("config.check", {
    omit: ["text"],
    async toInput(_, given) {
      const [file] = given.positionals;
      const text = await readFile(file!, "utf8").catch((error: NodeJS.ErrnoException) =>
        fail("not_found", `Cannot read ${file}: ${error.code}.`, { code: "no_file" }),
      );
      return { text };
    },
    print: printCheck,
    exitCode: ({ ok }) => (ok ? EXIT_CODES.ok : EXIT_CODES.failed),
  }),
  usage: "config check <file> [options]",
  positionals: { least: 1, most: 1 },
};

export const command: CliCommand = createCommandGroup(
  "config",
  "Shows the running config and checks another file against it. The default command is show.",
  { show, check },
  "show",
);

function printCheck(
  { ok, problems, changes, omittedChanges, restartKeys, assumedVariables }: CheckedConfig,
  given: CliInput,
): void {
  if (problems.length > 0) print(`${formatProblems(problems, paint)}\n`);
  for (const { path, before, after } of changes) {
    if (before !== undefined) print(paint("red", `- ${path}: ${before}`));
    if (after !== undefined) print(paint("green", `+ ${path}: ${after}`));
  }
  if (omittedChanges > 0) print(`and ${omittedChanges} more`);
  if (ok && changes.length === 0) print("No visible value changes.");
  if (restartKeys.length > 0)
    printRemark(`${restartKeys.join(", ")} cannot change without a restart.`);
  if (assumedVariables.length > 0)
    printRemark(`Assumed to be set: ${assumedVariables.join(", ")}.`);
  if (!ok) printRemark(`${given.positionals[0]}: ${summarizeProblems(problems)}`);
}

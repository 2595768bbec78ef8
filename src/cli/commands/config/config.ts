import { readFile } from "node:fs/promises";
import { callControl } from "../../../admin/socket/control-client.ts";
import type { CheckedConfig, ShownConfig } from "../../../admin/commands/config-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { summarizeProblems, formatProblems } from "../../format/problem-report.ts";
import { alignColumns, paint, printRemark, print, printJson } from "../../format/terminal.ts";

const subcommands: Readonly<Record<string, Subcommand>> = {
  show: {
    usage: "config show [options]",
    summary: COMMAND_SPECS["config.show"].summary,
    description:
      "Shows each value of the running gateway's config and its source: a line of a " +
      "file, a variable, the command line, or a default. Secrets are hidden. To show a " +
      "file while no gateway is running, use tollgate print.",
    options: {
      said: { description: "Omit defaults" },
      ...GATEWAY_OPTIONS,
    },
    examples: ["tollgate config show", "tollgate config show --said"],
    run: show,
  },
  check: {
    usage: "config check <file> [options]",
    summary: COMMAND_SPECS["config.check"].summary,
    description:
      "Validates a file as the running gateway's new config and shows what it would " +
      "change. Nothing is written, plugins that are not mounted are not loaded, and " +
      "secrets are not read. Exits with 1 if there are errors.",
    options: GATEWAY_OPTIONS,
    positionals: { least: 1, most: 1 },
    examples: ["tollgate config check next.yaml"],
    run: check,
  },
};

export const command: CliCommand = createCommandGroup(
  "config",
  "Shows the running config and checks another file against it. The default " + "command is show.",
  subcommands,
  "show",
);

async function show(given: CliInput): Promise<number> {
  const answer = await callControl(await findStateDir(given), "config.show");
  const { file, generation, shownValues } = answer as unknown as ShownConfig;
  const wanted = given.has("said")
    ? shownValues.filter(({ source }) => source !== "default")
    : shownValues;
  if (given.json) printJson({ ...(answer as object), shownValues: wanted });
  else {
    const name = file === null ? "" : `${file}:`;
    print(
      alignColumns(
        wanted.map(({ path, value, source, location }) => [
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
  }
  return EXIT_CODES.ok;
}

async function check(given: CliInput): Promise<number> {
  const [file] = given.positionals;
  const text = await readFile(file!, "utf8").catch((error: NodeJS.ErrnoException) =>
    fail("not_found", `Cannot read ${file}: ${error.code}.`, { code: "no_file" }),
  );
  const answer = (await callControl(await findStateDir(given), "config.check", {
    text,
  })) as unknown as CheckedConfig;
  const { ok, problems, changes, omittedChanges, restartKeys, assumedVariables } = answer;
  if (given.json) printJson(answer);
  else {
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
    if (!ok) printRemark(`${file}: ${summarizeProblems(problems)}`);
  }
  return ok ? EXIT_CODES.ok : EXIT_CODES.failed;
}

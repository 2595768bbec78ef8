import { readFile } from "node:fs/promises";
import { askControl } from "../gateway/control/asking.ts";
import type { CheckedConfig, ShownConfig } from "../gateway/control/config-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { counted, reported } from "./report.ts";
import { columns, paint, remark, say, sayJson } from "./terminal.ts";

const parts: Readonly<Record<string, Part>> = {
  show: {
    usage: "config show [options]",
    summary: COMMANDS["config.show"].summary,
    about:
      "Shows each value of the config that the gateway runs with, and where it comes from: a line of a file, a variable, the command " +
      "line, a default. Secrets are hidden. tollgate print shows what a file says while no gateway runs.",
    options: {
      said: { about: "only what is said somewhere, no defaults" },
      ...PLACE,
    },
    examples: ["tollgate config show", "tollgate config show --said"],
    run: show,
  },
  check: {
    usage: "config check <file> [options]",
    summary: COMMANDS["config.check"].summary,
    about:
      "Asks the running gateway what would be wrong with a file in the place of its own, and what that would change. Nothing is written, " +
      "no plugin is loaded that is not mounted, and no secret is looked at. Exits with 1 when there are errors.",
    options: PLACE,
    words: { least: 1, most: 1 },
    examples: ["tollgate config check next.yaml"],
    run: check,
  },
};

export const command: CliCommand = group(
  "config",
  "Shows the config that runs, and checks another against it. Without a command it shows it.",
  parts,
  "show",
);

async function show(given: CliInput): Promise<number> {
  const answer = await askControl(await stateDirOf(given), "config.show");
  const { file, generation, values } = answer as unknown as ShownConfig;
  const wanted = given.has("said") ? values.filter(({ from }) => from !== "default") : values;
  if (given.json) sayJson({ ...(answer as object), values: wanted });
  else {
    const name = file === null ? "" : `${file}:`;
    say(
      columns(
        wanted.map(({ path, value, from, at }) => [
          path,
          String(value),
          paint("gray", at === undefined ? from : `${from}, ${at.replace(name, "line ")}`),
        ]),
      ),
    );
    remark(`${file ?? "the default config"}, generation ${generation}`);
  }
  return EXIT.fine;
}

async function check(given: CliInput): Promise<number> {
  const [file] = given.words;
  const text = await readFile(file!, "utf8").catch((error: NodeJS.ErrnoException) =>
    fail("not_found", `${file} cannot be read: ${error.code}.`, { code: "no_file" }),
  );
  const answer = (await askControl(await stateDirOf(given), "config.check", {
    text,
  })) as unknown as CheckedConfig;
  const { ok, problems, changes, more, restart, assumed } = answer;
  if (given.json) sayJson(answer);
  else {
    if (problems.length > 0) say(`${reported(problems, paint)}\n`);
    for (const { path, was, becomes } of changes) {
      if (was !== undefined) say(paint("red", `- ${path}: ${was}`));
      if (becomes !== undefined) say(paint("green", `+ ${path}: ${becomes}`));
    }
    if (more > 0) say(`and ${more} more`);
    if (ok && changes.length === 0) say("It changes nothing that may be shown.");
    if (restart.length > 0) remark(`${restart.join(", ")} cannot change while running.`);
    if (assumed.length > 0) remark(`Set, and not looked at: ${assumed.join(", ")}.`);
    if (!ok) remark(`${file}: ${counted(problems)}`);
  }
  return ok ? EXIT.fine : EXIT.failed;
}

// Shell completions equal the command table: each real shell is tested with every command.
import { beforeAll, describe, expect, it } from "vitest";
import {
  loadCompletedCommands,
  flattenCommands,
  optionFlags,
  takesPath,
  lastWord,
  defaultCommandOptions,
  type CompletedCommand,
} from "../../src/cli/commands/run/completion.ts";
import { COMMANDS } from "../../src/cli/main.ts";
import type { Options } from "../../src/cli/support/command.ts";
import { runCliInProcess } from "../kit/process/command-line.ts";
import { has, offered, type Shell, SHELLS } from "./shells.ts";

let commands: readonly CompletedCommand[];
beforeAll(async () => void (commands = await loadCompletedCommands(COMMANDS)));

const options = (of: Options) => optionFlags(of).toSorted();
const FILES = ["ask", "lines", "out", "script"];
/** Values without completion: only options can be completed everywhere. */
const noFiles = (words: readonly string[]) => words.filter((word) => !FILES.includes(word));

describe.each(SHELLS)("%s", (shell: Shell) => {
  it.skipIf(!has(shell))(
    "completes every command, its subcommands, and their options",
    async () => {
      const all = flattenCommands(commands);
      const lines = [
        "tollgate ",
        "tollgate -",
        ...all.flatMap(({ name }) => [`tollgate ${name} `, `tollgate ${name} -`]),
      ];
      const [words, first, ...each] = await offered(shell, lines);
      // bash offers options together with other words.
      const open = (those: readonly string[]) =>
        noFiles(those).filter((word) => !word.startsWith("-"));
      expect(open(words!)).toEqual(commands.map(lastWord).toSorted());
      expect(first).toEqual(options(defaultCommandOptions(commands)));
      expect(each.length).toBe(2 * all.length);
      for (const [i, command] of all.entries()) {
        expect(open(each[2 * i]!), command.name).toEqual(
          command.subcommands.map(lastWord).toSorted(),
        );
        expect(each[2 * i + 1], command.name).toEqual(options(command.options));
      }
    },
  );

  it.skipIf(!has(shell))(
    "does not take an option's value for a command, before or after the command",
    async () => {
      const cases = flattenCommands(commands).flatMap((command) => {
        const [name, part] = command.name.split(" ") as [string, string?];
        const words = [
          ...commands.map(lastWord),
          ...flattenCommands(commands)
            .filter((each) => each.name.startsWith(`${name} `))
            .map(lastWord),
        ];
        return Object.entries(command.options)
          .filter(([, { placeholder }]) => placeholder !== undefined)
          .map(([option], i) => {
            const value = words[(i * 7) % words.length]!;
            const said = i % 2 === 0 ? `--${option} ${value}` : `--${option}=${value}`;
            const line = i % 3 === 0 ? `${name} ${said} ${part ?? ""}` : `${command.name} ${said}`;
            return { command, option, line: `tollgate ${line.trim()} -` };
          });
      });
      const found = await offered(
        shell,
        cases.map(({ line }) => line),
      );
      expect(cases.length).toBeGreaterThan(200);
      for (const [i, { command, option, line }] of cases.entries()) {
        // An option that was given is not offered again.
        const { [option]: given, ...rest } = command.options;
        const more = optionFlags({ [option]: given! });
        expect(
          found[i]!.filter((word) => !more.includes(word)),
          line,
        ).toEqual(options(rest));
      }
    },
  );

  it.skipIf(!has(shell))("completes the options of serve if there is no command", async () => {
    const [after, files] = await offered(shell, [
      "tollgate --port 1 --config keys -",
      "tollgate --config ",
    ]);
    const { serve } = Object.fromEntries(commands.map((each) => [each.name, each]));
    const given = ["--port", "-p", "--config", "-c"];
    expect(after!.filter((word) => !given.includes(word))).toEqual(
      options(serve!.options).filter((word) => !given.includes(word)),
    );
    expect(files).toEqual(FILES);
  });

  it.skipIf(!has(shell))(
    "completes files for path options, and nothing for other values",
    async () => {
      const cases = flattenCommands(commands).flatMap((command) =>
        Object.entries(command.options)
          .filter(([, { placeholder }]) => placeholder !== undefined)
          .map(([name, option]) => ({ line: `tollgate ${command.name} --${name} `, option })),
      );
      const found = await offered(
        shell,
        cases.map(({ line }) => line),
      );
      for (const [i, { line, option }] of cases.entries())
        expect(found[i], line).toEqual(takesPath(option) ? FILES : []);
    },
  );
});

it("rejects an unknown shell with an explanation", async () => {
  const { code, err } = await runCliInProcess(["completion", "csh"]);
  expect([code, err]).toEqual([1, expect.stringContaining("bash, zsh, fish")]);
});

import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { CliCommand } from "../../src/cli/support/command.ts";
import { formatHelp, formatOverview } from "../../src/cli/support/help.ts";
import { COMMANDS, parseInput } from "../../src/cli/main.ts";
import { getFault } from "../../src/model/error.ts";
import { version as VERSION } from "../../src/cli/support/load-config.ts";
import { createTestFolder, runCliInProcess } from "../kit/process/command-line.ts";

const wide: [string, CliCommand][] = await Promise.all(
  Object.entries(COMMANDS).map(async ([name, entry]) => [name, (await entry.load()).command]),
);
/** Also commands with two words, each as a separate command. */
const parts = wide.flatMap(([name, command]) =>
  Object.entries(command.subcommands ?? {}).map(
    ([part, each]) => [`${name} ${part}`, each] as [string, CliCommand],
  ),
);
const all = [...wide, ...parts];

const colourless = (text: string) => stripVTControlCharacters(text) === text;

/** Shell words without quotes. Targets of pipes and redirections are not checked. */
const wordsOf = (line: string): string[] =>
  [
    ...line
      .split(/ [|>] /)
      .find((part) => part.startsWith("tollgate"))!
      .matchAll(/'([^']*)'|(\S+)/g),
  ].map(([, quoted, bare]) => quoted ?? bare!);

describe.each(all)("tollgate %s", (name, command) => {
  test("--help shows the usage with an example, on one screen", async () => {
    const { code, out, err } = await runCliInProcess([...name.split(" "), "--help"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe(`${formatHelp(command)}\n`);
    expect(await runCliInProcess(["help", ...name.split(" ")])).toEqual({ code, out, err });
    expect(out).toMatch(new RegExp(`^Usage: tollgate ${name}[ \\n]`));
    expect(out).toMatch(/\nExamples?:\n {2}\S/);
    expect(colourless(out)).toBe(true);
    expect(out.split("\n").length).toBeLessThan(40);
  });

  test("--help fits the width of any terminal", () => {
    for (const width of [40, 53, 72, 80, 100]) {
      const [text, examples] = formatHelp(command, width).split(/\nExamples?:\n/) as [
        string,
        string,
      ];
      for (const line of text.split("\n"))
        if (/\s\S+\s+\S/.test(` ${line.trim()}`) && !/^ +(-\w, +)?--\S+( <.*>)?$/.test(line))
          expect(line.length, `${width}: ${line}`).toBeLessThanOrEqual(width);
      // A copied line is one line.
      for (const line of examples.split("\n")) expect(line.trim()).toContain("tollgate ");
    }
  });

  test("its examples are valid commands", () => {
    for (const example of command.examples) {
      const [tollgate, ...words] = wordsOf(example);
      const names = name.split(" ");
      expect([tollgate, words[0]]).toEqual(["tollgate", names[0]]);
      if (command.subcommands) continue;
      // The default subcommand may be omitted.
      const rest = words.slice(words[1] === names[1] && names.length === 2 ? 2 : 1);
      expect(() => parseInput(command, rest)).not.toThrow();
    }
  });

  test("an unknown option is an error that suggests the nearest one", () => {
    if (command.subcommands) return;
    const [option = "json"] = Object.keys(command.options).filter((o) => o.length > 3);
    const typo = `--${option.slice(0, -1)}x`;
    try {
      parseInput(command, [
        typo,
        ...Array.from({ length: command.positionals?.least ?? 0 }, () => "x"),
      ]);
      expect.unreachable();
    } catch (error) {
      expect(getFault(error)?.message).toContain(
        `Unknown option "${typo}". Did you mean "--${option}"?`,
      );
    }
  });
});

test.each(wide.filter(([, { subcommands }]) => subcommands))(
  "tollgate %s: an unknown subcommand is an error that suggests a similar one, also with --help",
  async (name, { subcommands }) => {
    for (const part of Object.keys(subcommands!)) {
      const typo = `${part.slice(0, -1)}x`;
      for (const argv of [
        [name, typo],
        [name, typo, "--help"],
        ["help", name, typo],
        [name, "--json", typo, "--help"],
      ]) {
        const { code, out, err } = await runCliInProcess(argv);
        expect([code, out.startsWith("Usage:")], argv.join(" ")).toEqual([1, false]);
        expect(err).toContain(`Unknown ${name} command "${typo}". Did you mean "${part}"?`);
      }
    }
  },
);

test("an unknown command is an error, also in help", async () => {
  for (const argv of [
    ["chek", "--help"],
    ["help", "chek"],
    ["keys", "change", "--help"],
    ["-h", "chek"],
  ]) {
    const { code, out, err } = await runCliInProcess(argv);
    expect([code, out], argv.join(" ")).toEqual([1, ""]);
    expect(err).toMatch(
      /Unknown command "chek"\. Did you mean "check"|Unknown keys command "change"/,
    );
  }
});

test("without arguments on a terminal, it lists its subcommands", async () => {
  const { code, out } = await runCliInProcess([], true);
  expect([code, out]).toEqual([0, `${formatOverview(VERSION, COMMANDS)}\n`]);
  const keys = await runCliInProcess(["keys"]);
  expect([keys.code, keys.err]).toEqual([1, expect.stringContaining("keys create, keys list")]);
});

test("rejects an option of another subcommand", async () => {
  const { code, err } = await runCliInProcess(["keys", "list", "--overlap", "1h"]);
  expect([code, err]).toEqual([1, expect.stringContaining('Unknown option "--overlap"')]);
  const help = (await runCliInProcess(["keys", "rotate", "--help"])).out;
  expect(help).toContain("--overlap <time>");
  expect(help).not.toContain("--models");
});

test("the overview names every command, with color only on a terminal", async () => {
  await using here = await createTestFolder();
  const plain = await here.tollgate(["--help"]);
  expect(colourless(plain.out)).toBe(true);
  for (const [name, { summary }] of Object.entries(COMMANDS)) {
    expect(plain.out).toContain(`  ${name} `);
    expect(plain.out).toContain(summary);
  }
  const forced = await here.tollgate(["--help"], { env: { FORCE_COLOR: "1" } });
  expect(colourless(forced.out)).toBe(false);
  expect(stripVTControlCharacters(forced.out)).toBe(plain.out);
});

import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { Command } from "../../src/cli/command.ts";
import { COMMANDS, helpOf, read } from "../../src/cli/main.ts";
import { faultOf } from "../../src/model/error.ts";
import { folder } from "./cli.ts";

const all: [string, Command][] = await Promise.all(
  Object.entries(COMMANDS).map(async ([name, entry]) => [name, (await entry.load()).command]),
);

const colourless = (text: string) => stripVTControlCharacters(text) === text;

/** One shell word after another, quotes off; what a pipe or a redirection leads to is not ours. */
const wordsOf = (line: string): string[] =>
  [
    ...line
      .split(/ [|>] /)
      .find((part) => part.startsWith("tollgate"))!
      .matchAll(/'([^']*)'|(\S+)/g),
  ].map(([, quoted, bare]) => quoted ?? bare!);

describe.each(all)("tollgate %s", (name, command) => {
  test("--help says how, with an example, in one screen", async () => {
    await using here = await folder();
    const { code, stdout, stderr } = await here.tollgate([name, "--help"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(`${helpOf(command)}\n`);
    expect(stdout).toMatch(new RegExp(`^Usage: tollgate ${name}[ \\n]`));
    expect(stdout).toMatch(/\nExamples?:\n {2}\S/);
    expect(colourless(stdout)).toBe(true);
    expect(stdout.split("\n").length).toBeLessThan(40);
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(120);
  });

  test("its examples are ones that it takes", () => {
    for (const example of command.examples) {
      const [tollgate, first, ...rest] = wordsOf(example);
      expect([tollgate, first]).toEqual(["tollgate", name]);
      expect(() => read(command, rest)).not.toThrow();
    }
  });

  test("an option that it does not have is an error with the nearest one", () => {
    const [option = "json"] = Object.keys(command.options).filter((o) => o.length > 3);
    const typo = `--${option.slice(0, -1)}x`;
    try {
      read(command, [typo, ...Array.from({ length: command.words?.least ?? 0 }, () => "x")]);
      expect.unreachable();
    } catch (error) {
      expect(faultOf(error)?.message).toContain(
        `There is no option "${typo}". Did you mean "--${option}"?`,
      );
    }
  });
});

test("the overview names every command, in colour only where somebody sees it", async () => {
  await using here = await folder();
  const plain = await here.tollgate(["--help"]);
  expect(colourless(plain.stdout)).toBe(true);
  for (const [name, { summary }] of Object.entries(COMMANDS)) {
    expect(plain.stdout).toContain(`  ${name} `);
    expect(plain.stdout).toContain(summary);
  }
  const forced = await here.tollgate(["--help"], { env: { FORCE_COLOR: "1" } });
  expect(colourless(forced.stdout)).toBe(false);
  expect(stripVTControlCharacters(forced.stdout)).toBe(plain.stdout);
});

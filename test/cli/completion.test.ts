// What shells are told is what the table of commands says: bash is asked for every command, zsh and fish read their scripts.
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { table } from "../../src/cli/completion.ts";
import { COMMANDS } from "../../src/cli/main.ts";
import { flat, flags, last, type CompletedCommand } from "../../src/cli/completion/words.ts";
import { folder, said } from "../kit/command-line.ts";
import { root } from "../kit/program.ts";

let commands: readonly CompletedCommand[];
beforeAll(async () => void (commands = await table(COMMANDS)));

const has = (shell: string) => spawnSync(shell, ["--version"]).status === 0;

/** What bash offers at the end of each line. */
async function offered(lines: readonly string[]): Promise<readonly (readonly string[])[]> {
  await using here = await folder();
  const { out } = await said(["completion", "bash"]);
  const script = join(here.path, "script");
  const asks = lines.map(
    (line) =>
      `COMP_WORDS=(${line} ''); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _tollgate; echo "\${COMPREPLY[*]}"`,
  );
  await writeFile(script, `${out}\n${asks.join("\n")}\n`);
  const { stdout, stderr } = spawnSync("bash", ["--norc", script], {
    cwd: root,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  return stdout.split("\n").map((line) => line.split(" ").filter(Boolean));
}

describe("bash", () => {
  it("offers every command, the parts of each, and their options, and nothing else", async () => {
    const all = flat(commands);
    const [none, ...each] = await offered([
      "tollgate",
      ...all.map(({ name }) => `tollgate ${name}`),
    ]);
    expect([...none!].sort()).toEqual([...commands.map(last), "--help", "--version"].sort());
    for (const [i, { parts, options }] of all.entries())
      expect([...each[i]!].sort()).toEqual([...parts.map(last), ...flags(options)].sort());
  });

  it("an option's value is no command, and files are offered where one is wanted", async () => {
    const [after, file] = await offered(["tollgate serve --port 8787", "tollgate check --config"]);
    expect(after).toContain("--host");
    expect(file!.length).toBeGreaterThan(0);
  });
});

it.each([
  ["zsh", ["-n"]],
  ["fish", ["--no-execute"]],
] as const)("%s reads its script", async (shell, args) => {
  const { out, code } = await said(["completion", shell]);
  expect(code).toBe(0);
  for (const { name } of flat(commands)) expect(out).toContain(name.split(" ").at(-1)!);
  if (!has(shell)) return;
  await using here = await folder({ script: out });
  const read = spawnSync(shell, [...args, join(here.path, "script")], { encoding: "utf8" });
  expect([read.status, read.stderr]).toEqual([0, ""]);
});

it("another shell is refused in words", async () => {
  const { code, err } = await said(["completion", "csh"]);
  expect([code, err]).toEqual([1, expect.stringContaining("bash, zsh, fish")]);
});

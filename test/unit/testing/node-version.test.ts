// On an old Node, every command that runs tests ends with the same message, which names the
// commands that use the checkout's own Node.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../kit/process/program.ts";

const CHECK = "test/node-version.js";
const checked = (version: string) => {
  const versions = `{ ...process.versions, node: ${JSON.stringify(version)} }`;
  const script = `Object.defineProperty(process, "versions", { value: ${versions} });`;
  const args = ["--import", `data:text/javascript,${encodeURIComponent(script)}`, CHECK];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  return { status, stderr };
};

it("an old Node is rejected with the commands that work, and a new one is accepted", () => {
  const { status, stderr } = checked("20.20.2");
  expect(status).toBe(1);
  expect(stderr).toContain("The tests need Node 24 or later, and this is Node 20.20.2");
  for (const command of ["npm ci", "npm test --", "npx vitest run -c test/vitest.config.ts"])
    expect(stderr).toContain(command);
  expect(checked("24.0.0")).toEqual({ status: 0, stderr: "" });
});

it("each test script and the test config start with the check", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  for (const [name, script] of Object.entries(scripts))
    if (/^test\b/.test(name)) expect([name, script]).toEqual([name, expect.stringMatching(START)]);
  const config = readFileSync(join(root, "test/vitest.config.ts"), "utf8");
  expect(config.startsWith('import "./node-version.js";\n')).toBe(true);
});

const START = /^node test\/node-version\.js && node test\/run\.ts/;

// Tests the runner: a test that fails and then passes is named, and fails the nightly run.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { root } from "./kit/process/program.ts";

/** Fails in the first `failures` runs, and passes afterwards. */
const flaky = (failures: number) => `
import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
const file = import.meta.dirname + "/runs";
const run = Number(readFileSync(file, "utf8"));
writeFileSync(file, String(run + 1));
it("is flaky", () => expect(run).toBeGreaterThanOrEqual(${failures}));
`;

/** Output and exit code of the runner for a folder with one test file. */
function ran(tier: string, failures: number): Promise<{ code: number; out: string }> {
  const dir = mkdtempSync(join(root, "node_modules/.cache/flaky-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, "runs"), "0");
  writeFileSync(join(dir, "planted.test.mjs"), flaky(failures));
  const config = join(dir, "vitest.config.mjs");
  writeFileSync(
    config,
    `export default ${JSON.stringify({ root: dir, test: { include: ["*.test.mjs"], exclude: [] } })};`,
  );
  const { VITEST: _, TOLLGATE_TEST_COSTS: __, ...env } = process.env;
  const args = [
    "test/run.ts",
    "--tier",
    tier,
    "--quick",
    "--no-tools",
    "--config",
    config,
    "planted",
  ];
  return new Promise((resolve) =>
    execFile(process.execPath, args, { cwd: root, env }, (error, out) =>
      resolve({ code: error ? Number(error.code) : 0, out }),
    ),
  );
}

it.each([
  ["nightly", 1, 1, "0 passed, 1 failed"],
  ["commit", 1, 0, "1 passed, 0 failed"],
] as const)(
  "a %s run with a test that fails %i times ends with %i",
  async (tier, failures, code, last) => {
    const ended = await ran(tier, failures);
    expect([ended.code, ended.out.trim().split("\n").at(-1)], ended.out).toEqual([code, last]);
    expect(/^flaky .*planted/m.test(ended.out)).toBe(failures === 1);
  },
);

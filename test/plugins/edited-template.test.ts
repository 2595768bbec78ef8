// The tests of `tollgate new` check the plugin, not its first form: they still pass when its author
// adds a model list.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { root } from "../kit/process/program.ts";
import { planted, removed } from "./defects/planted.ts";

const CONFIG = `export default { test: {
  pool: "forks",
  testTimeout: 120_000,
  execArgv: ["--conditions=tollgate-source"],
  experimental: { viteModuleRunner: false, nodeLoader: false },
} };`;

it("a native provider that lists models passes the template's tests", async () => {
  const folder = planted({
    in: "provider-native",
    what: "no defect",
    from: "    endpoints: [",
    to: `    async listModels(line) {
      const answer = await line.fetch("models");
      if (!answer.ok) fail("upstream", "Acme has no list.");
      const { data } = (await answer.json()) as { data: readonly { id: string }[] };
      return data.map(({ id }) => ({ model: id, operation: "chat" as const }));
    },
    endpoints: [`,
    check: "",
    says: /./,
  });
  onTestFinished(() => removed(folder));
  symlinkSync(join(root, "node_modules/vitest"), join(folder, "node_modules/vitest"));
  writeFileSync(join(folder, "vitest.config.js"), CONFIG);
  const { stdout, stderr } = await promisify(execFile)(
    join(root, "node_modules/.bin/node"),
    [join(root, "node_modules/vitest/vitest.mjs"), "run", "test/gateway.test.ts"],
    { cwd: folder, env: { PATH: process.env["PATH"], NO_COLOR: "1" } },
  ).catch((error: { stdout: string; stderr: string }) => error);
  expect(stdout, stderr).toMatch(/Tests\s+1 passed/);
});

it("the edits of the rig of a plugin author fit the template", async () => {
  // Within a checkout, git skips patches of a subfolder.
  const folder = mkdtempSync(join(tmpdir(), "tollgate-edited-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(root, "templates/provider-native"), folder, { recursive: true });
  const hour = join(root, "test/rig/authoring/hour");
  const { stderr } = await promisify(execFile)(
    "git",
    ["apply", "--check", "--verbose", join(hour, "edit.patch"), join(hour, "tests.patch")],
    { cwd: folder, env: { PATH: process.env["PATH"], LC_ALL: "C" } },
  );
  expect(stderr.match(/^Checking patch/gm)).toHaveLength(4);
  expect(stderr).not.toContain("Skipped");
});

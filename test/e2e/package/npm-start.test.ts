// A gateway started by npm ends with npm: npm sends signals to a shell, which does not forward
// them.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { isAlive } from "../../kit/process/processes.ts";
import { COMPILE_CACHE_ENV, root } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";

it("a signal to npm stops the gateway", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-npm-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(
    join(dir, "gateway.yaml"),
    "listen: { port: 0 }\nproviders: { demo: { use: demo } }\n",
  );
  const node = join(root, "node_modules/.bin/node");
  const bin = join(root, "src/cli/bin.ts");
  // Like a shell that does not replace itself by the program.
  const start = `"${node}" --conditions=tollgate-source "${bin}" serve; true`;
  writeFileSync(join(dir, "package.json"), JSON.stringify({ scripts: { start } }));
  const npm = spawn("npm", ["start", "--silent"], {
    cwd: dir,
    env: { PATH: process.env["PATH"] ?? "", HOME: dir, ...COMPILE_CACHE_ENV },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const out of [npm.stdout, npm.stderr])
    out.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const stateDir = join(dir, ".tollgate");
  await until(async () => {
    const status = await callControl(stateDir, "status").catch(() => undefined);
    return status !== undefined;
  });
  const { pid } = (await callControl(stateDir, "status")) as unknown as { pid: number };
  onTestFinished(() => void (isAlive(pid) && process.kill(pid, "SIGKILL")));
  npm.kill("SIGTERM");
  await until(() => !isAlive(pid));
  expect(said).toContain("npm exited");
});

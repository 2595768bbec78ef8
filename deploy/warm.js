// Starts the gateway of this package once and ends it while an image is built, so that V8's compiled code is cached for later
// starts.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const program = join(import.meta.dirname, "../dist/src/cli/bin.js");
const folder = mkdtempSync(join(tmpdir(), "tollgate-warm-"));
const at = ["--state-dir", folder];
const quiet = "--disable-sigusr1";
const run = (...args) => spawnSync(process.execPath, [quiet, program, ...args], { cwd: folder });

const gateway = spawn(process.execPath, [quiet, program, "serve", "--port", "0", ...at], {
  cwd: folder,
  stdio: "inherit",
});
const ended = new Promise((resolve) => gateway.once("exit", resolve));
for (let tries = 0; run("status", "--quiet", ...at).status !== 0; tries++) {
  if (gateway.exitCode !== null || tries > 300) throw new Error("The gateway does not start.");
  await sleep(200);
}
// Frequent commands in a container are cached too.
run("check");
gateway.kill("SIGTERM");
const code = await ended;
rmSync(folder, { recursive: true, force: true });
process.exitCode = code === 0 ? 0 : 1;

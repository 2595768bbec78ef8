// A socket from systemd: the first connection starts the gateway, its workers share the socket, and
// a replaced gateway hands it over. Skipped without systemd.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { COMPILE_CACHE_ENV, programArgs, root } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";
import { freePort } from "../../kit/process/ports.ts";

const isThere = spawnSync("systemd-socket-activate", ["--version"]).status === 0;

it.skipIf(!isThere)("works with systemd, with workers, and across an upgrade", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-activated-"));
  const file = join(dir, "gateway.yaml");
  writeFileSync(
    file,
    "workers: 2\nshutdown: { timeout: 5s }\nproviders: { demo: { use: demo } }\n",
  );
  const port = await freePort();
  const node = join(root, "node_modules/.bin/node");
  const program = [node, ...programArgs(), "serve", "-c", file];
  const child = spawn(
    "systemd-socket-activate",
    ["-l", `127.0.0.1:${port}`, "--fdname=clients", ...program],
    {
      cwd: dir,
      env: { PATH: process.env["PATH"] ?? "", HOME: dir, ...COMPILE_CACHE_ENV },
      stdio: "ignore",
    },
  );
  const stateDir = join(dir, ".tollgate");
  const status = async () => (await callControl(stateDir, "status")) as unknown as GatewayStatus;
  onTestFinished(async () => {
    const last = await status().catch(() => undefined);
    for (const pid of [child.pid!, last?.pid ?? 0])
      if (pid > 0)
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It has ended.
        }
    rmSync(dir, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  // Nothing runs yet. The connection waits until it does.
  await until(
    () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    () => "it is started",
  );
  await until(
    () => existsSync(join(stateDir, "first-key")),
    () => "its first key",
  );
  const key = readFileSync(join(stateDir, "first-key"), "utf8").trim();
  const ask = async () => {
    const res = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        connection: "close",
      },
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hello." }] }),
    });
    await res.arrayBuffer();
    return res.status;
  };
  const twenty = () => Promise.all(Array.from({ length: 20 }, ask));
  expect(new Set(await twenty())).toEqual(new Set([200]));
  const before = await status();
  expect(before).toMatchObject({ pid: child.pid, workers: [{}, {}] });
  process.kill(before.pid, "SIGUSR2");
  await until(
    async () => (await status().catch(() => before)).pid !== before.pid,
    () => "another one serves",
  );
  expect(new Set(await twenty())).toEqual(new Set([200]));
});

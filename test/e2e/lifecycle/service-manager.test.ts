// Messages of a replaced gateway to the service manager, received by a program in place of
// systemd-notify. A manager ends the service with the main process that it knows, so it must know
// the next one before the previous one ends.
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { isAlive } from "../../kit/process/processes.ts";
import { createTestFolder } from "../../kit/process/command-line.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

it("is notified of the new main process before the old one ends, and stops the new one", async () => {
  await using here = await createTestFolder();
  const [words, bin] = [join(here.path, "words"), join(here.path, "bin")];
  await writeFile(words, "");
  await mkdir(bin);
  // Slow, like on a busy machine. Each line is one run.
  const program = join(bin, "systemd-notify");
  await writeFile(program, `#!/bin/sh\nsleep 0.7\necho "$*" >> ${words}\n`);
  await chmod(program, 0o755);
  const said = () => readFile(words, "utf8");
  await using gateway = await startDaemon({
    yaml: "shutdown: { timeout: 5s }\nproviders: { demo: { use: demo } }\n",
    env: { NOTIFY_SOCKET: join(here.path, "socket"), PATH: `${bin}:${process.env["PATH"]}` },
  });
  await until(async () => (await said()) !== "");
  expect(await said()).toMatch(
    new RegExp(`^READY=1 MAINPID=${gateway.pid} STATUS=ready at http\\S+, generation 1, 0 in`),
  );
  process.kill(gateway.pid, "SIGUSR2");
  const atTheEnd = gateway.exit.then(said);
  let next = gateway.pid;
  await until(async () => {
    const status = await gateway.ask("status").catch(() => undefined);
    next = (status as GatewayStatus | undefined)?.pid ?? next;
    return next !== gateway.pid;
  });
  onTestFinished(() => void (isAlive(next) && process.kill(next, "SIGKILL")));
  expect(await atTheEnd).toContain(`MAINPID=${next}`);
  await until(async () => (await said()).includes(`READY=1 MAINPID=${next}`));
  process.kill(next, "SIGTERM");
  await until(() => !isAlive(next));
  await until(async () => (await said()).endsWith("STOPPING=1 STATUS=stopping\n"));
});

// SIGUSR1 opens Node's debugger: any user of the machine can connect to it and run code in that
// process. No process of a running gateway opens it, whichever receives the signal, and none ends.
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { childrenOf, isAlive } from "../../kit/process/processes.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { GUARD } from "../plugins/broken-plugins.ts";

const yaml = `workers: 2
frontends: [chat-completions]
middleware: [auth, { use: ./guard.ts, isolate: child }]
providers: { demo: { use: demo } }
`;

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
  });

it("no gateway process opens it, and none ends: primary, workers, children", async () => {
  await using at = await startDaemon({ yaml, files: { "guard.ts": GUARD, "named.txt": "n" } });
  const all = [{ pid: at.pid, args: "" }, ...childrenOf(at.pid)].filter(
    ({ pid, args }) => pid === at.pid || /^[^ ]*node --/.test(args),
  );
  const programs = all.map(
    ({ args }) => /(bin|worker|plugin-process)\.[jt]s/.exec(args)?.[1] ?? "bin",
  );
  expect(new Set(programs)).toEqual(new Set(["bin", "worker", "plugin-process"]));
  for (const { pid } of all) {
    const words = readFileSync(`/proc/${pid}/cmdline`, "latin1");
    const told = words + readFileSync(`/proc/${pid}/environ`, "latin1");
    // This test starts the primary, without the option.
    if (pid !== at.pid) expect(told.includes("--disable-sigusr1"), words).toBe(true);
    process.kill(pid, "SIGUSR1");
  }
  // An ordinary program has opened one by then.
  const program = "console.log('up'); setInterval(() => {}, 1_000)";
  const other = spawn(process.execPath, ["--inspect-port=0", "-e", program]);
  onTestFinished(() => void other.kill("SIGKILL"));
  let said = "";
  for (const out of [other.stdout, other.stderr])
    out.on("data", (text: Buffer) => (said += text.toString()));
  await until(() => said.includes("up"));
  other.kill("SIGUSR1");
  await until(() => said.includes("Debugger listening"));
  expect(all.filter(({ pid }) => !isAlive(pid))).toEqual([]);
  expect(await answers(9229)).toBe(false);
  const status = (await at.ask("status")) as { workers: readonly object[] };
  expect(status.workers).toHaveLength(2);
  expect(at.log.map(({ msg }) => msg)).not.toContain("worker replaced");
});

// A child process in a PID namespace of its own cannot address any process of the gateway. Without
// such namespaces the test is skipped. The replaced functions of `cli/signals.ts` are tested
// everywhere (test/e2e/plugins/isolated-plugins.test.ts).
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { pidNamespacePrefix } from "../../../src/isolation/child-process.ts";

const SIGNALS = ["SIGKILL", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGSTOP", 0] as const;

it("signals no foreign process, by any number", async (t) => {
  const [program, ...words] = await pidNamespacePrefix();
  if (program === undefined) return t.skip("no namespaces here");
  const script = `
    const reached = [];
    for (const pid of ${JSON.stringify([process.pid, process.ppid])})
      for (const signal of ${JSON.stringify(SIGNALS)})
        try { process.kill(pid, signal); reached.push([pid, signal]); } catch (error) { if (error.code !== "ESRCH") throw error; }
    process.stdout.write(JSON.stringify({ reached, pid: process.pid, parent: process.ppid }));`;
  const out = execFileSync(program, [...words, process.execPath, "-e", script], {
    env: {},
    encoding: "utf8",
  });
  expect(JSON.parse(out)).toEqual({ reached: [], pid: 1, parent: 0 });
});

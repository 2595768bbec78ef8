// The watchdog, in a small program. `test/e2e/lifecycle/watchdog.test.ts` tests it in a gateway.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../kit/process/program.ts";

const FILE = join(root, "src/runtime/health/event-loop-watchdog.ts");

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What the watchdog logged, if anything. */
  readonly line?: { msg: string; level: string; at: string[] };
}

/** Runs a program whose event loop may be blocked for 500 ms. */
function run(body: string): Promise<Ended> {
  const program = `
    import { startEventLoopWatchdog } from ${JSON.stringify(FILE)};
    const watchdog = startEventLoopWatchdog({ isPretty: false, maxBlockedMs: 500, intervalMs: 20 });
    ${body}`;
  const args = ["--conditions=tollgate-source", "--input-type=module", "--eval", program];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: root }, (_error, out) => {
      const { exitCode: code, signalCode: signal } = child;
      resolve({ code, signal, ...(out.trim() && { line: JSON.parse(out) }) });
    });
  });
}

describe("the watchdog", () => {
  it("kills a process whose event loop is blocked, and logs the location", async () => {
    const { signal, line } = await run(`
      const cell = new Int32Array(new SharedArrayBuffer(4));
      function standStill() { for (;;) Atomics.wait(cell, 0, 0, 10); }
      setTimeout(standStill, 50);`);
    expect(signal).toBe("SIGKILL");
    expect(line).toMatchObject({
      level: "error",
      msg: expect.stringContaining("the event loop was blocked for 0.5 s"),
    });
    expect(line!.at[0]).toMatch(/^standStill /);
  });

  it("kills a process that does not exit within its remaining time", async () => {
    const { signal, line } = await run(`
      setInterval(() => {}, 10);
      watchdog.limitRemainingTime(200);`);
    expect([signal, line!.msg]).toEqual([
      "SIGKILL",
      expect.stringContaining("did not exit in time"),
    ]);
  });

  it("does not kill a process whose event loop runs", async () => {
    expect(await run("setTimeout(() => process.exit(7), 1_000);")).toEqual({
      code: 7,
      signal: null,
    });
  });
});

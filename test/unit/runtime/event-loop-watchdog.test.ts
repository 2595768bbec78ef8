// The watchdog, in a small program. `test/e2e/lifecycle/watchdog.test.ts` tests it in a gateway.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { root } from "../../kit/process/program.ts";

const FILE = join(root, "src/runtime/health/event-loop-watchdog.ts");

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What the watchdog logged, if anything. */
  readonly line?: { msg: string; level: string; at: string[] };
}

/** Runs a program whose event loop may be blocked for a second. */
function run(body: string): Promise<Ended> {
  // The options of a program in the command line would be those of its threads, too.
  const folder = mkdtempSync(join(tmpdir(), "tollgate-watchdog-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "program.mjs");
  writeFileSync(
    program,
    `import { startEventLoopWatchdog } from ${JSON.stringify(FILE)};
    const watchdog = startEventLoopWatchdog({ isPretty: false, maxBlockedMs: 1_000, intervalMs: 500 });
    ${body}`,
  );
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program], (_error, out) => {
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
      msg: expect.stringContaining("the event loop was blocked for 1 s"),
    });
    expect(line!.at[0]).toMatch(/^standStill /);
  });

  it("kills a process that does not exit within its remaining time", async () => {
    const { signal, line } = await run(`
      setInterval(() => {}, 10);
      watchdog.limitRemainingTime(1_000);`);
    expect([signal, line!.msg]).toEqual([
      "SIGKILL",
      expect.stringContaining("did not exit in time"),
    ]);
  });

  it("does not kill a process whose event loop runs", async () => {
    expect(await run("setTimeout(() => process.exit(7), 2_000);")).toEqual({
      code: 7,
      signal: null,
    });
  });
});

// glibc's settings for large blocks. The rig `attack`, which takes longer than a test, shows that
// memory is returned after large bodies.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { startDaemon } from "../../kit/process/daemon.ts";

const YAML = "frontends: [chat-completions]\nproviders: { demo: { use: demo } }\nworkers: 2\n";

/** What the workers of a gateway were started with, from the system. */
function thresholdsOfChildren(pid: number): (string | undefined)[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children.split(" ").map((child) =>
    readFileSync(`/proc/${child}/environ`, "utf8")
      .split("\0")
      .find((word) => word.startsWith("MALLOC_MMAP_THRESHOLD_="))
      ?.replace(/^.*=/, ""),
  );
}

const SETUP = new URL("../../../src/cli/support/process-setup.ts", import.meta.url).href;

/**
 * Applies the settings and then allocates 4 MiB. glibc maps such a block separately, unless its
 * threshold is higher. Prints each execution, and where the block is.
 */
const PROGRAM = `
import { readFileSync } from "node:fs";
import { applyMallocSettings, completeMallocSettings } from ${JSON.stringify(SETUP)};
process.stderr.write("executed,");
applyMallocSettings(["serve"]);
completeMallocSettings();
const { malloc } = getBuiltinModule("node:ffi").dlopen(null, { malloc: { arguments: ["u64"], return: "u64" } }).functions;
const at = BigInt(malloc(4n * 1024n ** 2n));
const [, from, to] = /^(\\w+)-(\\w+) .*\\[heap\\]$/m.exec(readFileSync("/proc/self/maps", "utf8"));
console.log(at >= BigInt("0x" + from) && at < BigInt("0x" + to) ? "heap" : "mapped");
`;

function probe({ env = {}, hidden = "" }: { env?: Record<string, string>; hidden?: string } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-allocator-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, "program.mjs");
  // The settings cannot find the module in this process, but the program can.
  const hide = hidden && `process.getBuiltinModule = () => ${hidden};`;
  const start = `globalThis.getBuiltinModule = process.getBuiltinModule; ${hide}\n`;
  writeFileSync(join(dir, "first.mjs"), start);
  writeFileSync(file, `import "./first.mjs";${PROGRAM}`);
  const { stdout, stderr } = spawnSync(process.execPath, [file], {
    env: { PATH: process.env["PATH"], ...env },
    encoding: "utf8",
  });
  return {
    block: stdout.trim(),
    executions: stderr.split("executed,").length - 1,
    warnings: stderr.split("ExperimentalWarning").length - 1,
  };
}

describe.skipIf(process.platform !== "linux")("on Linux", () => {
  test("the workers of a gateway start with the settings", async () => {
    await using daemon = await startDaemon({ yaml: YAML });
    expect(thresholdsOfChildren(daemon.pid)).toEqual(["8388608", "8388608"]);
    expect(daemon.output()).not.toContain("Warning");
  });

  test("keeps what an operator set", async () => {
    await using daemon = await startDaemon({
      yaml: YAML,
      env: { MALLOC_MMAP_THRESHOLD_: "70000" },
    });
    expect(thresholdsOfChildren(daemon.pid)).toEqual(["70000", "70000"]);
  });

  test("the process is executed once, and prints no warning", () => {
    expect(probe()).toEqual({ block: "heap", executions: 1, warnings: 0 });
  });

  test.each([
    ["does not exist", "undefined"],
    ["changed", "({ dlopen: () => { throw new Error() } })"],
  ])("it is executed again if the module for foreign functions %s", (_, hidden) => {
    expect(probe({ hidden })).toMatchObject({ block: "heap", executions: 2 });
  });

  test.each([
    { MALLOC_MMAP_THRESHOLD_: "70000" },
    { MALLOC_TRIM_THRESHOLD_: "70000" },
    { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=70000" },
    { GLIBC_TUNABLES: "glibc.malloc.check=0:glibc.malloc.trim_threshold=70000" },
  ])("keeps what an operator set in its own process: %j", (env) => {
    expect(probe({ env })).toMatchObject({ block: "mapped", executions: 1 });
  });
});

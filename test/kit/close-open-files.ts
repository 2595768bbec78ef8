// Node ends the process if the garbage collector closes a file that a plugin or a test left open.
// So a test file closes all files that it opened in the temporary directory and all handles of
// /dev/null. Many test files share a process, so a file also restores the globals that it replaced.
import { readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, expect } from "vitest";
import { until } from "./wait.ts";

const open = (): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  for (const fd of readdirSync("/proc/self/fd"))
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      if (path.startsWith(`${tmpdir()}/`) || path === "/dev/null") found.set(fd, path);
    } catch {
      // Closed since the list was read.
    }
  return found;
};

/** Globals of Node or of browsers. */
const GLOBALS = ["fetch", "setTimeout", "Date", "document", "location", "history"] as const;
const globals = () => GLOBALS.map((name) => [name, Reflect.get(globalThis, name)] as const);
/** Values at the start of the process, because some are replaced after the last hook of a file. */
const atStart: ReturnType<typeof globals> = ((globalThis as Record<symbol, unknown>)[
  Symbol.for("tollgate.test.globals")
] ??= globals()) as never;
const checkGlobals = (file: string) =>
  expect(
    globals().flatMap(([name, value], i) => (value === atStart[i]![1] ? [] : [name])),
    `globals that ${file} replaced`,
  ).toEqual([]);
beforeAll(() => checkGlobals("an earlier file of this process"));
afterAll(() => checkGlobals("this file"));

if (process.platform === "linux") {
  let before: ReadonlyMap<string, string>;
  beforeAll(() => void (before = open()));
  afterAll(async () => {
    const left = () => [...open()].filter(([fd, path]) => before.get(fd) !== path);
    // Terminated threads may need a moment to end.
    await until(
      () => left().length === 0,
      () =>
        `left open: ${left()
          .map(([, path]) => path)
          .join(" ")}`,
    );
  });
}

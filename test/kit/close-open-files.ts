// A file that a plugin or a test leaves open is closed by a collection, whenever one comes, and Node ends the process for it. So a file of tests
// closes what it has opened under the folder of passing things, and what it has opened of /dev/null.
// Many files of tests share a process, so a file also restores the globals that it replaced.
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
      // Closed since it was listed.
    }
  return found;
};

/** Globals that Node has, or that only browsers have. */
const GLOBALS = ["fetch", "setTimeout", "Date", "document", "location", "history"] as const;
const globals = () => GLOBALS.map((name) => [name, Reflect.get(globalThis, name)] as const);
const atStart = globals();
afterAll(() => {
  const replaced = globals().filter(([, value], i) => value !== atStart[i]![1]);
  expect(
    replaced.map(([name]) => name),
    "globals that this file replaced",
  ).toEqual([]);
});

if (process.platform === "linux") {
  let before: ReadonlyMap<string, string>;
  beforeAll(() => void (before = open()));
  afterAll(async () => {
    const left = () => [...open()].filter(([fd, path]) => before.get(fd) !== path);
    // Threads that were told to end may take a moment.
    await until(
      () => left().length === 0,
      () =>
        `left open: ${left()
          .map(([, path]) => path)
          .join(" ")}`,
    );
  });
}

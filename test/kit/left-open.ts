// A file that a plugin or a test leaves open is closed by a collection, whenever one comes, and Node ends the process for it. So a file of tests
// closes what it has opened under the folder of passing things, and what it has opened of /dev/null.
import { readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, beforeAll } from "vitest";
import { until } from "./waits.ts";

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

// The command line with a gateway of several processes: only the list of processes differs.
import { expect, test } from "vitest";
import { startDaemon } from "../kit/process/daemon.ts";
import { runTollgate } from "../kit/process/command-line.ts";

test("check accepts it, and status lists each process", async () => {
  await using gateway = await startDaemon({
    yaml: "workers: 2\nproviders:\n  demo: { use: demo }\n",
  });
  expect((await runTollgate(gateway, ["check"])).out).toContain("is valid");
  const { out } = await runTollgate(gateway, ["status"]);
  expect(out).toMatch(/worker 1 +pid \d+, since .*, 0 in flight\n.*worker 2 +pid \d+/);
});

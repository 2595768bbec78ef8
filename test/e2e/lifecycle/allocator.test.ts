// glibc's settings for large blocks. The rig `attack`, which takes longer than a test, shows that
// memory is returned after large bodies.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startDaemon } from "../../kit/process/daemon.ts";

const YAML = "frontends: [chat-completions]\nproviders: { demo: { use: demo } }\nworkers: 2\n";

/** Environment of a process and its children at the start, from the system. */
function given(pid: number): (string | undefined)[] {
  const words = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  const own = words.find((word) => word.startsWith("MALLOC_MMAP_THRESHOLD_="))?.split("=")[1];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [
    own,
    ...children
      .split(" ")
      .filter(Boolean)
      .flatMap((child) => given(Number(child))),
  ];
}

test.skipIf(process.platform !== "linux")(
  "main process and workers return large blocks to the system",
  async () => {
    await using daemon = await startDaemon({ yaml: YAML });
    expect(given(daemon.pid)).toEqual(["8388608", "8388608", "8388608"]);
  },
);

test.skipIf(process.platform !== "linux")("keeps what an operator set", async () => {
  await using daemon = await startDaemon({ yaml: YAML, env: { MALLOC_MMAP_THRESHOLD_: "70000" } });
  expect(given(daemon.pid)).toEqual(["70000", "70000", "70000"]);
});

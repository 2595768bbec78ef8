// A worker dies while the primary passes it a connection: only what was in transit is lost.
import cluster from "node:cluster";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { InMemoryIdempotencyRegistry } from "../../../../src/runtime/services/idempotency-registry.ts";
import { spawnWorker } from "../../../../src/runtime/workers/worker-handle.ts";
import { makeMemory } from "../../../plugins/stores/stores-under-test.ts";

it("a message to a dead worker does not end the primary, and the exit reason is reported", async () => {
  const exec = join(mkdtempSync(join(tmpdir(), "tollgate-member-")), "idle.mjs");
  writeFileSync(
    exec,
    'process.send({ up: true }); process.on("disconnect", () => process.exit());',
  );
  cluster.setupPrimary({ exec, serialization: "advanced", execArgv: [] });
  const { store } = await makeMemory();
  const member = spawnWorker(1, {
    store,
    usageQueries: store,
    apply: store.apply,
    onUnhealthy() {},
    onStoreFailure() {},
    observerSink: {
      reportRequest() {},
      reportRejection() {},
      reportEvent() {},
      processExited() {},
    },
    onTimeout() {},
    pluginPeers: async () => undefined,
    stats: async () => undefined,
    idempotency: new InMemoryIdempotencyRegistry(),
    hasOtherWorkers: () => false,
  });
  const worker = Object.values(cluster.workers!)[0]!;
  await new Promise((up) => worker.process.once("message", up));
  process.kill(member.pid, "SIGKILL");
  // Waits without the event loop: all threads of the worker ended, so its end of the channel is
  // closed, but the primary does not know it yet.
  const dead = () =>
    readFileSync(`/proc/${member.pid}/stat`, "utf8").includes(") Z ") &&
    readdirSync(`/proc/${member.pid}/task`).length === 1;
  while (!dead()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  const broken: unknown[] = [];
  worker.process.prependListener("error", (error) => void broken.push(error));
  // The cluster passes a connection the same way: it does not report whether it was sent.
  for (let i = 0; i < 3; i++) worker.process.send({ connection: i });
  expect(await member.exited).toBe("SIGKILL");
  expect(broken.length).toBeGreaterThan(0);
});

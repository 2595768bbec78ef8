// A connection that was handed to a blocked worker that is then ended: no client waits for it
// forever.
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { reassignPendingConnections } from "../../../../src/runtime/workers/worker-handle.ts";
import { until } from "../../../kit/wait.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-handover-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SERVES = `
import { createServer } from "node:http";
const server = createServer((_req, res) => res.end(String(process.pid))).listen(0, "127.0.0.1", () =>
  process.send({ port: server.address().port }),
);
process.on("disconnect", () => process.exit());
`;

/** Number of workers on one port. */
async function crew(size: number): Promise<{ workers: Worker[]; port: number }> {
  const exec = join(folder, "serves.mjs");
  writeFileSync(exec, SERVES);
  cluster.setupPrimary({ exec, serialization: "advanced", execArgv: [] });
  const workers = Array.from({ length: size }, () => cluster.fork());
  const ports = workers.map(async (worker) => {
    const others = () => workers.some((each) => each !== worker && each.isConnected());
    reassignPendingConnections(worker.process, others);
    return ((await once(worker.process, "message")) as [{ port: number }])[0].port;
  });
  return { workers, port: (await Promise.all(ports))[0]! };
}

/** On its own connection: the process that responded, or the failure. */
const asked = (port: number): Promise<string> =>
  new Promise((resolve) => {
    get({ port, host: "127.0.0.1", agent: false }, (res) => {
      let text = "";
      res.on("data", (part: Buffer) => (text += part.toString()));
      res.on("close", () => resolve(text));
    }).on("error", () => resolve("ended"));
  });

it.each([
  // Workers, blocked workers, clients.
  [2, 1, 6],
  [3, 2, 8],
  [2, 2, 5],
  [1, 1, 3],
])(
  "%i workers of which %i block and are replaced: all of %i clients get a response",
  async (size, ill, n) => {
    const { workers, port } = await crew(size);
    const standing = workers.slice(0, ill).map(({ process: { pid } }) => pid!);
    const well = workers.slice(ill).map(({ process: { pid } }) => String(pid));
    try {
      for (const pid of standing) process.kill(pid, "SIGSTOP");
      const heard: string[] = [];
      const all = Array.from({ length: n }, () => asked(port).then((said) => heard.push(said)));
      // Each blocked worker received one connection, and receives no more.
      if (well.length > 0) await until(() => heard.length === n - ill);
      for (const pid of standing) process.kill(pid, "SIGKILL");
      await until(
        () => heard.length === n,
        () => `${n} clients, of which ${heard.length} have heard`,
      );
      await Promise.all(all);
      for (const said of heard)
        if (well.length > 0) expect(well).toContain(said);
        else expect(said).toBe("ended");
    } finally {
      for (const worker of workers) worker.process.kill("SIGKILL");
      await Promise.all(workers.map((worker) => worker.isDead() || once(worker, "exit")));
    }
  },
);

// Events of a worker at a moment in which the pool does not check. Real processes with configured
// messages.
import cluster from "node:cluster";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { createInMemoryModelLists } from "../../../../src/catalog/model-lists.ts";
import { PriceOverlay } from "../../../../src/catalog/prices/price-overlay.ts";
import type { Services } from "../../../../src/runtime/services.ts";
import { LedgerAvailability } from "../../../../src/runtime/services/ledger-availability.ts";
import { createLedgerQueue } from "../../../../src/runtime/ledger/ledger-queue.ts";
import { WorkerPool } from "../../../../src/runtime/workers/worker-pool.ts";
import type { WorkerGeneration } from "../../../../src/runtime/workers/worker-protocol.ts";
import { createLog } from "../../../../src/lib/log/log.ts";
import { SecretMask } from "../../../../src/lib/log/secret-mask.ts";
import { makeMemory } from "../../../plugins/stores/stores-under-test.ts";
import { until } from "../../../kit/wait.ts";

const LINK = new URL("../../../../src/runtime/workers/ipc-link.ts", import.meta.url).href;

/**
 * `order.env` names a folder, in which it records that it started to prepare, and a file in it that
 * it waits for. It also names the file in which the first one to commit writes its PID, for the
 * second one to kill it.
 */
const PROGRAM = `
import { existsSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createIpcLink } from ${JSON.stringify(LINK)};
let next = 0, now = 0, env = {};
createIpcLink(process, {
  prepareGeneration: async ({ generation: number, env: said }) => {
    env = said;
    if (env.folder) {
      writeFileSync(join(env.folder, "begun-" + number + "-" + process.pid), "");
      await new Promise((done) => {
        const look = () => existsSync(join(env.folder, "go-" + number)) && (watching.close(), done());
        const watching = watch(env.folder, look);
        look();
      });
    }
    next = number;
    return [];
  },
  commitGeneration: async () => {
    now = next;
    const { first } = env;
    if (first === undefined) return;
    const { readFileSync } = await import("node:fs");
    if (!existsSync(first)) return writeFileSync(first, String(process.pid));
    const other = Number(readFileSync(first, "utf8"));
    process.kill(other, "SIGKILL");
    // Until its parent has noticed.
    for (;;) {
      try { process.kill(other, 0); } catch { return; }
      await new Promise((next) => setImmediate(next));
    }
  },
  abandonGeneration() {}, updateModelLists() {}, invalidateKeys() {},
  readStatus: () => ({ pid: process.pid, startedAt: 0, generations: [{ generation: now, inFlight: 0 }], cooldowns: [], quarantinedHooks: [] }),
  stop: () => {
    if (env.stays) throw new Error("The ledger was left with 1 command that it could not write.");
    setImmediate(() => process.exit());
    return 0;
  },
});
process.on("disconnect", () => process.exit());
`;

const order = (number: number, env: WorkerGeneration["env"] = {}): WorkerGeneration => ({
  generation: number,
  file: undefined,
  configTexts: new Map() as never,
  env,
  overrides: {},
});

async function made(size: number, first: WorkerGeneration) {
  const program = join(mkdtempSync(join(tmpdir(), "tollgate-crew-")), "worker.mjs");
  writeFileSync(program, PROGRAM);
  const { store } = await makeMemory();
  const log = createLog({ level: "silent" as never, mask: new SecretMask(), pretty: false });
  const lists = createInMemoryModelLists();
  const observing = { reportRequest() {}, reportEvent() {}, processExited() {} };
  const house = {
    store,
    log,
    modelLists: lists,
    priceOverlay: new PriceOverlay(),
    observerSink: observing,
    idempotency: { ownerExited() {} },
    ledgerQueue: createLedgerQueue(store),
    ledgerAvailability: new LedgerAvailability(),
  } as unknown as Services;
  const broken = vi.fn<(error: Error) => void>();
  const listen = [{ host: "127.0.0.1", port: 0 }] as never;
  return new WorkerPool(
    {
      size,
      program,
      services: house,
      listen,
      inheritedDescriptors: [],
      stopAccepting() {},
      shutdownTimeoutMs: () => 100,

      onFailed: broken,
      onWorkerExit() {},
    },
    first,
  );
}

const pids = () => Object.values(cluster.workers!).map((worker) => worker!.process.pid!);
const generations = async (crew: WorkerPool) =>
  (await crew.status()).map((one) => one.generations[0]!.generation);

let crew: WorkerPool | undefined;
afterEach(() => crew?.destroy());

it("a replacement worker gets a change that the others are building", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-crew-"));
  const go = (number: number) => join(folder, `go-${number}`);
  const begun = (number: number) =>
    readdirSync(folder).filter((name) => name.startsWith(`begun-${number}-`)).length;
  writeFileSync(go(1), "");
  crew = await made(2, order(1, { folder }));
  expect(await crew.open()).toEqual([]);
  rmSync(go(1));
  process.kill(pids()[0]!, "SIGKILL");
  await until(() => begun(1) === 3);
  const changed = crew.changeGeneration(order(2, { folder }), (() => {}) as never);
  await until(() => begun(2) > 0);
  writeFileSync(go(1), "");
  writeFileSync(go(2), "");
  expect(await changed).toEqual([]);
  await until(async () => (await crew!.status()).length === 2);
  expect(await generations(crew)).toEqual([2, 2]);
});

it("a worker that dies while the port opens is not counted", async () => {
  const first = join(mkdtempSync(join(tmpdir(), "tollgate-crew-")), "first");
  crew = await made(2, order(1, { first }));
  await expect(crew.open()).rejects.toThrow("A worker exited (SIGKILL)");
});

it("a shutdown kills workers that do not end", async () => {
  crew = await made(2, order(1, { stays: "yes" }));
  expect(await crew.open()).toEqual([]);
  await crew.close(100);
  expect(pids()).toEqual([]);
});

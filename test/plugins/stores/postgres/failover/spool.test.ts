// Rows that a gateway keeps on its own disk, and what the next one in the same folder reads.
import { appendFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { StoreCommand } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import { LeasedCalls } from "../../../../../plugins/stores/postgres/leases/offline-calls.ts";
import { OfflineMode } from "../../../../../plugins/stores/postgres/offline/offline-mode.ts";
import { resync } from "../../../../../plugins/stores/postgres/resync.ts";
import {
  deleteSpool,
  readLeftSpools,
  Spool,
} from "../../../../../plugins/stores/postgres/offline/spool.ts";
import { until } from "../../../../kit/wait.ts";

let folder: string;
const troubles: unknown[] = [];
const tape = async (instance = "one"): Promise<Spool> => {
  const made = new Spool(folder, instance, (error) => void troubles.push(error));
  await made.open();
  return made;
};
const told = (n: number) => ({ epoch: 1, n, batch: [reserveCommand(`a${n}`)] });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-spool-"));
  troubles.length = 0;
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(folder, { recursive: true, force: true });
});

it("the next process reads sent and owed rows, and none of its own", async () => {
  const one = await tape();
  await one.appendAcknowledged(told(1));
  await one.appendUnsent([settleCommand("a1")]);
  await one.close(false);
  expect(await readLeftSpools(folder, "one")).toEqual([]);
  const [left] = await readLeftSpools(folder, "two");
  expect(left).toEqual({
    instance: "one",
    acknowledged: [told(1)],
    unsent: [[settleCommand("a1")]],
  });
  await deleteSpool(folder, left!);
  expect(await readdir(folder)).toEqual([]);
});

it("skips a truncated last line, and reads all lines before it", async () => {
  const one = await tape();
  await one.appendAcknowledged(told(1));
  await one.appendUnsent([settleCommand("a1")]);
  await one.close(false);
  for (const file of ["replay.1", "unsent"])
    await appendFile(join(folder, "spool-one", file), '{"epoch":1,"n":2,"ba');
  expect(await readLeftSpools(folder, "")).toEqual([
    { instance: "one", acknowledged: [told(1)], unsent: [[settleCommand("a1")]] },
  ]);
});

it("a replayed row is no longer owed", async () => {
  const one = await tape();
  await one.appendUnsent([settleCommand("a1")]);
  await one.clearUnsent();
  await one.appendUnsent([settleCommand("a2")]);
  await one.close(false);
  expect((await readLeftSpools(folder, ""))[0]!.unsent).toEqual([[settleCommand("a2")]]);
});

it("the ring holds a little more than a minute, in order", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const one = await tape();
  for (let n = 1; n <= 24; n++) {
    await one.appendAcknowledged(told(n));
    vi.advanceTimersByTime(15_000);
  }
  await one.close(false);
  const [left] = await readLeftSpools(folder, "");
  expect(left!.acknowledged).toEqual([19, 20, 21, 22, 23, 24].map(told));
  expect(await readdir(join(folder, "spool-one"))).toHaveLength(3);
});

it("files of a ring are read in the order of their numbers", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const one = await tape();
  for (let n = 1; n <= 10; n++) {
    await one.appendAcknowledged(told(n));
    vi.advanceTimersByTime(30_000);
  }
  await one.close(false);
  expect((await readLeftSpools(folder, ""))[0]!.acknowledged).toEqual([8, 9, 10].map(told));
});

it("a ring that cannot be written is reported once, and the gateway continues; owed rows are rejected", async () => {
  const one = await tape();
  await rm(folder, { recursive: true });
  await one.appendAcknowledged(told(1));
  await one.appendAcknowledged(told(2));
  expect(troubles).toHaveLength(1);
  await expect(one.appendUnsent([settleCommand("a1")])).rejects.toThrow("ENOENT");
});

it("a clean shutdown leaves no files", async () => {
  const one = await tape();
  await one.appendAcknowledged(told(1));
  await one.close(true);
  expect(await readdir(folder)).toEqual([]);
});

it("rows that are written while the database returns are replayed too", async () => {
  const written = Promise.withResolvers<void>();
  const file = {
    appendUnsent: () => written.promise,
    clearUnsent: async () => {},
  } as unknown as Spool;
  const slices = { liveGateways: 1, markSpentOffline() {} } as never;
  const outage = new OfflineMode(new LeasedCalls({ maxMs: 60_000 }, slices), () => file);
  outage.begin([]);
  const deciding = outage.decide([settleCommand("a")], (at) => at);
  const heard: StoreCommand[] = [];
  let asked = false;
  const node = {
    resume: async () => (asked = true),
    applyAgain: async (_: unknown, facts: readonly StoreCommand[]) => {
      heard.push(...facts);
      return facts.map(() => ({ ok: true }));
    },
  };
  const over = resync((() => {}) as never, node as never, outage, undefined);
  await until(() => asked);
  await new Promise(setImmediate);
  expect(outage.isActive).toBe(true);
  written.resolve();
  expect(await deciding).toEqual([{ ok: true }]);
  expect(await over).toBe(1);
  expect(heard).toMatchObject([{ do: "settle", attempt: "a" }]);
});

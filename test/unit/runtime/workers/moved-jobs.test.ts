// The records of jobs while the store moves to another process, and from another process.
import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { getFault } from "../../../../src/model/error.ts";
import type { JobRecord } from "../../../../src/plugin/store/job.ts";
import type { Store } from "../../../../src/plugin/store/store.ts";
import { TransferableStore } from "../../../../src/runtime/ledger/transferable-store.ts";
import { createIpcLink, type IpcChannel } from "../../../../src/runtime/workers/ipc-link.ts";
import {
  createRemoteStore,
  createStoreHandlers,
} from "../../../../src/runtime/workers/remote-store.ts";
import { NOON } from "../../../../src/testing/store.ts";
import { makeMemory } from "../../../plugins/stores/stores-under-test.ts";

const record: JobRecord = {
  id: "batch_1",
  kind: "batch",
  key: "alice",
  version: 1,
  createdAt: NOON,
  state: "created",
  dueAt: NOON,
  data: "{}",
};

/** A store in another process: each message is a clone of what was sent. */
function remote(store: Store): Store {
  const ends = [new EventEmitter(), new EventEmitter()] as const;
  const channel = (own: EventEmitter, other: EventEmitter): IpcChannel => ({
    connected: true,
    send: (message) => setImmediate(() => other.emit("message", structuredClone(message))).hasRef(),
    on: (name, hear) => own.on(name, hear),
    once: (name, over) => own.once(name, over),
  });
  createIpcLink(channel(...ends), createStoreHandlers(store, store, store.apply));
  return createRemoteStore(createIpcLink(channel(ends[1], ends[0]), {}));
}

it("jobs wait while the store moves, and then reach the process that has it", async () => {
  const [old, next] = [await makeMemory(), await makeMemory()];
  const moving = new TransferableStore(async () => old.store);
  const { jobs } = await moving.open();
  await jobs!.put(record);
  await moving.close();
  let isWritten = false;
  const waiting = jobs!.put({ ...record, id: "batch_2" }).then(() => (isWritten = true));
  await new Promise(setImmediate);
  expect(isWritten).toBe(false);
  moving.redirectTo(remote(next.store));
  await waiting;
  expect((await jobs!.list({})).items.map(({ id }) => id)).toEqual(["batch_2"]);
  expect(await old.store.jobs!.find("batch_2")).toBe(undefined);
  const [leased] = await jobs!.lease({
    at: NOON,
    owner: "a",
    leaseMs: 1_000,
    limit: 1,
    kinds: ["batch"],
  });
  expect(leased).toEqual({ ...record, id: "batch_2", version: 2, owner: "a", dueAt: NOON + 1_000 });
  expect(await jobs!.nextDueAt(["batch"])).toBe(NOON + 1_000);
  const late = await jobs!.delete("batch_2", 1).catch(getFault);
  expect(late).toMatchObject({ kind: "conflict", code: "version_conflict" });
  await jobs!.delete("batch_2", 2);
  expect(await jobs!.find("batch_2")).toBe(undefined);
});

it("a store without jobs has none, and a worker is told so", async () => {
  const { store } = await makeMemory();
  const without = { ...store, jobs: undefined };
  expect((await new TransferableStore(async () => without).open()).jobs).toBe(undefined);
  const error = await remote(without).jobs!.find("batch_1").catch(getFault);
  expect(error).toMatchObject({ kind: "invalid", code: "no_jobs" });
});

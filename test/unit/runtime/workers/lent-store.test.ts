// Shows that a lent store behaves like a store: it runs the same laws through the channel between
// two processes.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRemoteStore } from "../../../../src/runtime/workers/remote-store.ts";
import {
  createIpcLink,
  type IpcChannel,
  type IpcLink,
} from "../../../../src/runtime/workers/ipc-link.ts";
import { getFault } from "../../../../src/model/error.ts";
import type { Store } from "../../../../src/plugin/store/store.ts";
import { settleCommand, storeChecks } from "../../../../src/testing/store.ts";

/** Starts a process when none is running: if a law crashes it, the next law starts a new one. */
let owner: { child: ChildProcess; link: IpcLink } | undefined;

async function lent(where: string): Promise<Store> {
  if (!owner) {
    const child = fork(new URL("./owner.ts", import.meta.url), {
      execArgv: ["--conditions=tollgate-source"],
      serialization: "advanced",
    });
    owner = { child, link: createIpcLink(child as IpcChannel, {}) };
  }
  await owner.link.call("own", where);
  return createRemoteStore(owner.link);
}

async function crashed(): Promise<void> {
  const child = owner?.child;
  owner = undefined;
  if (!child) return;
  const over = once(child, "exit");
  child.kill("SIGKILL");
  await over;
}

afterAll(crashed);

describe("a borrowed memory store", () => {
  const memory = async () => {
    const store = await lent("memory");
    return { store, crash: async () => store, dispose: async () => {} };
  };
  for (const { name, run } of storeChecks(memory)) it(name, run);
});

describe("a borrowed store on PostgreSQL", () => {
  // Created before the first law: a law that is abandoned while the database starts would continue
  // in the store of the next law.
  beforeAll(async () => void (await lent("postgres")), 240_000);
  // It keeps no accounts and no jobs and checks no limits, and the worker's side cannot know that.
  const lacking = ({ listAccounts: _a, readLimits: _c, jobs: _j, ...store }: Store): Store => store;
  const postgres = async () => {
    const store = lacking(await lent("postgres"));
    return { store, crash: () => lent("postgres again").then(lacking), dispose: async () => {} };
  };
  for (const { name, run } of storeChecks(postgres)) it(name, run);
});

describe("a borrowed sqlite store", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-lent-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let files = 0;
  const sqlite = async () => {
    const file = join(folder, `${++files}.db`);
    const store = await lent(file);
    return { store, crash: () => crashed().then(() => lent(file)), dispose: async () => {} };
  };
  for (const { name, run } of storeChecks(sqlite)) it(name, run);
});

describe("encoding between processes", () => {
  it("keeps kind and code of a fault; a dead owner is an error, now and later", async () => {
    const store = await lent("memory");
    await store.open({ instance: "a" });
    const fault = await store.apply([settleCommand("nobody")]).catch(getFault);
    expect(fault).toMatchObject({ kind: "invalid", code: "unknown_attempt" });
    owner!.child.kill("SIGSTOP");
    const waiting = expect(store.listKeys()).rejects.toThrow("has exited");
    await crashed();
    await waiting;
    await expect(store.listKeys()).rejects.toThrow("has exited");
  });
});

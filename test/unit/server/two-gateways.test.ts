// Two gateways on one store, in one process: each sees what the other does, and a gateway that was
// considered dead continues.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { defineStore, createFault, type Definition, type StoreEvent } from "tollgate/plugin";
import { createGateway } from "../../../src/server/gateway.ts";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import type { Gateway } from "../../../src/runtime/gateway-api.ts";
import { createLog } from "../../../src/lib/log/log.ts";
import { SecretMask } from "../../../src/lib/log/secret-mask.ts";
import { builtin } from "../../../plugins/index.ts";
import { createLoader } from "../../../src/loader/plugin-loader.ts";
import { installTestClock } from "../../kit/clock.ts";
import { until } from "../../kit/wait.ts";
import { sharedLedger, type SharedLedger } from "../../plugins/stores/memory-fleet-store.ts";

const YAML = `
listen: { port: 0 }
log: { level: error }
frontends: [chat-completions, responses]
middleware: [auth]
store: { use: shared }
providers: { demo: {} }
`;

async function started(
  ledger: SharedLedger,
  lines: string[] = [],
  yaml: string = YAML,
): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-instance-"));
  const file = join(folder, "gateway.yaml");
  writeFileSync(file, yaml);
  const shared: Definition = defineStore({
    api: 1,
    name: "shared",
    summary: "One ledger for all",
    setup: () => ledger.store(),
  });
  const load = createLoader({ builtin: builtin as never, hostModules: {} });
  const mask = new SecretMask();
  const gateway = await createGateway({
    configFile: file,
    env: {},
    log: createLog({ level: "warn", pretty: false, mask, write: (line) => void lines.push(line) }),
    mask,
    version: "1.2.3",
    watchesConfig: false,
    loadPlugin: async (use, kind, from) =>
      use === "shared" ? { definition: shared, from: "test" } : load(use, kind, from),
  });
  if ("problems" in gateway) throw new Error(JSON.stringify(gateway.problems));
  onTestFinished(async () => {
    await gateway.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  return gateway;
}

const ask = async (gateway: Gateway, key: string): Promise<number> => {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  });
  await answer.text();
  return answer.status;
};

it("of two that start together, one creates the first key, and both accept it", async () => {
  const ledger = sharedLedger();
  const both = await Promise.all([started(ledger), started(ledger)]);
  const keys = both.flatMap(({ firstKey }) => (firstKey === undefined ? [] : [firstKey]));
  expect(keys).toHaveLength(1);
  for (const one of both) expect(await ask(one, keys[0]!)).toBe(200);
  expect((await ledger.store().listKeys()).items).toHaveLength(1);
});

it("an item of a response of one is found by the other", async () => {
  const ledger = sharedLedger({ durationMs: 15_000, heartbeatMs: 20 });
  const [a, b] = await Promise.all([started(ledger), started(ledger)]);
  const key = a.firstKey ?? b.firstKey!;
  const create = async (gateway: Gateway, body: object) => {
    const answer = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "demo/echo", ...body }),
    });
    return (await answer.json()) as { id: string; output: { id: string }[] };
  };
  const { output } = await create(a, { input: "Hello." });
  const item = { type: "item_reference", id: output[0]!.id };
  const input = [item, { role: "user", content: "And now?" }];
  await until(async () => "output" in (await create(b, { input })));
});

it("a key that is revoked at one is rejected at the other when the command returns", async () => {
  const ledger = sharedLedger();
  const [a, b] = [await started(ledger), await started(ledger)];
  const { secret } = (await callControl(a.stateDir, "keys.create", { name: "x" })) as {
    secret: string;
  };
  expect([await ask(a, secret), await ask(b, secret)]).toEqual([200, 200]);
  await callControl(a.stateDir, "keys.revoke", { id: "x" });
  expect([await ask(a, secret), await ask(b, secret)]).toEqual([401, 401]);
});

it("of two concurrent changes of a key, one is rejected, and a revocation stays", async () => {
  const ledger = sharedLedger();
  const a = await started(ledger);
  const held = Promise.withResolvers<void>();
  let asked = false;
  const slow = ledger.store();
  const b = await started({
    ...ledger,
    store: () => ({
      ...slow,
      async apply(batch) {
        if (batch.some((c) => c.do === "key" && c.key.name === "y")) {
          asked = true;
          await held.promise;
        }
        return slow.apply(batch);
      },
    }),
  });
  const { secret } = (await callControl(a.stateDir, "keys.create", { name: "x" })) as {
    secret: string;
  };
  const renamed = callControl(b.stateDir, "keys.update", { id: "x", name: "y" });
  const told = expect(renamed).rejects.toThrow(/was changed by someone else/);
  await until(() => asked);
  await callControl(a.stateDir, "keys.revoke", { id: "x" });
  held.resolve();
  await told;
  expect([await ask(a, secret), await ask(b, secret)]).toEqual([401, 401]);
});

it("an account that is revoked at one rejects its keys at the other soon afterwards", async () => {
  const ledger = sharedLedger();
  const [a, b] = [await started(ledger), await started(ledger)];
  await callControl(a.stateDir, "accounts.create", { id: "team" });
  const { secret } = (await callControl(b.stateDir, "keys.create", { account: "team" })) as {
    secret: string;
  };
  expect([await ask(a, secret), await ask(b, secret)]).toEqual([200, 200]);
  await callControl(b.stateDir, "accounts.close", { id: "team" });
  expect(await ask(b, secret)).toBe(403);
  await until(async () => (await ask(a, secret)) === 403);
});

it("status lists the instances with their reports", async () => {
  const ledger = sharedLedger();
  const [a] = [await started(ledger), await started(ledger)];
  const { instances } = await a.status();
  expect(instances).toHaveLength(2);
  for (const { info, state } of instances!)
    expect([info, state]).toEqual([
      { version: "1.2.3", host: expect.any(String), pid: process.pid, program: "gateway" },
      "live",
    ]);
});

it("an instance whose lease expired reopens the store, and no client notices", async () => {
  const ledger = sharedLedger();
  const a = await started(ledger);
  const key = a.firstKey!;
  expect(await ask(a, key)).toBe(200);
  const [{ instance }] = (await a.status()).instances as never as [{ instance: string }];
  ledger.bury(instance);
  expect(await ask(a, key)).toBe(200);
  expect((await a.status()).instances).toMatchObject([{ instance, state: "live" }]);
});

it("heartbeats have the interval that the store requires", async () => {
  const ledger = sharedLedger({ durationMs: 1_000, heartbeatMs: 20 });
  const a = await started(ledger);
  const [{ instance }] = (await a.status()).instances as never as [{ instance: string }];
  ledger.bury(instance);
  // No request is sent to it: it finds out by itself.
  await until(async () => (await a.status()).instances?.[0]?.state === "live");
});

it("a store without an audit log is logged when it is opened", async () => {
  const lines: string[] = [];
  await started(sharedLedger(), lines, YAML.replace("level: error", "level: warn"));
  await until(() => lines.join("").includes("has no audit log"));
});

it("the fleet lists each gateway with version and clock, marks the queried one, and shows differences", async () => {
  const ledger = sharedLedger({ durationMs: 15_000, heartbeatMs: 20 });
  const a = await started(ledger);
  await started(ledger, [], `${YAML}shutdown: 7s\n`);
  await until(async () => (await a.fleet()).nodes.every(({ info }) => info?.generation === 1));
  const { nodes, warnings } = await a.fleet();
  expect(
    nodes.map(({ isSelf, state, syncLagMs }) => [isSelf, state, syncLagMs]).toSorted(),
  ).toEqual([
    [false, "live", 0],
    [true, "live", 0],
  ]);
  const own = nodes.find(({ isSelf }) => isSelf)!;
  expect(own.info).toMatchObject({ url: a.url, config: (await a.status()).configHash });
  expect(Math.abs(own.clockAheadMs!)).toBeLessThan(30_000);
  expect(warnings).toEqual(["2 configs are in use at the same time"]);
});

it("a store of one process is a fleet of one", async () => {
  const alone = sharedLedger();
  const { listInstances: _, ...store } = alone.store();
  const a = await started({ ...alone, store: () => store });
  const { nodes, warnings } = await a.fleet();
  expect(nodes).toMatchObject([{ isSelf: true, state: "live", info: { url: a.url } }]);
  expect(warnings).toEqual([]);
});

it("a store that reports itself unreachable: 503 immediately, nothing sent, and service when it responds", async () => {
  const ledger = sharedLedger();
  let gone = false;
  let hear: ((news: StoreEvent) => void) | undefined;
  const store = ledger.store();
  const a = await started({
    ...ledger,
    store: () => ({
      ...store,
      open: (owner, heard) => store.open(owner, (hear = heard)),
      apply: async (batch) => {
        if (gone) throw new Error("connection refused");
        return store.apply(batch);
      },
      findKey: async (digest) => (gone ? new Promise<never>(() => {}) : store.findKey(digest)),
    }),
  });
  const key = a.firstKey!;
  expect(await ask(a, key)).toBe(200);
  gone = true;
  hear!({ type: "unavailable", reason: "connection refused" });
  // A store that has to be asked would hold each of them for some time.
  const time = installTestClock();
  time.stop();
  for (const each of [key, key, key]) expect(await ask(a, each)).toBe(503);
  time.go();
  expect((await store.listEntries({})).items).toHaveLength(2);
  gone = false;
  await until(async () => (await ask(a, key)) === 200);
});

it("waits for a store that starts later; a rejection ends the start", async () => {
  const ledger = sharedLedger();
  const store = ledger.store();
  const lines: string[] = [];
  let tries = 0;
  const late = {
    ...store,
    async open(...of: Parameters<typeof store.open>) {
      if (++tries < 3) throw new Error("connection refused");
      return store.open(...of);
    },
  };
  const a = await started({ ...ledger, store: () => late }, lines);
  expect(await ask(a, a.firstKey!)).toBe(200);
  // A repetition is not reported again.
  expect(lines.join("").match(/store unavailable at startup/g)).toHaveLength(1);
  const no = async () => createFault("invalid", "Its form is newer than this gateway.");
  const refused = { ...store, open: () => no().then((error) => Promise.reject(error)) };
  await expect(started({ ...ledger, store: () => refused })).rejects.toThrow(/newer/);
  const { lease: _, ...alone } = late;
  tries = 0;
  await expect(started({ ...ledger, store: () => alone })).rejects.toThrow(/refused/);
});

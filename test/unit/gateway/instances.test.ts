// Two gateways on one store, in one process: what one does the other one knows, and a gateway that was taken for dead goes on.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { defineStore, type Definition } from "tollgate/plugin";
import { createGateway } from "../../../src/gateway/gateway.ts";
import { askControl } from "../../../src/gateway/control/asking.ts";
import type { Gateway } from "../../../src/gateway/types.ts";
import { createLog } from "../../../src/lib/log.ts";
import { Mask } from "../../../src/lib/mask.ts";
import { builtin } from "../../../plugins/index.ts";
import { createLoader } from "../../../src/loader/load.ts";
import { until } from "../../kit/waits.ts";
import { sharedLedger, type SharedLedger } from "../../plugins/stores/several.ts";

const YAML = `
listen: { port: 0 }
log: { level: error }
frontends: [chat-completions]
middleware: [auth]
store: { use: shared }
providers: { demo: {} }
`;

async function started(ledger: SharedLedger): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-instance-"));
  const file = join(folder, "gateway.yaml");
  writeFileSync(file, YAML);
  const shared: Definition = defineStore({
    api: 1,
    name: "shared",
    summary: "One ledger for all",
    setup: () => ledger.store(),
  });
  const load = createLoader({ builtin: builtin as never, host: {} });
  const mask = new Mask();
  const gateway = await createGateway({
    file,
    env: {},
    log: createLog({ level: "error", pretty: false, mask }),
    mask,
    version: "1.2.3",
    watch: false,
    load: async (use, kind, from) =>
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

it("of two that start at once, one makes the first key, and both know it", async () => {
  const ledger = sharedLedger();
  const both = await Promise.all([started(ledger), started(ledger)]);
  const keys = both.flatMap(({ firstKey }) => (firstKey === undefined ? [] : [firstKey]));
  expect(keys).toHaveLength(1);
  for (const one of both) expect(await ask(one, keys[0]!)).toBe(200);
  expect((await ledger.store().keys()).items).toHaveLength(1);
});

it("a key that is revoked at one is refused at the other by the time the command answers", async () => {
  const ledger = sharedLedger();
  const [a, b] = [await started(ledger), await started(ledger)];
  const { secret } = (await askControl(a.stateDir, "keys.create", { name: "x" })) as {
    secret: string;
  };
  expect([await ask(a, secret), await ask(b, secret)]).toEqual([200, 200]);
  await askControl(a.stateDir, "keys.revoke", { id: "x" });
  expect([await ask(a, secret), await ask(b, secret)]).toEqual([401, 401]);
});

it("status says which instances there are, and what they say of themselves", async () => {
  const ledger = sharedLedger();
  const [a] = [await started(ledger), await started(ledger)];
  const { instances } = await a.status();
  expect(instances).toHaveLength(2);
  for (const { about, state } of instances!)
    expect([about, state]).toEqual([
      { version: "1.2.3", host: expect.any(String), pid: process.pid },
      "live",
    ]);
});

it("one that was taken for dead opens the store again, and no client notices", async () => {
  const ledger = sharedLedger();
  const a = await started(ledger);
  const key = a.firstKey!;
  expect(await ask(a, key)).toBe(200);
  const [{ instance }] = (await a.status()).instances as never as [{ instance: string }];
  ledger.bury(instance);
  expect(await ask(a, key)).toBe(200);
  expect((await a.status()).instances).toMatchObject([{ instance, state: "live" }]);
});

it("signs of life come as often as the store asks for them", async () => {
  const ledger = sharedLedger({ ms: 1_000, beatMs: 20 });
  const a = await started(ledger);
  const [{ instance }] = (await a.status()).instances as never as [{ instance: string }];
  ledger.bury(instance);
  // Nothing is asked of it: it finds out by itself.
  await until(async () => (await a.status()).instances?.[0]?.state === "live");
});

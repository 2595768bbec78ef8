// Events of the gateway: each is reported once, although two processes each see a part.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

const EAR = `
import { defineObserver } from "tollgate/plugin";
export default defineObserver({
  api: 1, name: "ear", summary: "Keeps notices", sends: "nowhere",
  setup(_options, ctx) {
    const heard = ctx.shared("heard", () => []);
    const plain = (_, value) => (typeof value === "bigint" ? String(value) : value);
    return {
      onEvent: (notice) => void heard.push(JSON.parse(JSON.stringify(notice, plain))),
      commands: { heard: { summary: "All of them", run: async () => heard } },
    };
  },
});
`;

type Heard = { type: string } & Record<string, unknown>;

let up: TestUpstream;
let at: Daemon;
let busy = false;
beforeAll(async () => {
  const hello = say("Hello").usage({ input: 10, output: 8 });
  up = await startUpstream(scriptedModel(hello));
  up.setRoutes({
    "POST /v1/chat/completions": (asked) =>
      busy
        ? { status: 503, headers: { "content-type": "application/json" }, body: '{"error":{}}' }
        : hello.toResponse(asked),
  });
  at = await startDaemon({
    yaml: `workers: 2
frontends: [chat-completions]
middleware: [auth, limits, usage]
observers: [./ear.ts]
store: { use: "${join(import.meta.dirname, "../../rig/mutants/hanging-store.ts")}" }
providers:
  demo: { use: demo }
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
`,
    files: { "ear.ts": EAR },
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

const ask = (model: string, key = at.key) => askOnNewConnection(at, model, key);

const heard = async (type: string): Promise<Heard[]> =>
  ((await at.ask("observers.ear/heard")) as unknown as Heard[]).filter((one) => one.type === type);
/** When there are this many, no more follow: the next event comes after them. */
async function told(type: string, count: number): Promise<Heard[]> {
  let all: Heard[] = [];
  await until(
    async () => (all = await heard(type)).length >= count,
    () => `${count} of ${type}: ${JSON.stringify(all)}`,
  );
  return all;
}

it("keys: created, rotated, and revoked; and the first key", async () => {
  const { key } = (await at.ask("keys.create", { name: "canary-name" })) as { key: { id: string } };
  await at.ask("keys.rotate", { id: key.id });
  await at.ask("keys.revoke", { id: key.id });
  const all = await told("key", 4);
  expect(all.map(({ change }) => change)).toEqual(["created", "created", "rotated", "revoked"]);
  expect(new Set(all.slice(1).map((one) => one["key"]))).toEqual(new Set([key.id]));
  expect(JSON.stringify(all)).not.toContain("canary-name");
});

it("a budget: each threshold once, whichever process reaches it", async () => {
  const { key, secret } = (await at.ask("keys.create", {
    limits: ["requests=40/day"],
  })) as { key: { id: string }; secret: string };
  const statuses: number[] = [];
  for (let round = 0; round < 5; round++)
    statuses.push(
      ...(await Promise.all(Array.from({ length: 10 }, () => ask("demo/echo", secret)))),
    );
  expect(statuses.filter((status) => status === 200)).toHaveLength(40);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  const crossed = await told("budget_threshold_reached", 4);
  expect(crossed.map(({ percent, used, max }) => [percent, used, max])).toEqual([
    [50, "20", "40"],
    [80, "32", "40"],
    [95, "38", "40"],
    [100, "40", "40"],
  ]);
  for (const one of crossed)
    expect(one).toMatchObject({ scope: `key:${key.id}`, unit: "requests", per: "day" });
});

it("a provider: cooldown started and ended", async () => {
  busy = true;
  await until(async () => {
    expect(await ask("up/model")).toBe(503);
    return (await heard("cooldown_started")).length > 0;
  });
  const rests = await heard("cooldown_started");
  expect(rests[0]).toMatchObject({ provider: "up", model: "model", reason: "overloaded" });
  expect(await heard("cooldown_ended")).toEqual([]);
  busy = false;
  // Only a failure can end, and a process that has seen no failure reports nothing.
  await Promise.all(Array.from({ length: 20 }, () => ask("up/model")));
  await until(async () => {
    await ask("up/model");
    return (await heard("cooldown_ended")).length >= rests.length;
  });
  const recovered = await heard("cooldown_ended");
  expect(recovered[0]).toMatchObject({ provider: "up", credential: "default", model: "model" });
  expect(recovered).toHaveLength(rests.length);
  await ask("up/model");
  expect(await heard("cooldown_ended")).toEqual(recovered);
});

it("the ledger: one failure and one recovery, although each process detects it separately", async () => {
  const folder = join(at.stateDir, "store");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "hang"), "");
  const refused = await Promise.all(Array.from({ length: 20 }, () => ask("demo/echo")));
  expect(new Set(refused)).toEqual(new Set([503]));
  expect((await told("ledger", 1)).map(({ ok }) => ok)).toEqual([false]);
  rmSync(join(folder, "hang"));
  await until(async () => (await ask("demo/echo")) === 200);
  await told("ledger", 2);
  await until(async () =>
    (await Promise.all(Array.from({ length: 20 }, () => ask("demo/echo")))).every((s) => s === 200),
  );
  expect((await heard("ledger")).map(({ ok }) => ok)).toEqual([false, true]);
});

it("an exited worker, and a reload, accepted or rejected", async () => {
  const { workers } = (await at.ask("status")) as unknown as { workers: { pid: number }[] };
  process.kill(workers[0]!.pid, "SIGKILL");
  expect(await told("worker_exited", 1)).toMatchObject([
    { pid: workers[0]!.pid, exitReason: "SIGKILL" },
  ]);
  await at.line(({ msg }) => msg === "worker replaced");
  await at.write("providers: {");
  expect(await told("reloaded", 1)).toMatchObject([{ ok: false, trigger: "file", generation: 1 }]);
});

// A store that does not respond: clients get an error in time, nothing is sent for them, and late
// rows are undone.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { LedgerEntry } from "tollgate/plugin";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { installTestClock } from "../../kit/clock.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

let up: TestUpstream;
let at: InProcessGateway;
let hang: { begin(): void; end(): void };
beforeAll(async () => {
  const slow = say("one two three four five six seven eight").usage({ input: 10, output: 8 });
  up = await startUpstream(scriptedModel(slow));
  up.setRoutes({
    "POST /v1/chat/completions": (asked) => ({ ...slow.toResponse(asked), chunkDelayMs: 60 }),
  });
  at = await startInProcess({
    yaml: `
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: { use: "${join(import.meta.dirname, "../../rig/mutants/hanging-store.ts")}" }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k }, models: { model: { price: { input: 3, output: 15 } } } }
`,
  });
  const folder = join(at.stateDir, "store");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "hang");
  hang = { begin: () => writeFileSync(file, ""), end: () => rmSync(file, { force: true }) };
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

const ask = (stream = false, key = at.key) =>
  fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "up/model",
      stream,
      messages: [{ role: "user", content: "hi" }],
    }),
  });

const entries = async () =>
  ((await at.ask("ledger.entries", { limit: 1_000 })) as unknown as { items: LedgerEntry[] }).items;

it("returns 503 within seconds, sends nothing, and recovers by itself", async () => {
  expect((await ask()).status).toBe(200);
  // A call with a reserve that will be settled.
  const running = ask(true).then((res) => res.text());
  await until(() => up.requests.filter(({ method }) => method === "POST").length === 2);
  const sent = up.requests.length;
  hang.begin();
  const time = installTestClock();
  time.stop();
  const before = time.now();
  let got: Response | undefined;
  void ask().then((answer) => (got = answer));
  await until(() => {
    time.skip(100);
    return got !== undefined;
  });
  const refused = got!;
  expect(time.now() - before).toBeGreaterThan(3_000);
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("2");
  expect(refused.headers.get("x-should-retry")).toBe("true");
  expect(await refused.json()).toMatchObject({ error: { code: "ledger_unavailable" } });
  // Detected by now: the next one does not wait again, not even briefly.
  expect((await ask()).status).toBe(503);
  time.go();
  expect(up.requests.length).toBe(sent);
  // Barrier B3: the open response is not delayed for its client, and its bill is written later.
  expect(await running).toContain("[DONE]");
  expect(await at.ask("status")).toMatchObject({});
  hang.end();
  await until(async () => (await ask()).status === 200);
  const rows = await entries();
  const of = (attempt: string) => rows.filter((e) => e.attempt === attempt);
  for (const { attempt } of rows)
    expect(of(attempt).map(({ kind }) => kind)).toEqual(["reserve", "settle"]);
  const settles = rows.filter(({ kind }) => kind === "settle");
  const late = settles.filter(({ outcome }) => outcome === "abandoned");
  expect(late.map(({ state, costNano }) => [state, Number(costNano)])).toEqual(
    late.map(() => ["void", 0]),
  );
  expect(late.length).toBeGreaterThan(0);
  expect(settles.filter(({ state }) => state === "exact").length).toBe(up.bills.length);
});

it("a key that cannot be looked up does not get a 401", async () => {
  const { secret } = (await at.ask("keys.create", { name: "fresh" })) as { secret: string };
  hang.begin();
  const got = await ask(false, secret);
  expect(got.status).toBe(503);
  expect(await got.json()).toMatchObject({ error: { code: "ledger_unavailable" } });
  hang.end();
});

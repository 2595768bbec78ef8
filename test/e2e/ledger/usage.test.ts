// Usage as operators and clients read it: from the running gateway, and from its store if none
// runs.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { isOtherStore } from "../../kit/database/store-under-test.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { runTollgate } from "../../kit/process/command-line.ts";
import { until } from "../../kit/wait.ts";

const yaml = (url: string) => `
frontends: [chat-completions, messages, usage]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-team] } }]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: "k" }
    models: { model: { price: { input: 3, output: 15 } } }
`;

let up: TestUpstream;
let at: InProcessGateway;
beforeAll(async () => {
  up = await startUpstream(
    scriptedModel((asked) => {
      const silent = asked.body.includes("silently");
      return silent ? say("Hello there").usage(null) : say("Hello").usage({ input: 10, output: 2 });
    }),
  );
  at = await startInProcess({ yaml: yaml(up.url) });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

const ask = (model: string, words: string, team?: string, key = at.key) =>
  fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      ...(team && { "x-team": team }),
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content: words }] }),
  }).then((answer) => answer.text());

describe("usage", () => {
  beforeAll(async () => {
    await ask("up/model", "hi", "red");
    await ask("up/model", "hi", "blue");
    await ask("up/model", "silently", "blue");
    await ask("up/other", "hi");
  });

  const MODEL = /^up\/model +3 +\S+ +\S+ +\$\S+ +1 estimated$/m;

  it("is summed up by model, with unpriced and estimated usage marked", async () => {
    const { code, out, err } = await runTollgate(at, ["usage", "--by", "model"]);
    expect(out).toMatch(MODEL);
    expect(out).toMatch(/^up\/other +1 +10 +2 +\$0\.00 +1 unpriced$/m);
    expect(out).toMatch(/^all +4 .*1 unpriced, 1 estimated$/m);
    expect(err).toContain("1 call without a known price");
    expect(code).toBe(0);
  });

  it.each([
    ["key", 1],
    ["provider", 1],
    ["model", 2],
    ["day", 1],
    ["label", 3],
  ] as const)("is summed up by %s as JSON, and the parts add up to the total", async (by, rows) => {
    const { out } = await runTollgate(at, ["usage", "--by", by, "--json"]);
    const said = JSON.parse(out);
    expect(said.rows).toHaveLength(rows);
    expect(said.total.calls).toBe(4);
    expect(said.rows.reduce((n: number, row: any) => n + row.calls, 0)).toBe(4);
    // Two calls at 60,000 nano-dollars, and the estimate.
    expect(said.total.usd).toMatch(/^0\.000[12]\d*$/);
    expect(said.total).toMatchObject({ unpriced: 1, estimated: 1 });
  });

  it("is reported to the key that asks, and of no other key", async () => {
    const { secret } = (await at.ask("keys.create", { name: "other" })) as { secret: string };
    const get = (key: string, query = "") =>
      fetch(`${at.url}/v1/usage${query}`, { headers: { authorization: `Bearer ${key}` } });
    const mine = (await (await get(at.key)).json()) as any;
    expect(mine).toMatchObject({
      object: "usage",
      total: { calls: 4, unpriced_calls: 1, estimated_calls: 1 },
    });
    expect(mine.data.map((row: any) => row.model).sort()).toEqual(["up/model", "up/other"]);
    expect(mine.data.find((row: any) => row.model === "up/model").cost_usd).toBe(
      mine.total.cost_usd,
    );
    const theirs = await (await get(secret)).json();
    expect(theirs).toMatchObject({ total: { calls: 0, cost_usd: "0" }, data: [] });
    expect((await get("tg_wrong")).status).toBe(401);
    expect((await get(at.key, "?by=colour")).status).toBe(400);
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const before = await get(at.key, `?to=${yesterday}&from=2026-01-01`);
    expect(await before.json()).toMatchObject({ total: { calls: 0 } });
  });

  it("is reported for a time range in the given time zone, and an unknown name is an error", async () => {
    const get = async (query: string) => {
      const answer = await fetch(`${at.url}/v1/usage${query}`, {
        headers: { authorization: `Bearer ${at.key}` },
      });
      return { status: answer.status, said: (await answer.json()) as any };
    };
    const hours = await get("?by=hour,outcome,frontend&tz=Asia/Kathmandu");
    expect(hours.said).toMatchObject({ tz: "Asia/Kathmandu", total: { calls: 4 } });
    for (const row of hours.said.data) {
      expect(row.hour).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00[+]05:45$/);
      expect(row.frontend).not.toBe("");
    }
    expect((await get("?model=other")).said.total).toMatchObject({ calls: 1, unpriced_calls: 1 });
    expect((await get("?provider=up&from=2026-01-01")).said.total.calls).toBe(4);
    for (const [query, said] of [
      ["?model=up/modl", "Known values: up/model, up/other"],
      ["?tz=Mars/Olympus", "tz must be a time zone"],
      ["?by=credential", "by must be one or more"],
      ["?by=account", "by must be one or more"],
    ] as const) {
      const { status, said: fault } = await get(query);
      expect([status, JSON.stringify(fault)]).toEqual([400, expect.stringContaining(said)]);
    }
  });

  it("is current", async () => {
    let said = "";
    const tail = runTollgate(at, ["tail", "--rows"], (out) => {
      said = out;
      return out.includes("late/") || /up\/model[^\n]*\n(?:.*\n)*.*up\/model-late/.test(out);
    });
    await until(() => /up\/model .*exact/.test(said));
    await ask("up/model-late", "hi");
    const { out } = await tail;
    expect(out).toMatch(/up\/model +10 in, 2 out, \$0\.00006 +exact/);
    expect(out).toMatch(/up\/model-late +10 in, 2 out, no known price +unpriced/);
  });

  it("is exported row by row, and the ledger is unchanged", async () => {
    const { out, err } = await runTollgate(at, ["ledger", "export"]);
    const rows = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    // Changes by operators are in the same chain, and are no rows of calls.
    const seqs = rows.map((row): number => row.seq);
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
    expect(rows.filter((row) => row.kind === "settle")).toHaveLength(5);
    expect(err).toContain(`${rows.length} rows`);
    const { code, out: verified } = await runTollgate(at, ["ledger", "verify"]);
    expect(verified).toMatch(/^verified /m);
    expect(code).toBe(0);
  });

  it("is the same if no gateway runs, and a truncated ledger is detected", async () => {
    const noted = /head +(\w+)/.exec((await runTollgate(at, ["ledger", "verify"])).out)![1]!;
    await at.stop();
    expect((await runTollgate(at, ["usage", "--by", "model"])).out).toMatch(MODEL);
    expect((await runTollgate(at, ["tail", "--rows"])).out).toMatch(/up\/model-late/);
    const fine = await runTollgate(at, ["ledger", "verify", "--head", noted]);
    expect(fine).toMatchObject({ code: 0 });
    const other = await runTollgate(at, ["ledger", "verify", "--head", "0".repeat(noted.length)]);
    expect(other.code).toBe(1);
    expect(other.out).toContain("the ledger was truncated");
  });

  it.skipIf(isOtherStore)("a flipped bit in its file is detected", async () => {
    const db = new DatabaseSync(join(at.stateDir, "store", "ledger.db"));
    const triggers = db.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all();
    for (const { name } of triggers) db.exec(`DROP TRIGGER "${name}"`);
    // Cost of a call, within a millionth of a cent.
    const { changes } = db
      .prepare(
        `UPDATE batch SET rows = replace(rows, '"60000"', '"60001"') WHERE instr(rows, '"60000"')`,
      )
      .run();
    expect(changes).toBeGreaterThan(0);
    db.close();
    const flipped = await runTollgate(at, ["ledger", "verify"]);
    expect(flipped.code).toBe(1);
    expect(flipped.out + flipped.err).toMatch(
      /changed after they were written|not as it was written/,
    );
  });
});

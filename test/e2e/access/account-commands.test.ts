// Accounts and keys that are created and changed while two workers serve. The result of a command
// applies to the next request at any worker, and no budget of any level is exceeded.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { main } from "../../../src/cli/main.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

/** Cost of one image, reserved and billed alike, in nano-dollars. */
const EACH = 40_000_000;
const pictures = (most: number) => [
  formatLimit({ unit: "nano_usd", max: most * EACH, per: "total" }),
];

let up: TestUpstream;
let at: Daemon;
beforeAll(async () => {
  up = await startUpstream({
    ...scriptedModel(say("Hello")),
    "POST /v1/images/generations": () => ({
      ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
      delayMs: 5,
      billedUsage: { images: 1 },
    }),
  });
  at = await startDaemon({
    yaml: `
frontends: [chat-completions, messages, responses, images, usage]
middleware: [auth, zdr, { use: limits, with: { hold: hard } }, usage]
workers: 2
response_headers: [x-tollgate-budget]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: 0.04 } }, model: { price: { input: 1, output: 2 }, limits: { output: 64, context: 4096 } } } }
accounts:
  house: { limits: [usd=100/total] }
key_defaults: { limits: [requests=100000/day] }
`,
  });
}, 60_000);
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

const account = (id: string, more: JsonObject = {}) => at.ask("accounts.create", { id, ...more });
const made = async (grants: JsonObject = {}) =>
  (await at.ask("keys.create", grants)) as never as { secret: string; key: { id: string } };

/** On its own connection, which either worker may get. */
async function draw(key: string) {
  const answer = await fetch(`${at.url}/v1/images/generations`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      connection: "close",
    },
    body: JSON.stringify({ model: "up/draw", prompt: "a gate", response_format: "b64_json" }),
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}
/** So many times that both workers were used. */
const everywhere = async (key: string) =>
  new Set((await Promise.all(Array.from({ length: 12 }, () => draw(key)))).map((a) => a.status));

const counted = async (id: string) => {
  const { account: shown } = (await at.ask("accounts.show", { id })) as never as {
    account: { limitUsage: { used: string; reserved: string; remaining: string }[] };
  };
  return shown.limitUsage.map(({ used, reserved, remaining }) =>
    [used, reserved, remaining].map((n) => Number(n) / EACH),
  )[0]!;
};
const sums = async () =>
  Object.fromEntries(
    (
      (await at.ask("ledger.totals", { by: ["account"] })) as never as {
        rows: { by: { account: string }; costNano: string }[];
      }
    ).rows.map(({ by, costNano }) => [by.account, Math.round(Number(costNano) / EACH)]),
  );

it("concurrent requests of 20 keys spend exactly the smaller of two nested budgets", async () => {
  await account("org", { limits: pictures(20) });
  await account("team", { parent: "org", limits: pictures(25) });
  const keys = await Promise.all(Array.from({ length: 20 }, () => made({ account: "team" })));
  up.reset();
  const all = await Promise.all(Array.from({ length: 160 }, (_, i) => draw(keys[i % 20]!.secret)));
  expect(all.filter(({ status }) => status === 200)).toHaveLength(20);
  expect(up.bills).toHaveLength(20);
  for (const { text } of all.filter(({ status }) => status === 429))
    expect(text).toMatch(/budget of \$0\.80 in total \(account:org\) has \$0\.00 left/);
  expect([await counted("org"), await counted("team")]).toEqual([
    [20, 0, 0],
    [20, 0, 5],
  ]);
});

it("moving an account under load charges each call to the account in its row, and the next call to the new one", async () => {
  await account("left", { limits: pictures(1_000) });
  await account("right", { limits: pictures(1_000) });
  await account("crew", { parent: "left", limits: pictures(2_000) });
  await account("desk", { parent: "crew" });
  const keys = await Promise.all(Array.from({ length: 4 }, () => made({ account: "desk" })));
  let going = true;
  let served = 0;
  const using = keys.map(async ({ secret }) => {
    while (going) if ((await draw(secret)).status === 200) served++;
  });
  for (const parent of ["right", "left", "right", null, "left", "right"]) {
    await at.ask("accounts.update", { id: "crew", parent });
    const before = await sums();
    await draw(keys[0]!.secret).then(({ status }) => (served += Number(status === 200)));
    // After any move, calls of the new account are counted there.
    const path = parent === null ? "crew/desk" : `${parent}/crew/desk`;
    expect((await sums())[path] ?? 0).toBeGreaterThan(before[path] ?? 0);
  }
  going = false;
  await Promise.all(using);
  const rows = await sums();
  const [left, right, crew] = await Promise.all(["left", "right", "crew"].map(counted));
  expect([left![0], right![0]]).toEqual([rows["left"], rows["right"]]);
  expect(crew![0]).toBe(served);
  expect((rows["left/crew"] ?? 0) + (rows["right/crew"] ?? 0) + (rows["crew"] ?? 0)).toBe(served);
  expect([left![1], right![1], crew![1]]).toEqual([0, 0, 0]);
});

it("a revoked account rejects its keys and those of nested accounts in every worker, by name", async () => {
  await account("closing");
  await account("inner", { parent: "closing" });
  const { secret } = await made({ account: "inner" });
  expect(await everywhere(secret)).toEqual(new Set([200]));
  await at.ask("accounts.close", { id: "closing" });
  expect(await everywhere(secret)).toEqual(new Set([403]));
  // So does the worker that replaces a dead one.
  const pids = async () =>
    ((await at.ask("status")) as never as { workers: { pid: number }[] }).workers.map(
      ({ pid }) => pid,
    );
  const [first] = await pids();
  process.kill(first!, "SIGKILL");
  await until(async () => {
    const now = await pids();
    return now.length === 2 && !now.includes(first!);
  });
  expect(await everywhere(secret)).toEqual(new Set([403]));
  const { text } = await draw(secret);
  expect(text).toContain("account_closed");
  expect(text).toContain("is nested under the account closing, which is closed");
});

it("a changed key applies to the next request in every worker, with the same secret", async () => {
  const { secret, key } = await made();
  expect(await everywhere(secret)).toEqual(new Set([200]));
  const change = (more: JsonObject) => at.ask("keys.update", { id: key.id, ...more });
  await change({ models: ["elsewhere/*"] });
  expect(await everywhere(secret)).toEqual(new Set([403]));
  await change({ models: null, limits: pictures(0) });
  expect(await everywhere(secret)).toEqual(new Set([429]));
  await change({ limits: null, frontends: ["messages"] });
  expect(await everywhere(secret)).toEqual(new Set([403]));
  await change({ frontends: null, expires: 1 });
  expect(await everywhere(secret)).toEqual(new Set([401]));
  await change({ expires: null, account: "house", labels: { team: "web" } });
  expect(await everywhere(secret)).toEqual(new Set([200]));
  const { items } = (await at.ask("ledger.entries", {
    key: key.id,
    account: "house",
  })) as never as {
    items: { labels: object }[];
  };
  expect(items.at(-1)!.labels).toEqual({ team: "web" });
});

it("imported keys of another gateway work unchanged, and their hashes are no keys", async () => {
  const secret = "sk-1234-their-own-form";
  const file = join(at.dir, "theirs.csv");
  await writeFile(
    file,
    `token,key_alias,models,max_budget,budget_duration,rpm_limit,team_id\n${digestKey(secret)},"ci, main","[""up/*""]",2.5,30d,600,t1\n`,
  );
  expect((await draw(secret)).status).toBe(401);
  expect(
    await main(["keys", "import", file, "--account", "house", "-c", at.file, "--json"], false),
  ).toBe(0);
  expect(await everywhere(secret)).toEqual(new Set([200]));
  expect((await draw(digestKey(secret))).status).toBe(401);
  const { keys } = (await at.ask("keys.show", { id: "ci, main" })) as never as {
    keys: { models: string[]; account: string; limits: string[] }[];
  };
  expect(keys[0]).toMatchObject({
    models: ["up/*"],
    account: "house",
    limits: ["usd=2.5/month", "requests=600/minute"],
  });
});

const usage = async (key: string) => {
  const answer = await fetch(`${at.url}/v1/usage`, { headers: { authorization: `Bearer ${key}` } });
  return ((await answer.json()) as { limits: JsonObject[] }).limits;
};

it("/v1/usage and headers report the remaining budget of the key's accounts, except for accounts with hidden limits", async () => {
  await account("open", { limits: pictures(3) });
  await account("quiet", { parent: "open", limits: pictures(2), discloseLimits: "hidden" });
  const { secret } = await made({ account: "quiet", limits: pictures(10), defaults: false });
  const [first, second] = [await draw(secret), await draw(secret)];
  expect(first.headers.get("x-tollgate-budget")).toBe(
    "left=0.08, max=0.12, per=total, reset=never, of=account:open",
  );
  expect(second.status).toBe(200);
  expect(await usage(secret)).toEqual([
    {
      limit: "usd=0.4/total",
      of: "key",
      used: "0.08",
      held: "0",
      left: "0.32",
      resets_at: null,
    },
    {
      limit: "usd=0.12/total",
      of: "account:open",
      used: "0.08",
      held: "0",
      left: "0.04",
      resets_at: null,
    },
  ]);
  const third = await draw(secret);
  expect(third.status).toBe(429);
  expect(third.text).toContain("A limit that this key shares with others is reached.");
  expect(third.text + JSON.stringify([...third.headers])).not.toMatch(/quiet|0\.08|\$/);
});

it("headers and messages report the remaining rate limit", async () => {
  await account("rated", { limits: ["requests=1/hour"] });
  const { secret } = await made({ account: "rated" });
  expect((await draw(secret)).headers.get("x-ratelimit-remaining-requests")).toBe("0");
  const refused = await draw(secret);
  expect(refused.text).toMatch(
    /limit of 1 requests a hour \(account:rated\) is reached: 0 left. Retry after \d+ s\./,
  );
  expect(refused.headers.get("x-ratelimit-limit-requests")).toBe("1");
});

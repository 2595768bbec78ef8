// Spend limits of people in the format of Anthropic's Admin API: who may set them, which one
// applies, and that it is enforced exactly, at once.
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, signIn, startSignIn, type SignInSetup } from "../../kit/device-flow.ts";
import { freePort } from "../../kit/process/ports.ts";

let at: SignInSetup;
let admin: string;
const TOKENS = { owner: "owner-".padEnd(40, "x"), viewer: "viewer-".padEnd(40, "y") };
beforeAll(async () => {
  const port = await freePort();
  admin = `http://127.0.0.1:${port}/v1/organizations/spend_limits`;
  at = await startSignIn({
    options: `
      map: { account: groups }
      accounts: { platform: acme, research: acme }
      limits: [usd=100/month, requests=1000/day]
      spend_limits: true
      behind_proxy: true
`,
    rest: `
admin:
  port: ${port}
  tokens:
    owner: { role: owner, token: ${TOKENS.owner} }
    viewer: { role: viewer, token: ${TOKENS.viewer} }
accounts: { acme: {} }
providers: { demo: { use: demo } }
`,
  });
}, 60_000);
afterAll(() => at?.[Symbol.asyncDispose]());

async function api(path: string, body?: object, token = TOKENS.owner, method?: string) {
  const res = await fetch(`${admin}${path}`, {
    method: method ?? (body ? "POST" : "GET"),
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: res.status, body: (await res.json()) as any };
}
const limitsOf = async (token: string) => {
  const res = await fetch(`${at.url}/v1/usage`, { headers: { authorization: `Bearer ${token}` } });
  return ((await res.json()) as any).limits.map(({ limit }: any) => limit).toSorted();
};

it("the limit of a person, of a group, and of the organization apply in this order", async () => {
  const { access_token: ann } = await signIn(at, "ann");
  expect(await limitsOf(ann)).toEqual(["requests=1000/day", "usd=100/month"]);
  const organization = await api("", {
    scope: { type: "organization" },
    amount: "50000",
    period: "monthly",
  });
  expect(organization).toMatchObject({
    status: 200,
    body: {
      type: "spend_limit",
      id: expect.stringMatching(/^spl_[0-9a-f]{40}$/),
      scope: { type: "organization" },
      amount: "50000",
      currency: "USD",
      period: "monthly",
      is_enabled: true,
    },
  });
  expect(await limitsOf(ann)).toEqual(["requests=1000/day", "usd=500/month"]);
  const group = (id: string, amount: string) =>
    api("", { scope: { type: "rbac_group", rbac_group_id: id }, amount, period: "monthly" });
  await group("staff", "30000");
  await group("platform", "20000");
  expect(await limitsOf(ann)).toEqual(["requests=1000/day", "usd=200/month"]);
  const user = { type: "user", user_id: "ann" };
  const own = await api("", { scope: user, amount: null, period: "monthly" });
  expect(await limitsOf(ann)).toEqual(["requests=1000/day"]);
  await api("", { scope: user, amount: "70", period: "daily" });
  expect(await limitsOf(ann)).toEqual(["requests=1000/day", "usd=0.7/day"]);
  // A person who signs in later gets the same.
  expect(await limitsOf((await signIn(at, "bob")).access_token)).toEqual([
    "requests=1000/day",
    "usd=500/month",
  ]);
  const deleted = await api(`/${own.body.id}`, undefined, TOKENS.owner, "DELETE");
  expect(deleted.body).toEqual({ id: own.body.id, type: "spend_limit_deleted" });
  expect(await limitsOf(ann)).toContain("usd=200/month");
  expect((await api(`/${own.body.id}`)).status).toBe(404);
  const { data, has_more } = (await api("?limit=2")).body;
  expect([data.length, has_more]).toEqual([2, true]);
});

it("a limit of zero rejects the next request, and the report has the exact spend", async () => {
  const { access_token: token } = await signIn(at, "bob");
  expect((await ask(at.url, token)).status).toBe(200);
  const scope = { type: "user", user_id: "bob" };
  await api("", { scope, amount: "0", period: "weekly" });
  expect((await ask(at.url, token)).status).toBe(429);
  const { body } = await api("/effective?user_ids[]=bob&period[]=weekly");
  expect(body).toEqual({
    data: [
      {
        actor: {
          type: "user_actor",
          user_id: "bob",
          name: null,
          email_address: "bob@example.com",
          deleted: false,
        },
        scope: { type: "user", user_id: "bob" },
        source: { type: "user", user_id: "bob" },
        spend_limit_id: expect.stringMatching(/^spl_/),
        amount: "0",
        currency: "USD",
        period: "weekly",
        period_to_date_spend: expect.stringMatching(/^\d+(\.\d+)?$/),
        groups: ["research"],
      },
    ],
    next_page: null,
  });
});

it("viewers read, strangers get nothing, and bad input changes nothing", async () => {
  const before = (await api("")).body;
  expect((await api("", undefined, TOKENS.viewer)).status).toBe(200);
  const good = { scope: { type: "organization" }, amount: "1", period: "daily" };
  expect((await api("", good, TOKENS.viewer)).status).toBe(403);
  expect((await api("", good, "nobody")).status).toBe(401);
  for (const bad of [
    { ...good, amount: 5 },
    { ...good, amount: "-1" },
    { ...good, amount: "1.5" },
    { ...good, period: "yearly" },
    { ...good, currency: "EUR" },
    { ...good, scope: { type: "workspace" } },
    { ...good, scope: { type: "user" } },
    {},
  ]) {
    const { status, body } = await api("", bad);
    expect([status, body.error.type]).toEqual([400, "invalid_request_error"]);
  }
  expect((await api("")).body).toEqual(before);
  // The public port serves none of it.
  expect((await fetch(`${at.url}/v1/organizations/spend_limits`)).status).toBe(404);
});

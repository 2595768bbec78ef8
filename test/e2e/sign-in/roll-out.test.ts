// The files of the page "Roll out Claude Code and Codex", as they are written there: only addresses
// and secrets are replaced.
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { signIn } from "../../kit/device-flow.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { freePort } from "../../kit/process/ports.ts";
import { until } from "../../kit/wait.ts";
import {
  SECRET,
  signingKey,
  startIdentityProvider,
  type IdentityProvider,
} from "../admin/identity-provider.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../docs/guides/roll-out.md"), "utf8");
const blocks = (language: string) =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))].map(([, text]) => text!);

let up: TestUpstream;
let idp: IdentityProvider;
let gateway: InProcessGateway;
let url: string;
const [settings = ""] = blocks("json");

beforeAll(async () => {
  url = `http://127.0.0.1:${await freePort()}`;
  up = await startUpstream(scriptedModel(say("Hello.").usage({ input: 100, output: 10 })));
  idp = await startIdentityProvider([`${url}/oauth/callback`], await signingKey("first"));
  const [yaml = ""] = blocks("yaml");
  gateway = await startInProcess({
    port: Number(new URL(url).port),
    env: { OIDC_TOKEN: SECRET, ANTHROPIC_API_KEY: "sk-up", OPENAI_API_KEY: "sk-up" },
    files: { "claude-settings.json": settings },
    yaml: yaml
      .replaceAll("https://gateway.example.com", url)
      .replaceAll("https://login.example.com", idp.issuer)
      .replace("host: 0.0.0.0", "host: 127.0.0.1")
      .replaceAll(/(api_key: "\$\{env:\w+\}")/g, `$1, base_url: "${up.url}/v1"`),
  });
}, 60_000);
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await idp?.[Symbol.asyncDispose]();
  await up?.close();
});

const headersOf = (credential: string) => ({
  authorization: `Bearer ${credential}`,
  "content-type": "application/json",
  "anthropic-version": "2023-06-01",
});
const message = (credential: string) =>
  fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: headersOf(credential),
    body: JSON.stringify({
      model: "anthropic/claude-sonnet-4-6",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });

it("a person signs in, gets the settings of the page, and both budgets count", async () => {
  const { access_token: token } = await signIn({ idp, url }, "ann");
  const delivered = await fetch(`${url}/managed/settings`, { headers: headersOf(token) });
  expect(((await delivered.json()) as any).settings).toEqual(JSON.parse(settings));
  expect((await message(token)).status).toBe(200);
  const usage = (await (
    await fetch(`${url}/v1/usage`, { headers: headersOf(token) })
  ).json()) as any;
  expect(usage.key).toBe("claude-gateway:ann");
  expect(Number(usage.total.cost_usd)).toBeGreaterThan(0);
  const limits = usage.limits.map(({ limit, of }: any) => `${of} ${limit}`);
  expect(limits.toSorted()).toEqual([
    "account:company usd=40000/month",
    "account:platform usd=25000/month",
    "key requests=2000/hour",
    "key usd=150/month",
  ]);
});

it("a person whose budget is used up is rejected before anything is sent, and others are not", async () => {
  const { access_token: token } = await signIn({ idp, url }, "ann");
  await gateway.ask("keys.update", { id: "claude-gateway:ann", limits: ["usd=0.000001/month"] });
  const before = up.requests.length;
  expect((await message(token)).status).toBe(402);
  expect(up.requests.length).toBe(before);
  const bob = await signIn({ idp, url }, "bob");
  expect((await message(bob.access_token)).status).toBe(200);
});

it("a key for Codex works with the page's config, and shares the budget of the team", async () => {
  const { secret } = (await gateway.ask("keys.create", {
    name: "ann-codex",
    account: "platform",
    limits: ["usd=50/month"],
  })) as any;
  const [toml = ""] = blocks("toml");
  const [, model] = /^model = "(.+)"$/m.exec(toml)!;
  const [, base] = /^base_url = "https:\/\/gateway\.example\.com(.*)"$/m.exec(toml)!;
  const res = await fetch(`${url}${base}/responses`, {
    method: "POST",
    headers: headersOf(secret),
    body: JSON.stringify({ model, input: "Hello" }),
  });
  expect(res.status).toBe(200);
});

it("a key of a pipeline works without a sign-in until it expires", async () => {
  const { secret } = (await gateway.ask("keys.create", {
    name: "ci",
    account: "platform",
    expires: Date.now() + 3_600_000,
  })) as any;
  expect((await message(secret)).status).toBe(200);
  await gateway.ask("keys.update", { id: "ci", expires: Date.now() - 1 });
  await until(async () => (await message(secret)).status === 401);
});

it("a client with the current settings gets a 304, and new ones after the file has changed", async () => {
  const { access_token: token } = await signIn({ idp, url }, "bob");
  const ask = (tag?: string) =>
    fetch(`${url}/managed/settings`, {
      headers: { ...headersOf(token), ...(tag !== undefined && { "if-none-match": tag }) },
    });
  const before = (await ask()).headers.get("etag")!;
  const unchanged = await ask(before);
  expect([unchanged.status, await unchanged.text()]).toEqual([304, ""]);
  const changed = { ...JSON.parse(settings), cleanupPeriodDays: 7 };
  await writeFile(join(gateway.dir, "claude-settings.json"), JSON.stringify(changed));
  await until(async () => (await ask(before)).status === 200);
  const after = await ask(before);
  expect(((await after.json()) as any).settings).toEqual(changed);
  expect(after.headers.get("etag")).not.toBe(before);
  expect((await ask(after.headers.get("etag")!)).status).toBe(304);
});

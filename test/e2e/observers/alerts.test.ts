// Alerts of the real gateway: a budget's thresholds, each delivered once, across two workers and
// kills of all processes; a receiver that is down; a redirect.
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

const SECRET = `whsec_${Buffer.alloc(32, 3).toString("base64")}`;
const judge = new OpenAI({ apiKey: "k", webhookSecret: SECRET });

interface Post {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const posts: Post[] = [];
let status = 204;
let server: Server;
let url: string;
const dir = mkdtempSync(join(tmpdir(), "tollgate-alerts-"));
let at: Daemon;

const yaml = () => `
workers: 2
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
observers:
  - use: alerts
    with:
      gateway: test
      retry_ms: 50
      receivers:
        ops: { url: "${url}/ops", secret: "${SECRET}" }
        chat: { url: "${url}/chat", format: slack }
      rules:
        - { on: [budget.threshold_reached, reload.failed], to: [ops] }
        - { on: [key.rejected], to: [chat] }
providers: { demo: { use: demo } }
`;

beforeAll(async () => {
  server = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk) => (body += chunk));
    req.on("end", () => {
      if (status < 300) posts.push({ path: req.url!, headers: req.headers, body });
      res.writeHead(status, status === 302 ? { location: `${url}/elsewhere` } : {}).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  at = await startDaemon({ yaml: yaml(), dir });
}, 60_000);
afterAll(async () => {
  await at?.stop("SIGKILL");
  server.closeAllConnections();
  server.close();
  rmSync(dir, { recursive: true, force: true });
});

const told = (path: string) => posts.filter((post) => post.path === path);
const alertsOf = (path: string) =>
  told(path).map(({ body }) => JSON.parse(body) as { type: string; data: { percent?: number } });

it("each threshold of a budget is delivered once, in order, and signed, although the receiver is down and the gateway is killed", async () => {
  status = 503;
  const { secret, key } = (await at.ask("keys.create", {
    limits: ["requests=60/month"],
  })) as { secret: string; key: { id: string } };
  const asked = Promise.allSettled(
    Array.from({ length: 45 }, () => askOnNewConnection(at, "demo/echo", secret)),
  );
  // During it: calls that are open are recovered, and count.
  await until(async () => {
    const { items } = (await at.ask("ledger.entries", { limit: 60 })) as { items: unknown[] };
    return items.length > 20;
  });
  await at.stop("SIGKILL");
  await asked;
  at = await startDaemon({ yaml: yaml(), dir });
  status = 204;
  for (
    let left = 60;
    left > 0 && (await askOnNewConnection(at, "demo/echo", secret)) === 200;
    left--
  );
  await until(
    () => told("/ops").length >= 4,
    () => JSON.stringify(told("/ops")),
  );
  const ids = told("/ops").map(({ headers }) => headers["webhook-id"]);
  // A receiver recognizes a repeated delivery by its ID.
  const once = alertsOf("/ops").filter((_, i) => ids.indexOf(ids[i]) === i);
  expect(once.map(({ type, data }) => `${type} ${data.percent}`)).toEqual([
    "budget.threshold_reached 50",
    "budget.threshold_reached 80",
    "budget.threshold_reached 95",
    "budget.threshold_reached 100",
  ]);
  for (const { body, headers } of told("/ops"))
    expect(await judge.webhooks.unwrap(body, headers as never)).toMatchObject({ gateway: "test" });
  await until(() => told("/chat").length > 0);
  expect(JSON.parse(told("/chat")[0]!.body)).toEqual({
    text: expect.stringContaining(`[test] key.rejected · key:${key.id}: requests are rejected: `),
  });
  expect(JSON.stringify(posts)).not.toContain(secret);
}, 60_000);

it("a redirect is not followed, the command reports it as a failure, and the operator's secret is not sent", async () => {
  const test = async () => at.ask("observers.alerts/test", { receiver: "ops" });
  expect(await test()).toMatchObject([{ receiver: "ops", ok: true }]);
  status = 302;
  expect(await test()).toMatchObject([
    { receiver: "ops", ok: false, reason: "the receiver returned status 302" },
  ]);
  status = 204;
  expect(told("/elsewhere")).toEqual([]);
  expect(await at.ask("observers.alerts/state")).toMatchObject({ waiting: { ops: 0, chat: 0 } });
  expect(JSON.stringify(at.log)).not.toContain(SECRET.slice(6));
});

it("reports a rejected config", async () => {
  await at.write(yaml().replace("use: demo }", "use: demoo }"));
  await until(() => alertsOf("/ops").some(({ type }) => type === "reload.failed"));
});

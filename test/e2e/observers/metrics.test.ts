// The observer `metrics` with two processes: every number equals the ledger's, also if a worker is
// killed during its calls, and requests rejected before routing are included.
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { isOtherStore } from "../../kit/database/store-under-test.ts";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { parseSamples, sumSamples } from "../../kit/exposition.ts";
import { until } from "../../kit/wait.ts";

const TOKEN = "scraper-".padEnd(32, "0123456789");
const yaml = (url: string, more = "") => `workers: 2
admin: { port: 0, tokens: { scraper: { role: metrics, token: "\${env:T}" } } }
frontends: [chat-completions, messages]
observers: [metrics]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k, list_models: false }
    models: { m: { price: { input: 3.001, output: 15.007 } } }
${more}`;

let up: TestUpstream;
let at: Daemon;
let admin: string;
beforeAll(async () => {
  up = await startUpstream(scriptedModel(say("Hello")));
  at = await startDaemon({ yaml: yaml(up.url), env: { T: TOKEN } });
  admin = ((await at.ask("status")) as { adminUrl: string }).adminUrl;
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

const scrape = async (headers: Record<string, string> = {}) => {
  const answer = await fetch(`${admin}/metrics`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
  });
  expect(answer.status).toBe(200);
  return answer;
};
const text = async () => (await scrape()).text();
const nano = (usd: number) => Math.round(usd * 1e9);
const total = async () =>
  (
    (await at.ask("ledger.totals", { by: ["model"] })) as unknown as {
      total: { calls: number; costNano: string; usage: { input: number; output: number } };
    }
  ).total;

/** The text is cached for a second, and records are up to 0.2 s late. */
async function settled(is: (now: string) => boolean): Promise<string> {
  let now = "";
  await until(async () => is((now = await text())));
  return now;
}

it("counts and costs of two workers equal the ledger, and include requests rejected before routing", async () => {
  const statuses = await Promise.all([
    ...Array.from({ length: 40 }, () => askOnNewConnection(at, "up/m")),
    ...Array.from({ length: 5 }, (_, i) => askOnNewConnection(at, `up/made-up-${i}`)),
    ...Array.from({ length: 4 }, () => askOnNewConnection(at, "nowhere/at-all")),
    ...Array.from({ length: 3 }, () => askOnNewConnection(at, "up/m", "tg_nobody")),
  ]);
  expect(statuses.filter((status) => status === 200)).toHaveLength(45);
  await (await fetch(`${at.url}/nowhere`)).arrayBuffer();
  const late = "nodejs_eventloop_delay_seconds";
  // Event loop delay is measured from the first scrape on.
  const now = await settled(
    (all) => sumSamples(all, "tollgate_requests_total") === 52 && sumSamples(all, late) > 0,
  );
  const ledger = await total();
  expect(sumSamples(now, "tollgate_requests_total", 'outcome="ok"')).toBe(up.requests.length);
  expect(sumSamples(now, "tollgate_calls_total")).toBe(ledger.calls);
  expect(nano(sumSamples(now, "tollgate_spend_usd_total"))).toBe(Number(ledger.costNano));
  expect(sumSamples(now, "tollgate_tokens_total", 'unit="output"')).toBe(ledger.usage.output);
  expect(sumSamples(now, "tollgate_calls_unpriced_total", 'model="other"')).toBe(5);
  expect(sumSamples(now, "tollgate_rejections_total", 'code="unknown_path"')).toBe(1);
  expect(sumSamples(now, "tollgate_requests_total", 'outcome="refused"')).toBe(3);
  expect(sumSamples(now, "tollgate_gateway_overhead_seconds_count")).toBe(52);
  expect(sumSamples(now, "tollgate_workers")).toBe(2);
  expect(parseSamples(now).filter(({ name }) => name === "process_cpu_seconds_total")).toHaveLength(
    3,
  );
  expect(parseSamples(now).filter(({ name }) => name === late)).toHaveLength(3 * 3);
  const connected = [`origin="${up.url}"`, 'state="connected"'];
  expect(sumSamples(now, "tollgate_pool_sockets", ...connected)).toBeGreaterThan(0);
  expect(sumSamples(now, "tollgate_ledger_up")).toBe(1);
  expect(sumSamples(now, "tollgate_ledger_commit_seconds_count")).toBeGreaterThan(0);
  expect(sumSamples(now, "tollgate_ledger_bytes")).toBeGreaterThan(0);
  // The gateway cannot see the free space of a database.
  if (!isOtherStore) expect(sumSamples(now, "tollgate_store_disk_free_bytes")).toBeGreaterThan(0);
  expect(sumSamples(now, "tollgate_ledger_oldest_timestamp_seconds")).toBeGreaterThan(1.7e9);
  // Its own time is a part of the total.
  expect(sumSamples(now, "tollgate_gateway_overhead_seconds_sum")).toBeLessThan(
    sumSamples(now, "tollgate_request_duration_seconds_sum"),
  );
});

it("they still do after a worker was killed during calls, and after a reload", async () => {
  const release = Promise.withResolvers<void>();
  const hello = say("Hello");
  up.setRoutes({
    "POST /v1/chat/completions": async (asked) => {
      await release.promise;
      return hello.toResponse(asked);
    },
  });
  const before = up.requests.length;
  const asking = Array.from({ length: 12 }, () => askOnNewConnection(at, "up/m").catch(() => 0));
  await until(() => up.requests.length === before + 12);
  const under = (all: string) =>
    sumSamples(all, "tollgate_in_flight", 'frontend="chat-completions"');
  await settled((all) => under(all) === 12);
  const { workers } = (await at.ask("status")) as unknown as { workers: { pid: number }[] };
  process.kill(workers[0]!.pid, "SIGKILL");
  await at.line(({ msg }) => msg === "worker replaced");
  release.resolve();
  await Promise.all(asking);
  await at.write(yaml(up.url, "log: { level: debug }\n"));
  await at.line(({ msg }) => msg === "reloaded");
  const statuses = await Promise.all(
    Array.from({ length: 10 }, () => askOnNewConnection(at, "up/m")),
  );
  expect(statuses).toEqual(Array.from({ length: 10 }, () => 200));
  const now = await settled((all) => sumSamples(all, "tollgate_calls_total") === 67);
  const ledger = await total();
  expect(ledger.calls).toBe(67);
  expect(nano(sumSamples(now, "tollgate_spend_usd_total"))).toBe(Number(ledger.costNano));
  expect(sumSamples(now, "tollgate_calls_estimated_total")).toBeGreaterThan(0);
  expect(sumSamples(now, "tollgate_worker_exits_total")).toBe(1);
  expect(sumSamples(now, "tollgate_config_reloads_total", 'ok="true"')).toBe(1);
  expect(sumSamples(now, "tollgate_config_generation")).toBe(2);
});

it("the gateway's own time excludes a slow provider and a backoff", async () => {
  // Requests of the previous tests may be counted only now, but they had another frontend.
  const times = (now: string) => ({
    whole: sumSamples(now, "tollgate_request_duration_seconds_sum", 'frontend="messages"'),
    own: sumSamples(now, "tollgate_gateway_overhead_seconds_sum", 'frontend="messages"'),
  });
  const hello = say("Hello");
  up.setRoutes({
    "POST /v1/chat/completions": [
      { ...jsonResponse({ error: { message: "Later." } }, 503), headers: { "retry-after": "1" } },
      (asked) => ({ ...hello.toResponse(asked), delayMs: 500 }),
    ],
  });
  const answer = await fetch(`${at.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": at.key },
    body: JSON.stringify({
      model: "up/m",
      max_tokens: 10,
      messages: [{ role: "user", content: "Hello." }],
    }),
  });
  expect(answer.status, await answer.text()).toBe(200);
  const { whole, own } = times(await settled((all) => times(all).whole > 0));
  expect(whole).toBeGreaterThan(1.45);
  expect(own).toBeLessThan(whole - 1.45);
});

it("serves OpenMetrics and gzip, and API keys do not grant access", async () => {
  const open = await scrape({ accept: "application/openmetrics-text; version=1.0.0" });
  expect(open.headers.get("content-type")).toContain("version=1.0.0");
  expect(open.headers.get("content-encoding")).toBe("gzip");
  expect(await open.text()).toMatch(/\n# EOF\n$/);
  const byKey = await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${at.key}` } });
  expect(byKey.status).toBe(401);
});

// A reload leaves nothing behind: an ended generation is no longer in memory, whatever was mounted
// in it and whatever requests it served.
import { expect, it } from "vitest";
import { jsonResponse, say, scriptedModel, startUpstream } from "tollgate/testing";
import { type InProcessGateway, startInProcess } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

/** Returns the number of generations in memory in which it is mounted. */
const TENANT = `
import { queryObjects } from "node:v8";
import { defineMiddleware } from "tollgate/plugin";

class Mount {}

export default defineMiddleware({
  api: 1,
  name: "tenant",
  summary: "In how many generations it is",
  sends: "nowhere",
  setup() {
    const mount = new Mount();
    return {
      admit(x) {
        if (x.headers["x-count"]) x.setResponseHeader("x-alive", String(queryObjects(Mount)));
      },
      settle: () => void mount,
    };
  },
});
`;
const RELOADS = 6;

const asking =
  (at: InProcessGateway) =>
  async (stream: boolean, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${at.key}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({ model: "up/m", stream, messages: [{ role: "user", content: "Hi" }] }),
    });
    await answer.text();
    expect(answer.status).toBe(200);
    return answer.headers.get("x-alive");
  };

/** Number of its generations in memory. */
async function alive(ask: ReturnType<typeof asking>): Promise<string | null> {
  // The last request on a connection is referenced until the next one.
  for (let i = 0; i < 20; i++) await ask(i % 2 === 0);
  return ask(false, { "x-count": "1" });
}

const endedIn = ({ log }: InProcessGateway) =>
  log.filter(({ msg }) => msg === "config generation ended").length;

it.each([
  ["no observer", "[]"],
  ["metrics", "[metrics]"],
  ["access-log", "[{ use: access-log, with: { file: access.log } }]"],
  ["otlp", '[{ use: otlp, with: { endpoint: "UP" } }]'],
  ["alerts", '[{ use: alerts, with: { receivers: { ops: { url: "UP/ops", format: slack } } } }]'],
  ["console", "[console]"],
])("%s: one generation is left after reloads under load", async (_name, observers) => {
  await using up = await startUpstream({
    ...scriptedModel(say("Hello")),
    "POST /v1/*": jsonResponse({}),
    "POST /ops": jsonResponse({}),
  });
  const yaml = (n: number) => `log: { level: debug }
frontends: [chat-completions]
middleware: [auth, limits, usage, ./tenant.ts]
observers: ${observers.replace("UP", up.url)}
timeouts: { idle: ${60 + n}s }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k, list_models: false } }
`;
  await using at = await startInProcess({ yaml: yaml(0), files: { "tenant.ts": TENANT } });
  const ask = asking(at);
  for (let n = 1; n <= RELOADS; n++) {
    await Promise.all([ask(false), ask(true), ask(false)]);
    await at.write(yaml(n));
    await until(() => endedIn(at) === n);
  }
  expect(await alive(ask)).toBe("1");
});

/** Each rejects, accepts without a response, or has a full disk. */
const DEAD = (hangs: string) => `
  - { use: otlp, with: { endpoint: "http://127.0.0.1:1", batch_delay_ms: 60000, batch_size: 3 } }
  - { use: otlp, with: { endpoint: "${hangs}", batch_delay_ms: 60000 } }
  - { use: otlp, with: { endpoint: "${hangs}", batch_delay_ms: 1, timeout_ms: 600000 } }
  - { use: alerts, with: { receivers: { ops: { url: "http://127.0.0.1:1/ops", format: slack } } } }
  - { use: alerts, with: { receivers: { ops: { url: "${hangs}/ops", format: slack } } } }
  - { use: access-log, with: { file: /dev/full } }`;

it("ends its observers' deliveries within the time limit, and counts what was not sent", async () => {
  await using up = await startUpstream(scriptedModel(say("Hello")));
  await using hangs = await startUpstream({ "POST /*": () => new Promise<never>(() => {}) });
  const yaml = (n: number) => `log: { level: debug }
frontends: [chat-completions]
middleware: [auth, limits, usage, ./tenant.ts]
observers:${DEAD(hangs.url)}
timeouts: { idle: ${60 + n}s }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k, list_models: false } }
`;
  await using at = await startInProcess({ yaml: yaml(0), files: { "tenant.ts": TENANT } });
  const ask = asking(at);
  let asked = 0;
  for (let n = 1; n <= 3; n++) {
    for (let i = 0; i < 5; i++, asked++) await ask(i % 2 === 0);
    await at.write(yaml(n));
    await until(() => at.log.filter(({ msg }) => msg === "reloaded").length === n);
  }
  await until(() => endedIn(at) === 3);
  expect(at.log.filter(({ msg }) => String(msg).startsWith("observer did not stop"))).toEqual([]);
  for (const name of ["otlp", "otlp-2", "otlp-3"]) {
    const { traces, logs } = (await at.ask(`observers.${name}/state`)) as unknown as OtlpState;
    expect([name, traces, logs.sent]).toEqual([name, { sent: 0, dropped: 2 * asked }, 0]);
    expect(logs.dropped).toBeGreaterThanOrEqual(asked);
  }
  expect(await alive(ask)).toBe("1");
});

interface OtlpState {
  readonly traces: { readonly sent: number; readonly dropped: number };
  readonly logs: { readonly sent: number; readonly dropped: number };
}

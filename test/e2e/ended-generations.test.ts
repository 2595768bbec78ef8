// What a reload leaves behind: nothing. A generation that has ended is no longer in memory, whatever was mounted in it and whatever
// came through it.
import { expect, it } from "vitest";
import { json, say, speaking, upstream } from "tollgate/testing";
import { startGateway } from "../kit/daemon.ts";
import { until } from "../kit/waits.ts";

/** Says in how many generations that are in memory it is mounted. */
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
        if (x.headers["x-count"]) x.header("x-alive", String(queryObjects(Mount)));
      },
      settle: () => void mount,
    };
  },
});
`;
const RELOADS = 6;

it.each([
  ["no observer", "[]"],
  ["metrics", "[metrics]"],
  ["access-log", "[{ use: access-log, with: { file: access.log } }]"],
  ["otlp", '[{ use: otlp, with: { endpoint: "UP" } }]'],
  ["alerts", '[{ use: alerts, with: { to: { ops: { url: "UP/ops", format: slack } } } }]'],
  ["console", "[console]"],
])("%s: after reloads among requests there is one generation", async (_name, observers) => {
  await using up = await upstream({
    ...speaking(say("Hello")),
    "POST /v1/*": json({}),
    "POST /ops": json({}),
  });
  const yaml = (n: number) => `log: { level: debug }
frontends: [chat-completions]
middleware: [auth, limits, usage, ./tenant.ts]
observers: ${observers.replace("UP", up.url)}
timeouts: { idle: ${60 + n}s }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k, models: false } }
`;
  await using at = await startGateway({ yaml: yaml(0), files: { "tenant.ts": TENANT } });
  const ask = async (stream: boolean, headers: Record<string, string> = {}) => {
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
  const ended = () => at.log.filter(({ msg }) => msg === "a generation has ended").length;
  for (let n = 1; n <= RELOADS; n++) {
    await Promise.all([ask(false), ask(true), ask(false)]);
    await at.write(yaml(n));
    await until(() => ended() === n);
  }
  // The last one on a connection is named there until the next one.
  for (let i = 0; i < 20; i++) await ask(i % 2 === 0);
  expect(await ask(false, { "x-count": "1" })).toBe("1");
});

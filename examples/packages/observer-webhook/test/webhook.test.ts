// Tests signed requests, and retries in order with each record once.
import { createHmac } from "node:crypto";
import { jsonResponse, startGateway, startUpstream } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { expect, test, vi } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

const SECRET = "canary-0123456789";
const house = (url: string, more: object = {}) =>
  startGateway({
    plugins: { webhook: plugin },
    config: {
      observers: [
        { use: "webhook", with: { url: `${url}/in`, secret: SECRET, retry_ms: 20, ...more } },
      ],
      providers: { demo: { use: "demo" } },
    },
  });

test("sends the selected outcomes, signed, without text of requests and responses", async () => {
  await using receiver = await startUpstream({ "POST /in": jsonResponse({}) });
  await using at = await house(receiver.url, { outcomes: ["ok", "client_error"] });
  await at.ask("demo/echo", "a canary word");
  await at.ask("nowhere/echo", "a canary word");
  const told = () => receiver.requests.flatMap((one) => one.json() as { type: string }[]);
  await vi.waitFor(() => expect(told()).toHaveLength(2), 60_000);
  expect(told()).toMatchObject([
    {
      type: "request.ok",
      model: "demo/echo",
      status: 200,
      usage: expect.any(Object),
      cost_nano_usd: expect.any(String),
    },
    { type: "request.client_error", model: "nowhere/echo", status: 404 },
  ]);
  for (const { headers, body } of receiver.requests) {
    const said = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    const mac = createHmac("sha256", SECRET).update(said).digest("base64");
    expect(headers["webhook-signature"]).toBe(`v1,${mac}`);
    expect(`${body}`).not.toContain("canary");
  }
});

test("retries after a failed, rejected, or aborted delivery: each record once, in order", async () => {
  const heard: string[] = [];
  let tries = 0;
  await using receiver = await startUpstream({
    "POST /in": (asked) => {
      const faults = [
        jsonResponse({}, 500),
        { ...jsonResponse({}), truncation: { after: "nothing", how: "reset" } as const },
        jsonResponse({}, 302),
      ];
      if (tries++ < faults.length) return faults[tries - 1]!;
      heard.push(...(asked.json() as { id: string }[]).map(({ id }) => id));
      return jsonResponse({});
    },
  });
  await using at = await house(receiver.url, { outcomes: ["ok"] });
  const ids: string[] = [];
  for (let n = 0; n < 5; n++)
    ids.push((await at.ask("demo/echo", `${n}`)).headers["x-request-id"]!);
  await vi.waitFor(() => expect(heard).toEqual(ids), 60_000);
  expect(await at.runCommand("observers.webhook", "queue")).toEqual({ waiting: 0, dropped: 0 });
  expect(JSON.stringify(at.logs)).not.toContain(SECRET);
});

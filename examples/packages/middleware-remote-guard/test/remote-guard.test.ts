// The service and the model are called in parallel. Nothing is sent before the verdict, and a missing verdict is a rejection.
import { jsonResponse, startGateway, startUpstream, type ScriptedResponse } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

async function house(verdict: ScriptedResponse, options: object = {}) {
  const service = await startUpstream({ "POST /judge": verdict });
  const at = await startGateway({
    plugins: { "remote-guard": plugin },
    config: {
      middleware: [
        "door",
        {
          use: "remote-guard",
          with: { url: `${service.url}/judge`, token: "canary-7d1", ...options },
        },
      ],
      providers: { up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1" } } },
    },
  });
  return {
    at,
    service,
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await service.close();
    },
  };
}

test.each([true, false])(
  "passes an allowed response, streamed: %s, and sends its text to the service",
  async (stream) => {
    await using it = await house(jsonResponse({ allow: true, label: "clean" }));
    const got = await it.at.ask("up/model", "Hi", { stream });
    expect([got.status, got.text]).toEqual([200, "Hello"]);
    const [asked] = it.service.requests;
    expect(asked!.headers.authorization).toBe("Bearer canary-7d1");
    expect(asked!.json()).toEqual({ kind: "chat", texts: [{ role: "user", text: "Hi" }] });
    expect(it.at.storeCommands).toContainEqual(
      expect.objectContaining({ do: "settle", outcome: "ok" }),
    );
  },
);

test.each([true, false])(
  "rejects a disallowed response, streamed: %s, after the model responded",
  async (stream) => {
    // The model has responded long before, and its response waits.
    await using it = await house({
      ...jsonResponse({ allow: false, label: "injection" }),
      delayMs: 500,
    });
    const got = await it.at.ask("up/model", "Hi", { stream });
    expect([got.status, got.error?.code]).toEqual([400, "guard_rejected"]);
    expect(got.body).not.toContain("Hello");
    // The call is billed, like every call.
    expect(it.at.calls).toHaveLength(1);
    expect(it.at.calls[0]!.outcome).not.toBe("ok");
  },
);

test.each([
  ["is down", jsonResponse({}, 500)],
  ["answers another thing", jsonResponse({ allowed: "yes" })],
  ["answers no JSON", { body: "<html>" }],
  [
    "breaks off",
    { ...jsonResponse({ allow: true }), truncation: { after: "headers", how: "reset" } as const },
  ],
  [
    "hangs",
    { ...jsonResponse({ allow: true }), truncation: { after: "nothing", how: "stall" } as const },
  ],
])("rejects every request if the service %s", async (_how, verdict) => {
  await using it = await house(verdict, { timeout_ms: 300 });
  const got = await it.at.ask("up/model", "Hi");
  expect([got.status, got.error?.code]).toEqual([503, "guard_unavailable"]);
  expect(JSON.stringify(it.at.logs)).not.toContain("canary-7d1");
});

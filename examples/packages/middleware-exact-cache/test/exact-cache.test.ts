// The rules of the cache in a gateway: the same response to the same request, only for its tenant, and nothing private.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { defineMiddleware } from "tollgate/plugin";
import { jsonResponse, say, startGateway } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

/** Uses the secret as the ID of the key, and its text before the dash as the team. Two keys are two tenants. */
const door = defineMiddleware({
  api: 1,
  name: "door",
  summary: "Lets every key in",
  sends: "nowhere",
  setup: () => ({
    admit(x, secret = "none") {
      x.identify({ id: secret, labels: { team: secret.split("-")[0] } });
    },
  }),
});

/**
 * A provider that returns the text of the request and the number of requests that it has received.
 */
const house = (options: object = {}, more: object = {}) => {
  let asked = 0;
  return startGateway({
    plugins: { "exact-cache": plugin, door },
    upstream: {
      "GET /*": jsonResponse({ object: "list", data: [{ id: "model", object: "model" }] }),
      "POST /*": (one) =>
        say(`${++asked} for ${one.json().messages.at(-1).content}`).toResponse(one),
    },
    config: {
      middleware: ["door", "zdr", { use: "exact-cache", with: options }],
      providers: {
        up: {
          use: "openai-compatible",
          with: { base_url: "${env:UPSTREAM}/v1" },
          credentials: [{ name: "main", with: { api_key: "canary" }, zdr: { declared: true } }],
        },
      },
      ...more,
    },
  });
};
type House = Awaited<ReturnType<typeof house>>;
const told = ({ headers }: { headers: Readonly<Record<string, string>> }) =>
  headers["x-tollgate-cache"]?.split(";")[0];

test("a cached response belongs to the same key and the same request, for random requests", async () => {
  await using at = await house();
  const one = fc.record({
    key: fc.constantFrom("red-ann", "red-bob", "blue-cid"),
    words: fc.constantFrom("Hi", "Ho", "Hi "),
    stream: fc.boolean(),
    temperature: fc.constantFrom(0, 0.5),
    user: fc.constantFrom("one", "two"),
    private: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(one, { maxLength: 12 }), async (all) => {
      for (const { key, words, stream, temperature, user, private: hidden } of all) {
        const body = { messages: [{ role: "user", content: words }], temperature, user };
        const headers: Record<string, string> = hidden ? { "service-zdr": "required" } : {};
        const before = asked(at).length;
        const got = await at.ask("up/model", words, { key, stream, body, headers });
        const name = JSON.stringify([key, words, stream, temperature]);
        const kept = known.get(name);
        expect(got.text).toMatch(new RegExp(`^\\d+ for ${words}$`));
        expect(told(got)).toBe(hidden ? "off" : kept === undefined ? "miss" : "hit");
        expect(asked(at).length - before).toBe(told(got) === "hit" ? 0 : 1);
        if (told(got) === "hit") expect(got.text).toBe(kept);
        else if (!hidden) known.set(name, got.text);
      }
    }),
    { numRuns: 8 },
  );
});
const known = new Map<string, string>();
const asked = ({ upstream }: House) => upstream.requests.filter(({ method }) => method === "POST");

test("equal concurrent requests cause one call per key", async () => {
  await using at = await house();
  const keys = ["ann", "ann", "ann", "bob", "bob"];
  const got = await Promise.all(keys.map((key) => at.ask("up/model", "Hi", { key })));
  expect(asked(at).length).toBe(2);
  expect(new Set(got.slice(0, 3).map(({ text }) => text)).size).toBe(1);
  expect(new Set(got.map(({ text }) => text)).size).toBe(2);
  expect(at.calls).toHaveLength(2);
});

test("a team shares responses if configured, and a key without a team shares none", async () => {
  await using at = await house({ share: "label:team" });
  const hear = async (key: string) => told(await at.ask("up/model", "Hi", { key }));
  expect(await hear("red-ann")).toBe("miss");
  expect(await hear("red-bob")).toBe("hit");
  expect(await hear("blue-cid")).toBe("miss");
  await using other = await house({ share: "label:floor" });
  expect(told(await other.ask("up/model", "Hi"))).toBe("off");
});

test("follows the client's Cache-Control", async () => {
  await using at = await house();
  const hear = async (said?: string) =>
    told(await at.ask("up/model", "Hi", said ? { headers: { "cache-control": said } } : {}));
  expect(await hear("no-store")).toBe("off");
  expect(await hear()).toBe("miss");
  expect(await hear("no-cache")).toBe("miss");
  expect(await hear("max-age=60")).toBe("hit");
  expect(await hear("max-age=0")).toBe("miss");
  expect(await hear()).toBe("hit");
});

test("does not store truncated, refused, or failed responses, or responses that depend on stored objects", async () => {
  await using at = await house();
  const twice = async (body: { [field: string]: unknown }) => {
    await at.ask("up/model", "Hi", { stream: true, body });
    return told(await at.ask("up/model", "Hi", { stream: true, body }));
  };
  expect(await twice({ n: 2 })).toBe("off");
  expect(await twice({ tools: [{ type: "web_search" }] })).not.toBe("hit");
  for (const speech of [
    say("Cut").finish("length"),
    say("No").finish("filtered"),
    say("x").fail("Broken"),
  ]) {
    at.upstream.setRoutes({ "POST /*": (one) => speech.toResponse(one) });
    expect(await twice({ seed: 1 })).toBe("miss");
  }
});

test("a retried request does not wait for itself, and requests that wait for it receive a response", async () => {
  await using at = await house({ wait_s: 60 });
  let tries = 0;
  at.upstream.setRoutes({
    "POST /*": (one) =>
      ++tries === 1
        ? jsonResponse({ error: { message: "busy" } }, 503)
        : say("There").toResponse(one),
  });
  const got = await Promise.all(["ann", "ann"].map((key) => at.ask("up/model", "Hi", { key })));
  expect(got.map(({ text }) => text)).toEqual(["There", "There"]);
});

test("keeps the size limits of the cache and of a tenant", async () => {
  const long = "x".repeat(300_000);
  await using at = await house({ max_mb: 2, tenant_mb: 1 });
  const hear = async (key: string, n: number) =>
    told(await at.ask("up/model", `${n} ${long}`, { key, body: { seed: n } }));
  for (let n = 0; n < 6; n++) await hear("ann", n);
  await hear("bob", 0);
  expect(await hear("bob", 0)).toBe("hit");
  expect(await hear("ann", 5)).toBe("hit");
  expect(await hear("ann", 0)).toBe("miss");
});

test("stores nothing of a private request, and sends it no stored response", async () => {
  await using at = await house({}, { log: { level: "debug" } });
  const canary = "canary-6f1d2c";
  const zdr = { headers: { "service-zdr": "required" } };
  const said = async (manner: object) => told(await at.ask("up/model", canary, manner));
  expect([await said(zdr), await said(zdr)]).toEqual(["off", "off"]);
  // The same request without privacy calls the provider, because the private response was not stored.
  expect(await said({})).toBe("miss");
  expect(asked(at).length).toBe(3);
  expect(await said(zdr)).toBe("off");
  for (const name of readdirSync(at.stateDir, { recursive: true, encoding: "utf8" })) {
    const file = join(at.stateDir, name);
    if (statSync(file, { throwIfNoEntry: false })?.isFile())
      expect(readFileSync(file).includes(canary)).toBe(false);
  }
  expect(JSON.stringify(at.logs)).not.toContain(canary);
});

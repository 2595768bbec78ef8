// Scopes in the real gateway, on both built-in stores: parallel first requests of a member overrun
// no limit, and each overflow policy does what it promises.
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  startTestGateway,
  startUpstream,
  type ScriptedResponse,
  type ScriptedRoutes,
  type TestGateway,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";

const ALICE = mintKey().secret;
const BOB = mintKey().secret;
/** Cost of one image, reserved and billed alike. */
const EACH = 0.04;

const yaml = (url: string, store: string) => `
frontends: [chat-completions, messages, images, usage]
middleware:
  - use: auth
    with: { keys: [{ id: alice, digest: ${digestKey(ALICE)}, labels: { team: web } }, { id: bob, digest: ${digestKey(BOB)} }] }
  - { use: limits, with: { hold: hard } }
  - usage
store: ${store}
scopes:
  session:
    from: [session]
    limits: [requests=3/total, usd=${(2.5 * EACH).toFixed(2)}/total]
  run:
    from: ["header:x-run", "body:/user", "body:/meta/run"]
    within: gateway
    limits: [requests=3/total]
  few: { from: ["header:x-few"], limits: [requests=9/total], max_members: 2 }
  soft: { from: ["header:x-soft"], limits: [requests=1/total], overflow: warn, label: hash }
  down: { from: ["header:x-down"], limits: [requests=1/total], overflow: { downgrade: small, limits: [requests=1/total] } }
  late: { from: ["header:x-late"], models: ["up/late"], limits: [usd=0.000001/total], overflow: { downgrade: small, limits: [requests=1/total] } }
  capped: { from: ["header:x-capped"], models: ["up/late"], limits: [usd=0.000001/total] }
  must: { from: ["header:x-must"], models: ["up/strict"], limits: [requests=9/day], missing: refuse }
  team: { from: ["label:team"], models: ["up/team"], limits: [requests=2/total] }
  whole: { models: ["up/whole"], limits: [requests=2/day] }
models: { small: up/small, fallback: [bad/broken, up/late], retried: [shaky/unstable, up/late] }
providers:
  bad:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k }
    models: { broken: { price: { input: 1, output: 2 }, limits: { output: 64, context: 4096 } } }
  shaky:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k }
    models: { unstable: { price: { input: 1, output: 2 }, limits: { output: 64, context: 4096 } } }
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }
    models:
      draw: { operation: image, price: { images: ${EACH} } }
${["model", "small", "strict", "team", "whole", "late"].map((name) => `      ${name}: { price: { input: 1, output: 2 }, limits: { output: 64, context: 4096 } }`).join("\n")}
`;

const model = scriptedModel(say("Hello"));
const routes: ScriptedRoutes = {
  ...model,
  "POST /v1/chat/completions": async (request) =>
    request.body.includes('"broken"')
      ? jsonResponse({ error: { message: "broken" } }, 401)
      : request.body.includes('"unstable"')
        ? jsonResponse({ error: { message: "unstable" } }, 503)
        : (
            model["POST /v1/chat/completions"] as (of: UpstreamRequest) => Promise<ScriptedResponse>
          )(request),
  "POST /v1/images/generations": () => ({
    ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
    billedUsage: { images: 1 },
  }),
};

describe.each(["{ use: sqlite, with: { durability: process, ballast_mb: 0 } }", "memory"])(
  "on the %s store",
  (store) => {
    let up: TestUpstream;
    let at: TestGateway;
    beforeAll(async () => {
      up = await startUpstream(routes);
      at = await startTestGateway({ yaml: yaml(up.url, store) });
    });
    afterAll(async () => {
      await at[Symbol.asyncDispose]();
      await up.close();
    });

    const ask = async (
      headers: Record<string, string>,
      { key = ALICE, model = "up/model", path = "/v1/chat/completions", ...body } = {} as {
        key?: string;
        model?: string;
        path?: string;
        [field: string]: unknown;
      },
    ) => {
      const drawing = path === "/v1/images/generations";
      const res = await fetch(at.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
        body: JSON.stringify({
          model: drawing ? "up/draw" : model,
          ...(drawing
            ? { prompt: "A gate" }
            : { messages: [{ role: "user", content: "Hi" }], max_tokens: 8 }),
          ...body,
        }),
      });
      return { status: res.status, headers: res.headers, body: (await res.json()) as any };
    };
    const many = (n: number, each: (i: number) => ReturnType<typeof ask>) =>
      Promise.all(Array.from({ length: n }, (_, i) => each(i)));
    const allowed = (answers: readonly { status: number }[]) =>
      answers.filter(({ status }) => status === 200).length;

    it("parallel first requests overrun no limit", async () => {
      const calls = await many(20, () => ask({ "session-id": "calls" }));
      expect(allowed(calls)).toBe(3);
      for (const { status, body } of calls.filter((one) => one.status !== 200)) {
        expect([status, body.error.code]).toEqual([429, "scope_exhausted"]);
        expect(body.error.message).toContain("scope:session");
        expect(JSON.stringify(body)).not.toContain("~");
      }
      const pictures = await many(20, () =>
        ask({ "session-id": "money" }, { path: "/v1/images/generations" }),
      );
      expect(allowed(pictures)).toBe(2);
    });

    it("one value through two sources is one member, and counts once", async () => {
      const answers = await many(8, (i) =>
        ask(i % 2 === 0 ? { "x-run": "one" } : {}, { user: i % 2 === 0 ? "other" : "one" }),
      );
      expect(allowed(answers)).toBe(3);
      // The second source was not counted when the first had a value.
      expect((await ask({}, { user: "other" })).status).toBe(200);
    });

    it("a value is unique within its key, or within the gateway", async () => {
      const by = (key: string, headers: Record<string, string>) =>
        many(4, () => ask(headers, { key }));
      expect(allowed(await by(ALICE, { "session-id": "same" }))).toBe(3);
      expect(allowed(await by(BOB, { "session-id": "same" }))).toBe(3);
      expect(allowed(await by(ALICE, { "x-run": "same" }))).toBe(3);
      expect(allowed(await by(BOB, { "x-run": "same" }))).toBe(0);
    });

    it("a label and a model name a scope", async () => {
      expect(allowed(await many(5, () => ask({}, { model: "up/team" })))).toBe(2);
      expect(allowed(await many(5, () => ask({}, { model: "up/team", key: BOB })))).toBe(5);
      const both = await many(5, (i) =>
        ask({}, { model: "up/whole", key: i % 2 === 0 ? ALICE : BOB }),
      );
      expect(allowed(both)).toBe(2);
    });

    it("a full scope rejects new members, and serves its own", async () => {
      expect((await ask({ "x-few": "1" })).status).toBe(200);
      expect((await ask({ "x-few": "2" })).status).toBe(200);
      const { status, body, headers } = await ask({ "x-few": "3" });
      expect([status, body.error.code]).toEqual([429, "too_many_scope_members"]);
      expect(body.error.message).toContain("scopes.few.max_members");
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await ask({ "x-few": "1" })).status).toBe(200);
      expect((await ask({ "x-few": "3" }, { key: BOB })).status).toBe(200);
    });

    it("warn serves the request and says so", async () => {
      expect((await ask({ "x-soft": "a" })).headers.get("x-tollgate-scope")).toBe("soft");
      const second = await ask({ "x-soft": "a" });
      expect([second.status, second.headers.get("x-tollgate-scope")]).toEqual([200, "soft"]);
      expect((await ask({})).headers.get("x-tollgate-scope")).toBeNull();
    });

    it("downgrade serves the request with the other model, within its own limits", async () => {
      const first = await ask({ "x-down": "a" });
      expect([first.status, first.body.model]).toEqual([200, "up/model"]);
      expect(first.headers.get("x-tollgate-downgrade")).toBeNull();
      const second = await ask({ "x-down": "a" });
      expect([second.status, second.body.model]).toEqual([200, "up/small"]);
      expect(second.headers.get("x-tollgate-downgrade")).toBe("down; up/model -> small");
      const third = await ask({ "x-down": "a" });
      expect([third.status, third.body.error.code]).toEqual([429, "scope_exhausted"]);
      const usage = await fetch(`${at.url}/v1/usage?by=downgraded,model`, {
        headers: { authorization: `Bearer ${ALICE}` },
      });
      expect((await usage.json()) as object).toMatchObject({
        data: [{ downgraded: "down", model: "up/small", calls: 1 }],
      });
    });

    it("a downgrade after a failed attempt is billed", async () => {
      const { status, body } = await ask({ "x-late": "a" }, { model: "fallback", key: BOB });
      expect([status, body.model ?? body.error]).toEqual([200, "up/small"]);
      const usage = await fetch(`${at.url}/v1/usage?by=downgraded,model`, {
        headers: { authorization: `Bearer ${BOB}` },
      });
      expect(((await usage.json()) as { data: unknown }).data).toContainEqual(
        expect.objectContaining({ downgraded: "late", model: "up/small", calls: 1 }),
      );
      expect((await ask({ "x-late": "a" }, { model: "up/late", key: BOB })).status).toBe(429);
    });

    it("a pending retry hides no denial", async () => {
      const { status, body } = await ask({ "x-late": "b" }, { model: "retried", key: BOB });
      expect([status, body.model ?? body.error]).toEqual([200, "up/small"]);
      const before = up.requests.length;
      const refused = await ask({ "x-capped": "b" }, { model: "retried", key: BOB });
      expect([refused.status, refused.body.error.code]).toEqual([429, "scope_exhausted"]);
      expect(up.requests.length - before).toBe(2);
    });

    it("a missing value is rejected if the scope requires one", async () => {
      const { status, body } = await ask({}, { model: "up/strict" });
      expect([status, body.error.code]).toEqual([400, "missing_scope_value"]);
      expect((await ask({ "x-must": "1" }, { model: "up/strict" })).status).toBe(200);
    });

    it.each<[string, Record<string, string>, Record<string, unknown>, string]>([
      ["too long", { "x-run": "x".repeat(257) }, {}, "x-run"],
      ["not ASCII", { "x-run": "caf\u00e9" }, {}, "x-run"],
      ["no string", {}, { meta: { run: 7 } }, "meta.run"],
      ["with a control character", {}, { user: "a\u0000b" }, "user"],
      ["too long in the body", {}, { user: "x".repeat(257) }, "user"],
      ["bad behind a good one", { "x-run": "good" }, { meta: { run: [1] } }, "meta.run"],
    ])(
      "a value that is %s is rejected and changes no limit",
      async (_what, headers, body, param) => {
        const before = up.requests.length;
        const answer = await ask(headers, body);
        expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([
          400,
          "invalid_scope_value",
          param,
        ]);
        expect(up.requests.length).toBe(before);
      },
    );

    it("a header that is sent twice is rejected", async () => {
      const { port } = new URL(at.url);
      const body = JSON.stringify({
        model: "up/model",
        messages: [{ role: "user", content: "Hi" }],
      });
      const twice = await new Promise<number>((resolve, reject) => {
        const sent = httpRequest({ port, method: "POST", path: "/v1/chat/completions" }, (res) => {
          res.resume();
          resolve(res.statusCode!);
        }).on("error", reject);
        sent.setHeader("authorization", `Bearer ${ALICE}`);
        sent.setHeader("content-type", "application/json");
        sent.setHeader("x-run", ["a", "b"]);
        sent.end(body);
      });
      expect(twice).toBe(400);
      expect((await ask({ "x-run": "a, b" })).status).toBe(200);
    });

    it("an operator shows, resets, and raises a member", async () => {
      const command = (name: string, input: object) =>
        callControl(at.stateDir, name, { name: "session", ...input } as never) as Promise<any>;
      const member = { value: "command", key: "alice" };
      const used = async () =>
        (await command("scopes.show", member)).limitUsage.map((one: any) => Number(one.used));
      expect(allowed(await many(5, () => ask({ "session-id": "command" })))).toBe(3);
      expect((await used())[0]).toBe(3);
      const { members, memberCount } = await command("scopes.show", { search: "comm" });
      expect(memberCount).toBe(1);
      expect(members[0]).toMatchObject({ value: "command", key: "alice", calls: 3 });
      expect(members[0].limitUsage[0]).toMatchObject({ limit: "requests=3/total" });
      expect(JSON.stringify(members)).not.toContain("~");

      expect((await command("scopes.reset", member)).limitUsage[0].remaining).toBe(3);
      expect(allowed(await many(5, () => ask({ "session-id": "command" })))).toBe(3);
      const raised = await command("scopes.raise", { ...member, by: "requests=2/total" });
      expect(raised.limitUsage[0]).toMatchObject({ used: "1", remaining: 2 });
      expect(allowed(await many(5, () => ask({ "session-id": "command" })))).toBe(2);
      // The same value of another key is another member.
      await command("scopes.reset", { ...member, key: "bob" });
      expect((await ask({ "session-id": "command" })).status).toBe(429);

      const failed = (name: string, input: object) =>
        command(name, input).then(
          () => "no error",
          (error: { message: string }) => error.message,
        );
      expect(await failed("scopes.raise", { ...member, by: "usd=1/day" })).toContain(
        "requests=3/total",
      );
      expect(
        await failed("scopes.raise", { ...member, value: "new", by: "requests=1/total" }),
      ).toContain("has no usage");
      expect(await failed("scopes.reset", { value: "command" })).toContain("Add --key");
      expect(await failed("scopes.reset", { name: "whole", value: "x" })).toContain("no members");
    });

    it("an erased member is in no row, and has used nothing", async () => {
      const command = (name: string, input: object) =>
        callControl(at.stateDir, name, { name: "run", ...input } as never) as Promise<any>;
      expect(allowed(await many(4, () => ask({ "x-run": "alice@example.com" })))).toBe(3);
      if (store === "memory") {
        const erased = command("scopes.erase", { value: "alice@example.com" });
        await expect(erased).rejects.toThrow("memory");
        return;
      }
      expect(await command("scopes.erase", { value: "alice@example.com" })).toMatchObject({
        texts: 1,
      });
      const rows = await callControl(at.stateDir, "ledger.entries", { limit: 1_000 });
      expect(JSON.stringify(rows)).not.toContain("alice@example.com");
      expect((await command("scopes.show", {})).members).not.toContainEqual(
        expect.objectContaining({ value: "alice@example.com" }),
      );
      expect(allowed(await many(4, () => ask({ "x-run": "alice@example.com" })))).toBe(3);
      expect(await callControl(at.stateDir, "ledger.verify", {})).toMatchObject({ problems: [] });
    });

    it("a value of 256 characters is counted, and usage is reported by it", async () => {
      const value = "v".repeat(256);
      expect(allowed(await many(5, () => ask({ "x-run": value })))).toBe(3);
      const get = async (query: string) => {
        const res = await fetch(`${at.url}/v1/usage?${query}`, {
          headers: { authorization: `Bearer ${ALICE}` },
        });
        return { status: res.status, body: (await res.json()) as any };
      };
      const { body } = await get("by=run");
      expect(body.data).toContainEqual(expect.objectContaining({ run: value, calls: 3 }));
      // A hashed value is reported as its hash.
      const [soft] = (await get("by=soft")).body.data;
      expect(soft).toMatchObject({ calls: 2 });
      expect(soft.soft).toMatch(/^[\w-]{22}$/);
      expect((await get("by=colour")).status).toBe(400);
    });
  },
);

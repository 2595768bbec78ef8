import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import models from "../../plugins/frontends/models.ts";
import imagesFrontend from "../../plugins/frontends/images.ts";
import { createListPage, millionth, toModelEntry } from "../../plugins/frontends/models.ts";
import { createCatalog } from "../../src/catalog/catalog.ts";
import { formatDecimal, parseDecimal } from "../../src/money/decimal.ts";
import { fail, getFault, ERRORS, type Fault } from "../../src/model/error.ts";
import type { ModelInfo, Privacy } from "../../src/model/facts.ts";
import type { RequestHead } from "../../src/plugin/exchange.ts";
import type { Identity } from "../../src/plugin/identity.ts";
import type { Frontend } from "../../src/plugin/frontend.ts";
import { createTestContext } from "../../src/testing/context.ts";
import { matchesPattern } from "../../src/catalog/model-names.ts";

const MODELS: ModelInfo[] = [
  {
    model: "gpt-6",
    operation: "chat",
    name: "GPT-6",
    released: "2026-05-01",
    retires: "2027-03-01",
    limits: { context: 400_000, output: 128_000 },
    can: { tools: true, vision: true, json_schema: true, reasoning: false },
    rejectedFields: ["temperature"],
    price: {
      lines: [
        { unit: "input", usd: "1.25", per: 1_000_000 },
        { unit: "output", usd: "10", per: 1_000_000 },
        { unit: "cache_read", usd: "0.125", per: 1_000_000 },
        { unit: "images", usd: "0.04", per: 1 },
        { unit: "output", usd: "99", per: 1_000_000, variant: { quality: "high" } },
      ],
    },
  },
  {
    model: "picture-1",
    operation: "image",
    image: { sizes: ["1024x1024"] },
    limits: { images: 4 },
  },
  { model: "openai/gpt-6:free", operation: "chat" },
];
const many = Array.from({ length: 45 }, (_, i): ModelInfo => ({
  model: `m${String(i).padStart(2, "0")}`,
  operation: "chat",
}));

const catalog = createCatalog({
  providers: new Map([
    ["openai", { shipped: { asOf: "2026-11-01", models: MODELS } }],
    ["bulk", { shipped: { asOf: "2026-11-01", models: many } }],
  ]),
  policyOf: (provider) => ({
    retention: { kind: provider === "openai" ? "zero" : "unknown" },
    trains: provider === "openai" ? "no" : "unknown",
    basis: provider === "openai" ? "published" : "unknown",
    reasons: [],
  }),
});

/** Like the host: models that a key may not use do not exist. */
const KEYS: Record<string, Identity> = {
  all: { id: "k1" },
  some: { id: "k2", models: ["openai/*"] },
};

let frontend: Frontend;
let server: Server;
let base: string;
beforeAll(async () => {
  const ctx = {
    ...createTestContext().ctx,
    catalog: {
      list: ({
        identity,
        privacy,
        operation,
      }: {
        identity?: Identity;
        privacy?: Privacy;
        operation?: any;
      }) =>
        catalog.list({
          operation,
          privacy,
          isAllowed:
            identity?.models && ((id) => identity.models!.some((p) => matchesPattern(p, id))),
        }),
      find: (id: string) => catalog.listing(id),
      operations: () => catalog.operations,
    },
  };
  frontend = await models.setup({ accept: ["bearer", "x-api-key"] }, ctx as never);
  server = createServer(async (asked, answer) => {
    const url = new URL(asked.url!, "http://gateway.test");
    const [list, byId] = frontend.routes;
    const id = /^\/v1\/models\/(.+)$/.exec(url.pathname)?.[1];
    const x = {
      id: "r1",
      query: url.searchParams,
      headers: asked.headers,
      credentialSources: [],
      params: id === undefined ? {} : { id: decodeURIComponent(id) },
      privacy: (asked.headers["x-test-privacy"] ?? "off") as Privacy,
    };
    const reply = (status: number, body: unknown) =>
      answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    try {
      const secret = frontend.extractCredential!(asked.headers, new URLSearchParams());
      const identity = KEYS[secret ?? ""] ?? fail("unauthenticated", "Who are you?");
      const route = id === undefined ? list! : byId!;
      if (!("handle" in route) || route.body !== undefined) throw new Error("not a serve route");
      const served = await route.handle({ ...x, identity } as unknown as RequestHead);
      reply(served.status, served.body);
    } catch (error) {
      const fault: Fault = getFault(error) ?? { kind: "internal", message: String(error) };
      const { status, body } = frontend.encodeFault!(fault, x as unknown as RequestHead, {
        id: "x1",
      });
      reply(status ?? ERRORS[fault.kind][0], body);
    }
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close().closeAllConnections());

const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${base}${path}`, {
    headers: { authorization: "Bearer all", ...headers },
  });
  return { status: answer.status, body: (await answer.json()) as any };
};

describe("the SDKs", () => {
  it("OpenAI's lists all models and gets one, with slashes and colons", async () => {
    const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "all", maxRetries: 0 });
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toHaveLength(48);
    const model = await client.models.retrieve("openai/openai/gpt-6:free");
    expect(model).toMatchObject({
      id: "openai/openai/gpt-6:free",
      object: "model",
      owned_by: "openai",
      created: 0,
    });
    await expect(client.models.retrieve("openai/none")).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
      type: "invalid_request_error",
    });
  });

  it("Anthropic's pages in both directions and gets one", async () => {
    for (const auth of [{ apiKey: "all" }, { authToken: "all", apiKey: null }]) {
      const client = new Anthropic({ baseURL: base, maxRetries: 0, ...auth });
      const first = await client.models.list();
      expect(first.data).toHaveLength(20);
      const ids: string[] = [];
      for await (const model of client.models.list({ limit: 7 })) ids.push(model.id);
      expect(ids).toEqual(catalog.list().map((l) => l.id));
      const back: string[] = [];
      let at = await client.models.list({ limit: 7, before_id: ids[ids.length - 1]! });
      for (;;) {
        back.unshift(...at.data.map((m) => m.id));
        if (!at.has_more) break;
        at = await client.models.list({ limit: 7, before_id: at.first_id! });
      }
      expect(back).toEqual(ids.slice(0, -1));
      const model = await client.models.retrieve("openai/gpt-6");
      expect(model).toMatchObject({
        type: "model",
        id: "openai/gpt-6",
        display_name: "GPT-6",
        description: "400K tokens of context, $1.25 input and $10 output per million tokens",
        created_at: "2026-05-01T00:00:00Z",
        max_input_tokens: 400_000,
        max_tokens: 128_000,
        lifecycle: "deprecated",
        retires_at: "2027-03-01T00:00:00Z",
      });
      await expect(client.models.retrieve("openai/none")).rejects.toMatchObject({
        status: 404,
        error: { type: "error", error: { type: "not_found_error" } },
      });
    }
  });
});

describe("the listed models", () => {
  it("are those that the key may use", async () => {
    const { body } = await get("/v1/models", { authorization: "Bearer some" });
    expect(body.data.map((m: any) => m.id)).toEqual([
      "openai/gpt-6",
      "openai/openai/gpt-6:free",
      "openai/picture-1",
    ]);
    expect((await get("/v1/models/bulk/m01")).status).toBe(200);
    expect((await get("/v1/models/bulk/m01", { authorization: "Bearer some" })).status).toBe(404);
  });

  it("can be filtered by operation, provider, and zdr, but not extended", async () => {
    const ids = async (query: string, headers = {}) =>
      (await get(`/v1/models?${query}`, headers)).body.data?.map((m: any) => m.id);
    expect(await ids("operation=image")).toEqual(["openai/picture-1"]);
    expect(await ids("provider=openai&operation=chat")).toEqual([
      "openai/gpt-6",
      "openai/openai/gpt-6:free",
    ]);
    for (const zdr of ["required", "true", "1", "", "strict", "STRICT"])
      expect(await ids(`zdr=${zdr}`)).toHaveLength(3);
    expect(await ids("zdr=off")).toHaveLength(48);
    expect(await ids("zdr=off", { "x-test-privacy": "required" })).toHaveLength(3);
    for (const query of ["operation=hologram", "zdr=maybe", "limit=0", "limit=1001", "limit=x"])
      expect((await get(`/v1/models?${query}`)).status).toBe(400);
    expect((await get("/v1/models?after_id=nobody")).status).toBe(400);
    expect((await get("/v1/models?after_id=a&before_id=b")).status).toBe(400);
  });

  it("an escaped slash is a slash, also if it is escaped twice", async () => {
    for (const path of ["openai%2Fgpt-6", "openai%252Fgpt-6", "openai/gpt-6"])
      expect((await get(`/v1/models/${path}`)).body.id).toBe("openai/gpt-6");
    expect((await get("/v1/models/100%25")).status).toBe(404);
  });

  it("have the extra fields that editors read, and no unknown facts", () => {
    const [gpt, , picture] = catalog
      .list({ provider: "openai" })
      .map((model) => toModelEntry(model, catalog.operations.get(model.operation)));
    expect(gpt).toMatchObject({
      created: 1_777_593_600,
      context_length: 400_000,
      top_provider: { context_length: 400_000, max_completion_tokens: 128_000 },
      architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
      supported_parameters: [
        "max_tokens",
        "top_p",
        "stop",
        "tools",
        "tool_choice",
        "response_format",
        "structured_outputs",
      ],
      pricing: {
        prompt: "0.00000125",
        completion: "0.00001",
        input_cache_read: "0.000000125",
        image: "0.04",
      },
      expiration_date: "2027-03-01",
      data_policy: { retention: { kind: "zero" }, trains: "no", basis: "published" },
    });
    expect(JSON.parse(JSON.stringify(picture))).toEqual({
      id: "openai/picture-1",
      object: "model",
      created: 0,
      owned_by: "openai",
      type: "model",
      display_name: "openai/picture-1",
      created_at: "1970-01-01T00:00:00Z",
      max_input_tokens: null,
      max_tokens: null,
      lifecycle: "active",
      line: null,
      deprecated_at: null,
      retires_at: null,
      capabilities: null,
      operation: "image",
      top_provider: { context_length: null, max_completion_tokens: null },
      image: { sizes: ["1024x1024"], max_n: 4 },
      data_policy: { retention: { kind: "zero" }, trains: "no", basis: "published" },
    });
  });
});

describe("the key", () => {
  it("may be in either header, and errors have the caller's format", async () => {
    const status = async (headers: Record<string, string>) =>
      (await fetch(`${base}/v1/models`, { headers })).status;
    expect(await status({ authorization: "Bearer all" })).toBe(200);
    expect(await status({ "x-api-key": "all" })).toBe(200);
    expect(await status({ authorization: "bearer  all", "x-api-key": "all" })).toBe(200);
    expect(await status({ authorization: "Bearer all", "x-api-key": "some" })).toBe(401);
    expect(await status({ authorization: "Basic x", "x-api-key": "all" })).toBe(200);
    expect(await status({})).toBe(401);
    const shape = async (headers: Record<string, string>) =>
      (await get("/v1/models", { authorization: "Basic abc", ...headers })).body;
    expect(await shape({})).toMatchObject({
      error: { type: "authentication_error", message: expect.stringContaining("Bearer <key>") },
    });
    expect(await shape({ "anthropic-version": "2023-06-01" })).toMatchObject({
      type: "error",
      error: { type: "authentication_error" },
    });
  });

  it("of the images endpoint is a Bearer token, unless the operator configures otherwise", async () => {
    const { ctx } = createTestContext();
    const strict = await imagesFrontend.setup({ accept: ["bearer"] }, ctx);
    expect(strict.extractCredential!({ authorization: "Bearer k" }, new URLSearchParams())).toBe(
      "k",
    );
    expect(strict.extractCredential!({}, new URLSearchParams())).toBeUndefined();
    expect(() =>
      strict.extractCredential!({ "x-api-key": "k" }, new URLSearchParams()),
    ).toThrowError(/Authorization: Bearer/);
    const open = await imagesFrontend.setup({ accept: ["x-api-key", "bearer"] }, ctx);
    expect(open.extractCredential!({ "x-api-key": "a" }, new URLSearchParams())).toBe("a");
    expect(() =>
      open.extractCredential!(
        { "x-api-key": "a", authorization: "Bearer b" },
        new URLSearchParams(),
      ),
    ).toThrowError(/different keys/);
    expect(open.extractCredential!({ authorization: "Bearer b" }, new URLSearchParams())).toBe("b");
    const at = (to: string) => [`/v1${to}`, to, `/v1/v1${to}`, `/openai/v1${to}`, `/openai${to}`];
    const google = (to: string) => `/v1beta/openai${to}`;
    const deployed = (to: string) =>
      [":model", ":provider/:model", ":provider/:vendor/:model"].map(
        (model) => `/openai/deployments/${model}${to}`,
      );
    expect(strict.routes.flatMap((r) => r.path)).toEqual([
      ...at("/images/generations"),
      google("/images/generations"),
      ...deployed("/images/generations"),
      ...at("/images/edits"),
      ...deployed("/images/edits"),
      ...at("/images/variations"),
    ]);
  });
});

describe("properties", () => {
  it("the pages of a list add up to the list in both directions", () => {
    const list = fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 30 });
    fc.assert(
      fc.property(list, fc.integer({ min: 1, max: 12 }), (ids, limit) => {
        const rows = ids.map((id) => ({ id }));
        const turn = (more: Record<string, string>) =>
          createListPage(rows, new URLSearchParams({ limit: String(limit), ...more }), true) as any;
        const forward: string[] = [];
        let at = turn({});
        for (;;) {
          expect(at.data.length).toBeLessThanOrEqual(limit);
          expect([at.first_id, at.last_id]).toEqual([
            at.data[0]?.id ?? null,
            at.data.at(-1)?.id ?? null,
          ]);
          forward.push(...at.data.map((r: any) => r.id));
          if (!at.has_more) break;
          at = turn({ after_id: at.last_id });
        }
        expect(forward).toEqual(ids);
        const back: string[] = [];
        for (
          let last = ids.at(-1);
          last !== undefined;
          last = at.has_more ? at.first_id : undefined
        ) {
          at = turn({ before_id: last });
          back.unshift(...at.data.map((r: any) => r.id));
        }
        expect(back).toEqual(ids.slice(0, -1));
        const [first, ...rest] = ids;
        if (first === undefined) return;
        at = turn({ after_id: first });
        expect(at.data.map((r: any) => r.id)).toEqual(rest.slice(0, limit));
        expect(turn({ before_id: first })).toMatchObject({ data: [], has_more: false });
      }),
    );
  });

  it("a price per token equals the price per million tokens, exactly", () => {
    const usd = fc
      .tuple(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.nat(6))
      .map(([n, places]) => formatDecimal(n, places));
    fc.assert(
      fc.property(usd, (price) => {
        const token = millionth(price);
        expect(token).toBe(formatDecimal(parseDecimal(price, 6), 12));
      }),
    );
    expect(["0", "1", "1.250", "1000000", "10000000"].map(millionth)).toEqual([
      "0",
      "0.000001",
      "0.00000125",
      "1",
      "10",
    ]);
  });
});

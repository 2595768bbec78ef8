// The anthropic provider and its compatible sibling, without a gateway.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import anthropic from "../../plugins/providers/anthropic.ts";
import compatible from "../../plugins/providers/anthropic-compatible.ts";
import type { ChatRequest } from "../../src/model/request.ts";
import type { ProviderClient, Call } from "../../src/plugin/call.ts";
import type { Outgoing } from "../../src/plugin/outgoing.ts";
import type { Provider, ProtocolEndpoint } from "../../src/plugin/provider.ts";
import { createCallContext } from "../../src/testing/codec-contexts.ts";
import {
  createTestContext,
  jsonResponse,
  startUpstream,
  type TestUpstream,
} from "../../src/testing/index.ts";
import { createChatRequest } from "../kit/requests.ts";

let up: TestUpstream;
beforeAll(async () => void (up = await startUpstream()));
afterAll(() => up.close());

const ctx = createTestContext().ctx;
const made = (options: object = {}): Provider =>
  anthropic.setup(
    { base_url: "https://api.anthropic.com", version: "2023-06-01", ...options } as never,
    ctx,
  ) as Provider;
const endpointOf = (provider: Provider) => provider.endpoints[0] as ProtocolEndpoint;

const line = (base: string): ProviderClient => ({
  credential: "default",
  signal: new AbortController().signal,
  fetch: (url, init) => fetch(`${base}/${String(url)}`, init as RequestInit),
});

test.each([
  ["https://api.anthropic.com", "https://api.anthropic.com/v1"],
  ["https://api.anthropic.com/", "https://api.anthropic.com/v1"],
  ["https://api.anthropic.com/v1", "https://api.anthropic.com/v1"],
  ["http://127.0.0.1:9/proxy/v1/", "http://127.0.0.1:9/proxy/v1"],
  ["https://api.moonshot.ai/anthropic", "https://api.moonshot.ai/anthropic/v1"],
])("%s is reached at %s", (base_url, base) => {
  expect(endpointOf(made({ base_url })).base).toBe(base);
});

describe("the live list", () => {
  const model = (id: string, more: object = {}) => ({
    type: "model",
    id,
    display_name: id.toUpperCase(),
    created_at: "2026-05-01T00:00:00Z",
    max_input_tokens: 200_000,
    max_tokens: 64_000,
    lifecycle: "active",
    retires_at: null,
    capabilities: {
      image_input: { supported: true },
      pdf_input: { supported: false },
      thinking: { supported: true, types: {} },
    },
    ...more,
  });

  test("is read page by page, without retired models", async () => {
    up.setRoutes({
      "GET /v1/models": (asked) =>
        jsonResponse(
          asked.query.get("after_id") === "b"
            ? { data: [model("c", { lifecycle: "retired" }), model("d")], has_more: false }
            : { data: [model("a"), model("b")], has_more: true, last_id: "b" },
        ),
    });
    const found = await made().listModels!(line(`${up.url}/v1`));
    expect(found.map((m) => m.model)).toEqual(["a", "b", "d"]);
    expect(found[0]).toEqual({
      model: "a",
      name: "A",
      operation: "chat",
      can: { vision: true, documents: false, json_schema: undefined, reasoning: true },
      limits: { input: 200_000, output: 64_000 },
      released: "2026-05-01",
      retires: undefined,
    });
    expect(up.requests[0]!.headers["anthropic-version"]).toBe("2023-06-01");
  });

  test("that never ends is abandoned", async () => {
    up.reset();
    up.setRoutes({
      "GET /v1/models": jsonResponse({ data: [model("a")], has_more: true, last_id: "a" }),
    });
    await made().listModels!(line(`${up.url}/v1`));
    expect(up.requests.length).toBeLessThanOrEqual(20);
  });

  test("that is rejected is an error", async () => {
    up.setRoutes({ "GET /v1/models": jsonResponse({ type: "error" }, 401) });
    await expect(made().listModels!(line(`${up.url}/v1`))).rejects.toThrow(/401/);
  });
});

describe("headers of a messages client", () => {
  const sent = (
    headers: Record<string, string>,
    exchange: { protocol: string; headers: Record<string, string> },
    options = {},
  ) => {
    const out = {
      headers,
      get: () => undefined,
      setHeader: (name: string, value?: string) =>
        value === undefined ? void delete headers[name] : void (headers[name] = value),
    } as unknown as Outgoing;
    endpointOf(made(options)).prepare!(out, { exchange, reportLoss() {} } as unknown as Call);
    return headers;
  };
  const own = { "anthropic-version": "2023-06-01" };

  test("reach Anthropic in translated mode too", () => {
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "a,b" };
    expect(sent({ ...own }, { protocol: "messages", headers })).toEqual(headers);
  });

  test("of other protocols do not", () => {
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "a" };
    expect(sent({ ...own }, { protocol: "chat-completions", headers })).toEqual(own);
  });

  test("are restricted to the betas that the operator allows", () => {
    const betas = (allowed: string[], value: string) =>
      sent(
        { ...own },
        { protocol: "messages", headers: { "anthropic-beta": value } },
        { betas: allowed },
      )["anthropic-beta"];
    expect(betas(["b"], "a, b,c")).toBe("b");
    expect(betas(["x"], "a, b")).toBeUndefined();
  });
});

describe("metadata of Claude models", () => {
  const sent = (model: string, more: Partial<ChatRequest> = {}) => {
    const { client } = endpointOf(made()).protocol;
    return client!.encodeRequest(
      createChatRequest({
        model,
        sampling: { temperature: 0.5, topP: 0.9 },
        reasoning: { mode: "effort", effort: "high" },
        ...more,
      }),
      createCallContext({ model }),
    ) as Record<string, any>;
  };

  test.each([
    ["claude-sonnet-4-5-20250929", "enabled", undefined, ["temperature"]],
    ["claude-opus-4-6", "adaptive", "high", ["temperature"]],
    ["claude-opus-4-8", "adaptive", "high", []],
    ["claude-sonnet-5-5", "adaptive", "high", []],
    ["claude-future-9", "adaptive", "high", []],
  ])("%s thinks by %s", (model, type, effort, sampling) => {
    const body = sent(model);
    expect(body["thinking"].type).toBe(type);
    expect(body["output_config"]?.effort).toBe(effort);
    const kept = ["temperature", "top_p"].filter((field) => field in body);
    // A reasoning budget removes the temperature.
    expect(kept).toEqual(type === "enabled" ? [] : sampling);
  });

  test("marks models that always think", () => {
    expect(() => sent("claude-fable-5-2", { reasoning: { mode: "off" } })).toThrow(
      /Reasoning cannot be disabled/,
    );
    expect(sent("claude-haiku-5-5", { reasoning: { mode: "off" } })["thinking"]).toEqual({
      type: "disabled",
    });
  });

  test("describes chat models that use messages, each named once", () => {
    const { models } = anthropic.facts!;
    expect(new Set(models.map((m) => m.model)).size).toBe(models.length);
    for (const m of models) expect(m).toMatchObject({ operation: "chat", protocols: ["messages"] });
  });
});

describe("a compatible backend", () => {
  const provider = (more: object = {}): Provider =>
    compatible.setup(
      {
        base_url: "http://127.0.0.1:8000",
        auth: "x-api-key",
        version: "2023-06-01",
        thinking: "budget",
        signed: false,
        counts: false,
        betas: false,
        max_tokens: 8192,
        drop_fields: [],
        list_models: true,
        ...more,
      } as never,
      ctx,
    ) as Provider;

  test("gets its key in the required form", () => {
    expect(endpointOf(provider()).auth).toEqual({ header: "x-api-key", field: "api_key" });
    expect(endpointOf(provider({ auth: "bearer" })).auth).toMatchObject({ prefix: "Bearer " });
  });

  test("counts and lists only if it can", () => {
    expect(endpointOf(provider()).protocol.client!.decodeCount).toBeUndefined();
    expect(endpointOf(provider({ counts: true })).protocol.client!.decodeCount).toBeDefined();
    expect(provider({ list_models: false }).listModels).toBeUndefined();
  });

  test("lists its models in either format", async () => {
    up.setRoutes({
      "GET /v1/models": jsonResponse({
        object: "list",
        data: [{ id: "llama", max_model_len: 8192 }],
      }),
    });
    expect(await provider().listModels!(line(`${up.url}/v1`))).toMatchObject([
      { model: "llama", operation: "chat", limits: { context: 8192 } },
    ]);
  });

  test("has a signer of its own: its proofs are sent back to it and to no other", () => {
    const events: unknown[] = [];
    const body = { content: [{ type: "thinking", thinking: "T", signature: "S" }] };
    const { client } = endpointOf(provider()).protocol;
    client!.decodeResponse(
      Buffer.from(JSON.stringify(body)),
      (e) => void events.push(e),
      createCallContext(),
      {},
    );
    expect(events).toContainEqual({
      type: "proof",
      index: 0,
      proof: { origin: ctx.id, kind: "signature", data: "S" },
    });
  });
});

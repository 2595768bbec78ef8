// The messages frontend and its providers, from a client's view: a real gateway and a fake
// upstream.
import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  call,
  say,
  scriptedModel,
  think,
  startUpstream,
  type TestUpstream,
} from "../../src/testing/index.ts";
import { startTestGateway, type TestGateway } from "tollgate/testing";
import { mintKey } from "../../src/lib/api-key.ts";
import { KEY, ONE_KEY } from "../kit/one-key.ts";

let up: TestUpstream;
let house: TestGateway;

const speech = think("Hm.", "EqQB").say("Hello").usage({ input: 7, cache_read: 3, output: 5 });

beforeAll(async () => {
  up = await startUpstream(scriptedModel(speech));
  house = await startTestGateway({
    yaml: `${ONE_KEY}frontends: [messages]
providers:
  anthropic: { use: anthropic, with: { api_key: sk-upstream-000000, base_url: "${up.url}" } }
  local: { use: anthropic-compatible, with: { base_url: "${up.url}/v1" } }
  chatty: { use: openai-compatible, with: { base_url: "${up.url}/v1" } }
`,
  });
});
afterAll(async () => {
  await house[Symbol.asyncDispose]();
  await up[Symbol.asyncDispose]();
});

const BODY = {
  model: "anthropic/claude-sonnet-5",
  max_tokens: 100,
  messages: [{ role: "user", content: "Hi" }],
};

const ask = (
  headers: Record<string, string>,
  body: object = BODY,
  path = "/v1/messages",
  url = house.url,
) =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const last = () => up.requests.at(-1)!;

describe("routes", () => {
  test.each([
    "/v1/messages",
    "/messages",
    "/v1/v1/messages",
    "/v1/messages/",
    "/messages/",
    "/v1/messages?beta=true",
  ])("%s", async (path) => {
    const res = await ask({ "x-api-key": KEY }, BODY, path);
    expect(res.status).toBe(200);
    const message = (await res.json()) as Record<string, any>;
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: "anthropic/claude-sonnet-5",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "EqQB" },
        { type: "text", text: "Hello" },
      ],
      stop_reason: "end_turn",
      usage: { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 5 },
    });
    expect(last()).toMatchObject({ method: "POST", path: "/v1/messages" });
    expect(last().query.get("beta")).toBe(path.includes("beta") ? "true" : null);
  });

  test.each(["/v1/messages/count_tokens", "/messages/count_tokens?beta=true"])(
    "%s, by the provider itself and without max_tokens",
    async (path) => {
      const { max_tokens: _bound, ...body } = BODY;
      const res = await ask({ "x-api-key": KEY }, body, path);
      expect([res.status, await res.json()]).toEqual([200, { input_tokens: 42 }]);
      expect(res.headers.get("x-tollgate-estimated")).toBeNull();
      expect(last().path).toBe("/v1/messages/count_tokens");
    },
  );

  test("is estimated for a provider that cannot count, with a warning", async () => {
    const body = { ...BODY, model: "local/m" };
    const res = await ask({ "x-api-key": KEY }, body, "/v1/messages/count_tokens");
    expect(res.status).toBe(200);
    expect(((await res.json()) as { input_tokens: number }).input_tokens).toBeGreaterThan(0);
    expect(res.headers.get("x-tollgate-estimated")).not.toBeNull();
  });

  test.each(["/", "/api/hello"])("HEAD %s needs no key", async (path) => {
    expect((await fetch(house.url + path, { method: "HEAD" })).status).toBe(200);
  });
});

describe("max_tokens", () => {
  test("is required for a message", async () => {
    const res = await ask({ "x-api-key": KEY }, { ...BODY, max_tokens: undefined });
    expect(res.status).toBe(400);
    expect(await res.json()).toMatchObject({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: expect.stringContaining("max_tokens"),
        details: { param: "max_tokens" },
      },
      request_id: res.headers.get("request-id"),
    });
  });

  test("is validated by the schema, with the field in the error", async () => {
    const res = await ask(
      { "x-api-key": KEY },
      { ...BODY, messages: [{ role: "wizard", content: "x" }] },
    );
    expect(res.status).toBe(400);
    expect(await res.json()).toMatchObject({
      error: {
        message: expect.stringMatching(/messages.*role/),
        details: { param: "messages.0.role" },
      },
    });
  });
});

// ── places of a client's key
// ────────────────────────────────────────────────────────────────────────────────

const OLD = "2023-06-01";
const NEW = "2026-10-21";

describe("credentials", () => {
  const key = () => ({ "x-api-key": KEY });
  const token = (text = KEY) => ({ authorization: `Bearer ${text}` });
  const foreign = "sk-ant-api03-of-another-service";
  const jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln";
  type Row = [string, () => Record<string, string>, number, RegExp?];
  const rows: Row[] = [
    ["nothing", () => ({}), 401],
    ["x-api-key", key, 200],
    ["x-api-key, old version", () => ({ ...key(), "anthropic-version": OLD }), 200],
    ["x-api-key, new version", () => ({ ...key(), "anthropic-version": NEW }), 200],
    ["Bearer", token, 200],
    ["Bearer, old version", () => ({ ...token(), "anthropic-version": OLD }), 200],
    ["Bearer, new version", () => ({ ...token(), "anthropic-version": NEW }), 200],
    ["bearer in small letters", () => ({ authorization: `bearer ${KEY}` }), 200],
    ["the same key twice", () => ({ ...key(), ...token() }), 200],
    ["a key, and a token of another service", () => ({ ...key(), ...token(foreign) }), 200],
    ["a token, and a key of another service", () => ({ ...token(), "x-api-key": foreign }), 200],
    ["two keys", () => ({ ...key(), ...token(mintKey().secret) }), 401, /different keys/],
    ["a key and a JSON Web Token", () => ({ ...key(), ...token(jwt) }), 401, /different keys/],
    [
      "two keys of other services",
      () => ({ "x-api-key": foreign, ...token("sk-other") }),
      401,
      /different keys/,
    ],
    ["another scheme", () => ({ authorization: "Basic eDp5" }), 401, /x-api-key.*Authorization/],
    ["a wrong key", () => ({ "x-api-key": "tg_wrong" }), 401],
    ["an empty key and a token", () => ({ "x-api-key": "", ...token() }), 200],
  ];
  test.each(rows)("%s", async (_what, headers, status, words) => {
    const res = await ask(headers());
    expect(res.status).toBe(status);
    const body = (await res.json()) as any;
    if (status !== 401) return;
    expect(body.error.type).toBe("authentication_error");
    if (words) expect(body.error.message).toMatch(words);
  });

  test("in a place that the operator does not accept", async () => {
    await using other = await startTestGateway({
      yaml: `${ONE_KEY}frontends: [{ use: messages, with: { accept: [x-api-key] } }]
providers:
  anthropic: { use: anthropic, with: { api_key: sk-upstream-000000, base_url: "${up.url}" } }
`,
    });
    const status = async (headers: Record<string, string>) =>
      (await ask(headers, BODY, "/v1/messages", other.url)).status;
    expect(await status(token())).toBe(401);
    expect(await status(key())).toBe(200);
  });
});

describe("the version", () => {
  test.each(["2023-02-30", "2023-6-1", "yesterday", "2023-06-01T00:00:00Z", "2023-13-01"])(
    "%s is not a date",
    async (version) => {
      const res = await ask({ "x-api-key": KEY, "anthropic-version": version });
      expect(res.status).toBe(400);
      expect(await res.json()).toMatchObject({
        error: { type: "invalid_request_error", details: { param: "anthropic-version" } },
      });
    },
  );

  test("is 2023-06-01 by default", async () => {
    await (await ask({ "x-api-key": KEY })).arrayBuffer();
    expect(last().headers["anthropic-version"]).toBe(OLD);
  });

  test("is forwarded if set", async () => {
    const headers = { "x-api-key": KEY, "anthropic-version": NEW, "anthropic-beta": "a,b" };
    await (await ask(headers)).arrayBuffer();
    expect(last().headers).toMatchObject({ "anthropic-version": NEW, "anthropic-beta": "a,b" });
  });

  test("is sent with the betas that the operator allows", async () => {
    await using other = await startTestGateway({
      yaml: `${ONE_KEY}frontends: [messages]
providers:
  anthropic: { use: anthropic, with: { api_key: sk-upstream-000000, base_url: "${up.url}", betas: [b] } }
`,
    });
    const headers = { "x-api-key": KEY, "anthropic-version": NEW, "anthropic-beta": "a, b" };
    await (await ask(headers, BODY, "/v1/messages", other.url)).arrayBuffer();
    expect(last().headers).toMatchObject({ "anthropic-version": NEW, "anthropic-beta": "b" });
  });
});

describe("the outgoing request", () => {
  test("has the gateway's key, not the client's, and the client's bytes", async () => {
    const body = { ...BODY, brand_new: 12345678901234567890n };
    const text = JSON.stringify(body, (_k, v) =>
      typeof v === "bigint" ? JSON.rawJSON(`${v}`) : v,
    );
    const res = await fetch(`${house.url}/v1/messages`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": KEY,
        "x-stainless-lang": "js",
        "x-claude-code-session-id": "s1",
        "idempotency-key": "i1",
        cookie: "a=b",
      },
      body: text,
    });
    expect(res.status).toBe(200);
    const sent = last();
    expect(sent.headers["x-api-key"]).toBe("sk-upstream-000000");
    expect(JSON.stringify(sent.headers)).not.toContain(KEY);
    expect(sent.headers["x-claude-code-session-id"]).toBe("s1");
    // Another key's client may have chosen the same one.
    expect(sent.headers["idempotency-key"]).toBeUndefined();
    expect(sent.headers["x-stainless-lang"]).toBeUndefined();
    expect(sent.headers.cookie).toBeUndefined();
    expect(sent.body.toString()).toBe(text.replace("anthropic/claude-sonnet-5", "claude-sonnet-5"));
  });

  test("has every header of Anthropic's protocol, but no credential and no account", async () => {
    const open = {
      "anthropic-brand-new": "1",
      "x-claude-code-request-class": "main",
      "anthropic-dangerous-direct-browser-access": "true",
    };
    const res = await ask({
      "x-api-key": KEY,
      ...open,
      "anthropic-organization-id": "org_1",
      "anthropic-workspace-id": "ws_1",
      "anthropic-admin-key": "sk-1",
      "anthropic-auth-token": "sk-2",
    });
    expect(res.status).toBe(200);
    const sent = Object.keys(last().headers).filter((name) => /^anthropic-|claude/.test(name));
    expect(sent.toSorted()).toEqual([...Object.keys(open), "anthropic-version"].toSorted());
    expect(last().headers).toMatchObject(open);
  });

  test("to a compatible backend has neither half of a beta", async () => {
    const body = { ...BODY, model: "local/m", context_management: { edits: [] } };
    const beta = { "anthropic-beta": "context-management-2025-06-27", "anthropic-brand-new": "1" };
    const res = await ask({ "x-api-key": KEY, ...beta }, body);
    expect(res.status).toBe(200);
    expect(res.headers.get("x-tollgate-warnings")).toContain("context_management");
    expect(last().json()).not.toHaveProperty("context_management");
    expect(last().headers["anthropic-beta"]).toBeUndefined();
    expect(last().headers["anthropic-brand-new"]).toBeUndefined();
  });

  test("to a compatible backend omits fields that only Anthropic supports", async () => {
    const headers = { "x-api-key": KEY, "anthropic-beta": "a", "x-app": "cli" };
    const body = {
      ...BODY,
      model: "local/llama",
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2;" },
        { type: "text", text: "Be kind." },
      ],
    };
    const res = await ask(headers, body);
    expect(((await res.json()) as { model: string }).model).toBe("local/llama");
    expect(last().headers["anthropic-beta"]).toBeUndefined();
    expect(last().headers["x-app"]).toBeUndefined();
    expect(last().headers["x-api-key"]).toBeUndefined();
    expect(last().json()).toMatchObject({
      model: "llama",
      system: [{ type: "text", text: "Be kind." }],
    });
  });
});

describe("the official SDK", () => {
  const sdk = (more: object = {}) =>
    new Anthropic({ apiKey: KEY, baseURL: house.url, maxRetries: 0, ...more });

  test("streams", async () => {
    const message = await sdk()
      .messages.stream({
        model: BODY.model,
        max_tokens: 9,
        messages: [{ role: "user", content: "x" }],
      })
      .finalMessage();
    expect(message.content.at(-1)).toMatchObject({ type: "text", text: "Hello" });
    expect(message.model).toBe("anthropic/claude-sonnet-5");
    expect(last().json()).toMatchObject({ stream: true, model: "claude-sonnet-5" });
  });

  test("counts tokens", async () => {
    const { input_tokens } = await sdk().messages.countTokens({
      model: BODY.model,
      messages: [{ role: "user", content: "x" }],
    });
    expect(input_tokens).toBe(42);
  });

  test("completes a tools loop", async () => {
    up.setRoutes({
      "POST /v1/messages": (asked) =>
        (asked.json().messages.length > 1
          ? say("It is sunny.")
          : think("Weather.", "S1").call("get_weather", { city: "Oslo" }, "toolu_1")
        ).toResponse(asked),
    });
    const client = sdk();
    const ask = (messages: Anthropic.MessageParam[]) =>
      client.messages.create({
        model: BODY.model,
        max_tokens: 99,
        messages,
        tools: [{ name: "get_weather", input_schema: { type: "object" } }],
      });
    const first = await ask([{ role: "user", content: "Weather?" }]);
    expect(first.stop_reason).toBe("tool_use");
    const second = await ask([
      { role: "user", content: "Weather?" },
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "sun" }] },
    ]);
    expect(second.content).toMatchObject([{ type: "text", text: "It is sunny." }]);
    expect(last().json().messages[1].content[0]).toMatchObject({
      type: "thinking",
      signature: "S1",
    });
    up.setRoutes(scriptedModel(speech));
  });

  test("gets its own typed errors", async () => {
    const bad = sdk({ apiKey: "tg_wrong" });
    await expect(
      bad.messages.create({ model: BODY.model, max_tokens: 1, messages: [] }),
    ).rejects.toBeInstanceOf(AuthenticationError);
    await expect(
      sdk().messages.create({
        model: "nobody/knows",
        max_tokens: 1,
        messages: [{ role: "user", content: "x" }],
      }),
    ).rejects.toBeInstanceOf(NotFoundError);
  });

  test("gets the code for a rejected thread that makes it send its history", async () => {
    const error = await sdk()
      .beta.messages.create({
        model: BODY.model,
        max_tokens: 1,
        messages: [{ role: "user", content: "x" }],
        thread: { type: "create" },
      } as never)
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(BadRequestError);
    expect((error as { errorCode?: string }).errorCode).toBe("thread_unsupported_request");
  });
});

test("works with calls of compatible backends, as does every client", async () => {
  up.setRoutes({ "POST /v1/messages": (asked) => call("f", { a: 1 }).toResponse(asked) });
  const res = await ask({ "x-api-key": KEY }, { ...BODY, model: "local/m" });
  expect(await res.json()).toMatchObject({
    stop_reason: "tool_use",
    content: [{ input: { a: 1 } }],
  });
  up.setRoutes(scriptedModel(speech));
});

describe("on an upstream of another protocol", () => {
  const sdk = () => new Anthropic({ apiKey: KEY, baseURL: house.url, maxRetries: 0 });
  const body = { ...BODY, model: "chatty/m", messages: [{ role: "user" as const, content: "Hi" }] };

  test("the SDK streams the same response", async () => {
    const message = await sdk().messages.stream(body).finalMessage();
    expect(message).toMatchObject({
      model: "chatty/m",
      content: [
        { type: "thinking", thinking: "Hm." },
        { type: "text", text: "Hello" },
      ],
      stop_reason: "end_turn",
      usage: { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 5 },
    });
    expect(last().path).toBe("/v1/chat/completions");
  });

  test("dropped fields are reported, and are an error in strict mode", async () => {
    const headers = { "x-api-key": KEY };
    const lossy = { ...body, top_k: 5 };
    const res = await ask(headers, lossy);
    expect(res.status).toBe(200);
    expect(res.headers.get("x-tollgate-warnings")).toContain("field=top_k");
    const strict = await ask({ ...headers, "x-tollgate-strict": "true" }, lossy);
    expect(strict.status).toBe(400);
    expect(await strict.json()).toMatchObject({ error: { details: { param: "top_k" } } });
  });

  test("a truncated stream ends with this protocol's error, and the SDK raises", async () => {
    up.setRoutes({
      "POST /v1/chat/completions": (asked) => ({
        ...say("Hello, this is a longer answer than one event.").toResponse(asked),
        truncation: { after: { pieces: 4 }, how: "reset" },
      }),
    });
    await expect(sdk().messages.stream(body).finalMessage()).rejects.toThrow();
    const res = await ask({ "x-api-key": KEY }, { ...body, stream: true });
    const text = await res.text();
    expect(text).toContain("event: error");
    expect(text).not.toContain("message_stop");
    up.setRoutes(scriptedModel(speech));
  });

  test("tool calls are translated in both directions", async () => {
    up.setRoutes({
      "POST /v1/chat/completions": (asked) =>
        (asked.json().messages.length > 1
          ? say("Sunny.")
          : call("get", { x: 1 }, "call_1")
        ).toResponse(asked),
    });
    const ask = (messages: Anthropic.MessageParam[]) =>
      sdk().messages.create({
        ...body,
        messages,
        tools: [{ name: "get", input_schema: { type: "object" } }],
      });
    const first = await ask(body.messages);
    expect(first).toMatchObject({
      stop_reason: "tool_use",
      content: [{ name: "get", input: { x: 1 } }],
    });
    const second = await ask([
      ...body.messages,
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "sun" }] },
    ]);
    expect(second.content).toMatchObject([{ type: "text", text: "Sunny." }]);
    up.setRoutes(scriptedModel(speech));
  });
});

// Claude Code's contract with a gateway, one rule per test. Source: Anthropic's page "Claude Code
// gateway compatibility guide", as of client 2.1.280. The client itself is tested in
// test/clients/claude-code.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  eventStreamResponse,
  jsonResponse,
  startTestGateway,
  startUpstream,
  type ScriptedResponse,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";
import { messages } from "../../../src/protocols/messages/index.ts";
import { KEY, ONE_KEY } from "../../kit/one-key.ts";

const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-6",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 7, output_tokens: 3 },
};
const event = (data: { type: string; [field: string]: unknown }) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const EVENTS = [
  event({
    type: "message_start",
    message: { ...MESSAGE, content: [], stop_reason: null },
  }),
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  event({ type: "ping" }),
  event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } }),
  event({ type: "content_block_stop", index: 0 }),
  event({
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 3 },
  }),
  event({ type: "message_stop" }),
];

let up: TestUpstream;
let at: TestGateway;
/** The upstream's next response, if it is not the usual message. */
let next: ScriptedResponse | undefined;

beforeAll(async () => {
  up = await startUpstream({
    "POST /v1/messages/count_tokens": () => jsonResponse({ input_tokens: 42 }),
    "POST /v1/messages": (asked) =>
      next ?? (asked.json().stream ? eventStreamResponse(EVENTS) : jsonResponse(MESSAGE)),
  });
  at = await startTestGateway({
    yaml: `${ONE_KEY.replace("middleware: [", "middleware: [{ use: agent-hints, with: { prefer: { auxiliary: ['*/claude-haiku-*'], compaction: ['*/claude-haiku-*'], Explore: ['*/claude-haiku-*'] } } }, ")}
frontends: [messages, models, usage]
store: memory
scopes:
  session: { from: [session], limits: [requests=100/total] }
  workflows: { labels: { request_class: workflow }, limits: [requests=1/day] }
providers:
  anthropic:
    use: anthropic
    with: { api_key: sk-upstream-000000, base_url: "${up.url}" }
    models: { claude-sonnet-4-6: { description: "For everyday coding" } }
  local: { use: anthropic-compatible, with: { base_url: "${up.url}/v1" } }
models:
  "claude-*": ["anthropic/claude-*"]
  claude-auto: [anthropic/claude-opus-4-8, anthropic/claude-haiku-4-5]
`,
  });
});
beforeEach(() => void (next = undefined));
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up[Symbol.asyncDispose]();
});

const BODY = {
  model: "claude-sonnet-4-6",
  max_tokens: 100,
  messages: [{ role: "user", content: "Hi" }],
};
const VERSION = { "anthropic-version": "2023-06-01" };
const BEARER = { authorization: `Bearer ${KEY}` };

const post = (
  headers: Record<string, string> = {},
  body: object = {},
  path = "/v1/messages?beta=true",
) =>
  fetch(at.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...VERSION, ...BEARER, ...headers },
    body: JSON.stringify({ ...BODY, ...body }),
  });
const sent = () => up.requests.at(-1)!;

describe("endpoints", () => {
  test("POST /v1/messages?beta=true, with its query", async () => {
    expect((await post()).status).toBe(200);
    expect([sent().path, sent().query.get("beta")]).toEqual(["/v1/messages", "true"]);
  });

  test("POST /v1/messages/count_tokens counts", async () => {
    const res = await post({}, {}, "/v1/messages/count_tokens?beta=true");
    expect([res.status, await res.json()]).toEqual([200, { input_tokens: 42 }]);
  });

  test("HEAD /api/hello warms a connection, without a key", async () => {
    expect((await fetch(`${at.url}/api/hello`, { method: "HEAD" })).status).toBe(200);
  });
});

describe("model discovery", () => {
  const discover = (headers: Record<string, string>) =>
    fetch(`${at.url}/v1/models?limit=1000`, { redirect: "manual", headers });

  test("answers without a redirect, with a key in both headers", async () => {
    const both = { ...BEARER, "x-api-key": KEY };
    for (const headers of [BEARER, { "x-api-key": KEY }, both, { ...both, ...VERSION }])
      expect((await discover(headers)).status).toBe(200);
  });

  test("accepts the gateway's key next to a key of Anthropic", async () => {
    const res = await discover({ ...BEARER, "x-api-key": "sk-ant-api03-own" });
    expect(res.status).toBe(200);
  });

  test("answers within 3 s while a provider's model list hangs", async () => {
    await using hanging = await startUpstream({ "*": () => new Promise<never>(() => {}) });
    await using gateway = await startTestGateway({
      yaml: `${ONE_KEY}
frontends: [messages, models]
store: memory
providers:
  anthropic: { use: anthropic, with: { api_key: sk-upstream-000000, base_url: "${hanging.url}" } }
`,
    });
    const res = await fetch(`${gateway.url}/v1/models?limit=1000`, {
      headers: BEARER,
      signal: AbortSignal.timeout(30_000),
    });
    const { data } = (await res.json()) as { data: readonly { id: string }[] };
    // The built-in list is used, and nothing waits for the provider.
    expect(data.some(({ id }) => id.startsWith("anthropic/claude-"))).toBe(true);
  });

  test("lists id, display_name, and description of each model", async () => {
    const { data } = (await (await discover(BEARER)).json()) as { data: Record<string, string>[] };
    const found = data.find(({ id }) => id === "anthropic/claude-sonnet-4-6")!;
    expect(found).toMatchObject({
      display_name: "Claude Sonnet 4.6",
      description: "For everyday coding",
    });
    // Without a text of the operator or the provider, the facts describe the model.
    const other = data.find(({ id }) => id === "anthropic/claude-opus-4-8")!;
    expect(other["description"]).toMatch(
      /^1M tokens of context, \$[\d.]+ input and \$[\d.]+ output/,
    );
    // The client keeps names that contain claude or anthropic, such as an alias.
    expect(data.map(({ id }) => id)).toContain("claude-auto");
  });
});

describe("credentials", () => {
  test.each<[string, Record<string, string>]>([
    ["ANTHROPIC_AUTH_TOKEN", BEARER],
    ["ANTHROPIC_API_KEY", { authorization: "", "x-api-key": KEY }],
    ["an apiKeyHelper, in both headers", { ...BEARER, "x-api-key": KEY }],
    ["a token, and a key of Anthropic", { ...BEARER, "x-api-key": "sk-ant-api03-own" }],
    [
      "a key, and a login of claude.ai",
      { authorization: "Bearer sk-ant-oat01-own", "x-api-key": KEY },
    ],
  ])("%s", async (_what, headers) => {
    expect((await post(headers)).status).toBe(200);
    expect(sent().headers["x-api-key"]).toBe("sk-upstream-000000");
    expect(sent().headers.authorization).toBeUndefined();
    expect(JSON.stringify(sent().headers)).not.toMatch(/sk-ant-(?:api03|oat01)-own/);
  });
});

describe("headers and fields are open lists", () => {
  test("anthropic-version and anthropic-beta are sent unchanged", async () => {
    const beta = "claude-code-20250219, unheard-of-2027-01-01,interleaved-thinking-2025-05-14";
    await post({ "anthropic-version": "2023-01-01", "anthropic-beta": beta });
    expect(sent().headers).toMatchObject({
      "anthropic-version": "2023-01-01",
      "anthropic-beta": beta,
    });
  });

  test("unknown anthropic-* and x-claude-code-* headers are sent", async () => {
    const headers = { "anthropic-unheard-of": "1", "x-claude-code-unheard-of": "2" };
    await post(headers);
    expect(sent().headers).toMatchObject(headers);
  });

  test("unknown fields are sent, and all bytes but the model are the client's", async () => {
    const body = { unheard_of: { a: [1.0, "é"] }, metadata: { user_id: "u" } };
    await post({}, body);
    expect(sent().body.toString()).toBe(JSON.stringify({ ...BODY, ...body }));
  });

  test("headers of the client's SDK cause no error", async () => {
    const headers = {
      "x-stainless-lang": "js",
      "x-app": "cli",
      "user-agent": "claude-cli/2.1.332",
    };
    expect((await post(headers)).status).toBe(200);
  });
});

describe("both halves of a beta, or neither", () => {
  const BETA = { "anthropic-beta": "context-management-2025-06-27,effort-2025-11-24" };
  const HALVES = { context_management: { edits: [] }, output_config: { effort: "high" } };

  test("Anthropic gets both", async () => {
    await post(BETA, HALVES);
    expect(sent().headers).toMatchObject(BETA);
    expect(sent().json()).toMatchObject(HALVES);
  });

  test("another backend gets neither, and the client a warning", async () => {
    const res = await post(BETA, { ...HALVES, model: "local/m" });
    expect(sent().headers["anthropic-beta"]).toBeUndefined();
    for (const field in HALVES) expect(sent().json()).not.toHaveProperty(field);
    expect(res.headers.get("x-tollgate-warnings")).toContain("output_config.effort");
  });
});

describe("a tool choice", () => {
  const ADVISOR = { type: "advisor_20260301", name: "advisor" };
  const READ = { name: "Read", input_schema: { type: "object" } };
  const FORCED = { type: "tool", name: "advisor", disable_parallel_tool_use: true };
  const BETA = { "anthropic-beta": "advisor-tool-2026-03-01" };

  test("that names a tool of a dropped beta lets the model choose, with a warning", async () => {
    const body = { model: "local/m", tools: [ADVISOR, READ], tool_choice: FORCED };
    const res = await post(BETA, body);
    expect(sent().json()).toMatchObject({
      tools: [READ],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    });
    expect(sent().json().tool_choice).not.toHaveProperty("name");
    expect(res.headers.get("x-tollgate-warnings")).toContain("tool_choice");
  });

  test("is dropped with the last tool", async () => {
    const res = await post(BETA, { model: "local/m", tools: [ADVISOR], tool_choice: FORCED });
    expect(sent().json()).not.toHaveProperty("tools");
    expect(sent().json()).not.toHaveProperty("tool_choice");
    expect(res.headers.get("x-tollgate-warnings")).toContain("tool_choice");
  });

  test("that names another tool is kept", async () => {
    const choice = { type: "tool", name: "Read" };
    await post(BETA, { model: "local/m", tools: [ADVISOR, READ], tool_choice: choice });
    expect(sent().json().tool_choice).toEqual(choice);
  });

  test("and its tool reach Anthropic unchanged", async () => {
    await post(BETA, { tools: [ADVISOR, READ], tool_choice: FORCED });
    expect(sent().json()).toMatchObject({ tools: [ADVISOR, READ], tool_choice: FORCED });
  });
});

describe("the system prompt", () => {
  const attribution = { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.332;" };
  const prompt = {
    type: "text",
    text: "You are Claude Code.",
    cache_control: { type: "ephemeral" },
  };

  test("keeps the attribution block first and alone for Anthropic", async () => {
    await post({}, { system: [attribution, prompt] });
    expect(sent().json().system).toEqual([attribution, prompt]);
  });

  test("has no attribution block for another vendor", async () => {
    await post({}, { model: "local/m", system: [attribution, prompt] });
    expect(sent().json().system).toEqual([prompt]);
  });

  test("keeps cache marks, also on a system message in the conversation", async () => {
    const conversation = [
      {
        role: "user",
        content: [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }],
      },
      {
        role: "system",
        content: [{ type: "text", text: "b", cache_control: { type: "ephemeral", ttl: "1h" } }],
      },
    ];
    await post({}, { system: [prompt], messages: conversation });
    expect(sent().json()).toMatchObject({ system: [prompt], messages: conversation });
  });
});

describe("streams", () => {
  test("have the content type text/event-stream, and the upstream's pings", async () => {
    const res = await post({}, { stream: true });
    expect(res.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const text = await res.text();
    expect(text).toContain(event({ type: "ping" }));
    expect(text).toContain(event({ type: "message_stop" }));
  });

  test("have the gateway's own pings while the upstream sends nothing", () => {
    // `test/pipeline/response/silences.test.ts` tests when they are sent.
    expect(messages().server!.ping).toBe(event({ type: "ping" }));
  });
});

describe("errors", () => {
  const failing = (status: number, type: string, message: string, headers = {}) => {
    next = { ...jsonResponse({ type: "error", error: { type, message } }, status), headers };
    return post({ "x-claude-code-session-id": crypto.randomUUID() });
  };

  test.each([
    [400, "invalid_request_error", "tools.3: Input tag 'advisor_20260301' found using 'type'"],
    [
      400,
      "invalid_request_error",
      "messages.1.content.0: thinking block is bound to a different conversation",
    ],
    [400, "invalid_request_error", "thinking.adaptive.effort: Extra inputs are not permitted"],
    [400, "invalid_request_error", "prompt is too long: 214000 tokens > 200000 maximum"],
    [413, "request_too_large", "Request exceeds the maximum size"],
  ])("%i keeps the upstream's words: %s %s", async (status, type, message) => {
    const res = await failing(status, type, message);
    expect(res.status).toBe(status);
    expect((await res.json()) as object).toMatchObject({
      type: "error",
      error: { type, message: expect.stringContaining(message) },
    });
  });

  test("retry-after is a whole number of seconds", async () => {
    const res = await failing(429, "rate_limit_error", "Slow down", { "retry-after": "7" });
    expect([res.status, res.headers.get("retry-after")]).toEqual([
      429,
      expect.stringMatching(/^\d+$/),
    ]);
    expect(Number(res.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("an unknown key is an authentication_error", async () => {
    const res = await post({ authorization: "Bearer tg_unknown" });
    expect(res.status).toBe(401);
    expect((await res.json()) as object).toMatchObject({
      error: { type: "authentication_error" },
    });
  });

  test("limits of the operator's plan at Anthropic are not the client's", async () => {
    next = {
      ...jsonResponse(MESSAGE),
      headers: { "anthropic-ratelimit-unified-status": "allowed_warning" },
    };
    const res = await post();
    expect(res.status).toBe(200);
    expect(res.headers.get("anthropic-ratelimit-unified-status")).toBeNull();
  });
});

describe("hints", () => {
  const usage = async (by: string) => {
    const res = await fetch(`${at.url}/v1/usage?by=${by}`, { headers: BEARER });
    return ((await res.json()) as { data: Record<string, unknown>[] }).data;
  };

  test("are labels of the ledger, with fixed values", async () => {
    await post({
      "x-claude-code-request-class": "subagent",
      "x-claude-code-agent-type": "Explore",
    });
    await post({ "x-claude-code-request-class": "compaction", "x-claude-code-compaction": "auto" });
    await post({ "x-claude-code-agent-type": "my-secret-agent" });
    expect(await usage("request_class")).toMatchObject([
      { request_class: "compaction", calls: 1 },
      { request_class: "subagent", calls: 1 },
    ]);
    expect((await usage("agent_type")).map((row) => row["agent_type"])).toEqual([
      "Explore",
      "other",
    ]);
    expect(await usage("compaction")).toMatchObject([{ compaction: "auto" }]);
  });

  test("choose the model of a request class", async () => {
    await post({}, { model: "claude-auto" });
    expect(sent().json().model).toBe("claude-opus-4-8");
    await post({ "x-claude-code-request-class": "auxiliary" }, { model: "claude-auto" });
    expect(sent().json().model).toBe("claude-haiku-4-5");
    await post({ "x-claude-code-request-class": "main" }, { model: "claude-auto" });
    expect(sent().json().model).toBe("claude-opus-4-8");
  });

  test("choose the model of a type of subagent, and of a compaction", async () => {
    const modelFor = async (headers: Record<string, string>) => {
      await post(headers, { model: "claude-auto" });
      return sent().json().model;
    };
    const subagent = { "x-claude-code-request-class": "subagent" };
    expect(await modelFor({ ...subagent, "x-claude-code-agent-type": "Explore" })).toBe(
      "claude-haiku-4-5",
    );
    expect(await modelFor({ ...subagent, "x-claude-code-agent-type": "Plan" })).toBe(
      "claude-opus-4-8",
    );
    expect(
      await modelFor({
        "x-claude-code-request-class": "compaction",
        "x-claude-code-compaction": "auto",
      }),
    ).toBe("claude-haiku-4-5");
  });

  test("a scope counts the requests of one class", async () => {
    const headers = { "x-claude-code-request-class": "workflow" };
    expect((await post(headers)).status).toBe(200);
    expect((await post(headers)).status).toBe(429);
    expect((await post()).status).toBe(200);
  });

  test("the session is a label, and a scope", async () => {
    await post({ "x-claude-code-session-id": "s-1" });
    expect(await usage("session")).toContainEqual(
      expect.objectContaining({ session: "s-1", calls: 1 }),
    );
  });
});

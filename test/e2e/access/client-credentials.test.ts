// A client's own credential reaches one provider, once. It appears in no log, ledger row, file,
// history, hook, error, or other request. The client pays: the ledger has the row without a cost.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  defineMiddleware,
  defineObserver,
  type LedgerEntry,
  type RequestRecord,
} from "tollgate/plugin";
import {
  eventStreamResponse,
  jsonResponse,
  startTestGateway,
  startUpstream,
  type ScriptedResponse,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { dial, isTerminal } from "../../kit/socket-client.ts";
import { until } from "../../kit/wait.ts";
import { spellings } from "../../rig/privacy/canary.ts";

const DEV = mintKey().secret;
const OPS = mintKey().secret;
const POOR = mintKey().secret;
/** A token of a subscription. It has no shape that the gateway's masks know. */
const TOKEN = "canary0oat01QWxsIHlvdXIga2V5cyBhcmUgYmVsb25n";

const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-6",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 700, output_tokens: 300 },
};
const event = (data: { type: string; [field: string]: unknown }) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const EVENTS = [
  event({
    type: "message_start",
    message: {
      ...MESSAGE,
      content: [],
      stop_reason: null,
      usage: { input_tokens: 700, output_tokens: 1 },
    },
  }),
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } }),
  event({ type: "content_block_stop", index: 0 }),
  event({
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 300 },
  }),
  event({ type: "message_stop" }),
];
const LIMITS = {
  "anthropic-ratelimit-unified-status": "allowed",
  "anthropic-ratelimit-unified-reset": "1799999999",
};

/** Everything that hooks and observers can serialize. */
const seen: string[] = [];
const record = (name: string, ...of: readonly unknown[]) =>
  void seen.push(
    `${name} ${JSON.stringify(of, (_key, each: unknown) => (typeof each === "bigint" ? String(each) : each))}`,
  );

const spy = defineMiddleware({
  api: 1,
  name: "spy",
  summary: "Records what hooks see",
  stability: "beta",
  sends: "nowhere",
  setup: () => ({
    admit: (x, secret) => record("admit", secret, x.headers, [...x.query]),
    route(list, x) {
      record("route", list, x.headers);
      return list;
    },
    prepare: (out, call) => record("prepare", out.headers, out.path, call.id),
    async attempt(call, next) {
      const reply = await next();
      record("attempt", call.id, reply.headers);
      return reply;
    },
    settle: (x, outcome) => record("settle", x.headers, outcome),
  }),
});
const watcher = defineObserver({
  api: 1,
  name: "watcher",
  summary: "Records what observers see",
  stability: "beta",
  sends: "nowhere",
  setup: () => ({ onRequests: (list: readonly RequestRecord[]) => record("observer", list) }),
});

let max: TestUpstream;
let other: TestUpstream;
let collector: TestUpstream;
let at: TestGateway;
let next: ScriptedResponse | undefined;
let accessLog: string;

beforeAll(async () => {
  const routes = {
    "POST /v1/messages/count_tokens": () => jsonResponse({ input_tokens: 42 }),
    "POST /v1/responses": () => next ?? jsonResponse({}, 500),
    "POST /v1/messages": (asked: { json(): any }) =>
      next ?? {
        ...(asked.json().stream ? eventStreamResponse(EVENTS) : jsonResponse(MESSAGE)),
        headers: { ...LIMITS, ...(asked.json().stream && { "content-type": "text/event-stream" }) },
      },
  };
  max = await startUpstream(routes);
  other = await startUpstream({ "POST /v1/messages": () => jsonResponse(MESSAGE) });
  collector = await startUpstream({ "POST /*": jsonResponse({}) });
  accessLog = join(mkdtempSync(join(tmpdir(), "tollgate-client-credentials-")), "access.log");
  writeFileSync(accessLog, "");
  at = await startTestGateway({
    plugins: { spy, watcher },
    yaml: `
frontends: [messages, models, usage, chat-completions, responses, jobs]
middleware:
  - use: auth
    with:
      keys:
        - { id: dev, digest: ${digestKey(DEV)}, account: web }
        - { id: ops, digest: ${digestKey(OPS)}, account: ops }
        - { id: poor, digest: ${digestKey(POOR)}, account: web, limits: [usd=0.000001/total, tokens=2500/total] }
  - { use: limits, with: { hold: hard } }
  - usage
  - spy
observers:
  - { use: access-log, with: { file: "${accessLog}" } }
  - { use: otlp, with: { endpoint: "${collector.url}", compression: none, include_keys: true, batch_delay_ms: 20, metrics_interval_ms: 1000 } }
  - watcher
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
accounts: { engineering: {}, web: { parent: engineering }, ops: {} }
retries: { per_target: 3, total: 6 }
providers:
  max:
    use: anthropic
    credential: client
    client_accounts: [engineering]
    with: { base_url: "${max.url}" }
  codex:
    use: openai
    credential: client
    client_accounts: [engineering]
    with: { base_url: "${max.url}/v1" }
  own:
    use: anthropic
    with: { api_key: sk-operator-000000, base_url: "${other.url}" }
models:
  both: [max/claude-sonnet-4-6, own/claude-sonnet-4-6]
`,
  });
});
beforeEach(() => void (next = undefined));
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await max.close();
  await other.close();
  await collector.close();
  rmSync(dirname(accessLog), { recursive: true });
});

/** Requests to models. The gateway also lists the models of `own`, at any time. */
const callsTo = (upstream: TestUpstream) =>
  upstream.requests.filter(({ method }) => method === "POST");

const OWN = { authorization: `Bearer ${TOKEN}` };
const ask = async (
  headers: Record<string, string> = { ...OWN, "x-tollgate-key": DEV },
  { path = "/v1/messages", ...body }: { path?: string; [field: string]: unknown } = {},
) => {
  const res = await fetch(at.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", ...headers },
    body: JSON.stringify({
      model: "max/claude-sonnet-4-6",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
      ...body,
    }),
  });
  const text = await res.text();
  return { status: res.status, headers: res.headers, text };
};
const errorOf = (text: string) => (JSON.parse(text) as { error: any }).error;
const rows = async (): Promise<readonly LedgerEntry[]> => {
  const page = (await callControl(at.stateDir, "ledger.entries", { limit: 500 })) as unknown as {
    items: LedgerEntry[];
  };
  return page.items;
};

describe("the credential", () => {
  test.each([false, true])(
    "reaches the provider as the client sent it (stream: %s)",
    async (stream) => {
      const { status, headers, text } = await ask(undefined, { stream });
      expect(status).toBe(200);
      expect(text).toContain("Hello");
      const sent = callsTo(max).at(-1)!;
      expect(sent.headers.authorization).toBe(OWN.authorization);
      expect(sent.headers["x-api-key"]).toBeUndefined();
      expect(JSON.stringify(sent.rawHeaders)).not.toContain(DEV);
      expect(headers.get("anthropic-ratelimit-unified-status")).toBe("allowed");
      expect(headers.get("anthropic-ratelimit-unified-reset")).toBe("1799999999");
    },
  );

  test.each<[string, Record<string, string>, Record<string, string>]>([
    [
      "a key of the API, next to a key of the gateway",
      { "x-api-key": TOKEN, "x-tollgate-key": DEV },
      { "x-api-key": TOKEN },
    ],
    [
      "x-api-key, next to a bearer token of the gateway",
      { "x-api-key": TOKEN, authorization: `Bearer ${DEV}` },
      { "x-api-key": TOKEN },
    ],
    ["a bearer token, next to x-api-key of the gateway", { ...OWN, "x-api-key": DEV }, OWN],
    [
      "a bearer token, next to the key of another service",
      { ...OWN, "x-api-key": "sk-of-another-service", "x-tollgate-key": DEV },
      OWN,
    ],
  ])("is %s", async (_what, headers, sent) => {
    expect((await ask(headers)).status).toBe(200);
    const { headers: received } = callsTo(max).at(-1)!;
    const { authorization, "x-api-key": apiKey } = received;
    expect({ authorization, "x-api-key": apiKey }).toEqual({
      authorization: undefined,
      "x-api-key": undefined,
      ...sent,
    });
    expect(JSON.stringify(callsTo(max).at(-1)!.rawHeaders)).not.toContain(DEV);
  });

  test("counts tokens too, and the account's header goes with it", async () => {
    const { status, text } = await ask(
      { ...OWN, "x-tollgate-key": DEV, "chatgpt-account-id": "acct-1" },
      { path: "/v1/messages/count_tokens" },
    );
    expect([status, JSON.parse(text)]).toEqual([200, { input_tokens: 42 }]);
    expect(callsTo(max).at(-1)!.headers).toMatchObject({ ...OWN, "chatgpt-account-id": "acct-1" });
  });

  test("is not a second key of the gateway", async () => {
    const before = callsTo(max).length;
    const { status, text } = await ask({ authorization: `Bearer ${OPS}`, "x-tollgate-key": DEV });
    expect([status, errorOf(text).message]).toEqual([
      401,
      expect.stringContaining("x-tollgate-key"),
    ]);
    expect(callsTo(max).length).toBe(before);
  });

  test("is missing, or the account may not use it", async () => {
    const before = callsTo(max).length;
    const missing = await ask({ "x-tollgate-key": DEV });
    expect(missing.status).toBe(401);
    expect(errorOf(missing.text).message).toContain("x-tollgate-key");
    const refused = await ask({ ...OWN, "x-tollgate-key": OPS });
    expect(refused.status).toBe(403);
    expect(errorOf(refused.text).message).toContain("may not use its own credential");
    expect(callsTo(max).length).toBe(before);
  });

  test("an invalid key of the gateway is rejected", async () => {
    expect((await ask({ ...OWN, "x-tollgate-key": "tg_wrong" })).status).toBe(401);
  });
});

describe("failures", () => {
  const failing = (status: number, message: string, headers: Record<string, string> = {}) => {
    next = {
      ...jsonResponse({ type: "error", error: { type: "some_error", message } }, status),
      headers: { "content-type": "application/json", ...LIMITS, ...headers },
    };
  };

  test.each([500, 503, 529])(
    "a status %i causes no retry, and another provider gets nothing of it",
    async (status) => {
      failing(status, "Overloaded");
      const [before, others] = [callsTo(max).length, callsTo(other).length];
      const answer = await ask(undefined, { model: "both" });
      expect(answer.status).toBe(200);
      expect(callsTo(max).length).toBe(before + 1);
      expect(callsTo(other).length).toBe(others + 1);
      expect(callsTo(other).at(-1)!.headers["x-api-key"]).toBe("sk-operator-000000");
      expect(
        JSON.stringify(other.requests.map((one) => [one.rawHeaders, String(one.body)])),
      ).not.toContain(TOKEN);
    },
  );

  test("without another candidate, the credential is sent once", async () => {
    failing(503, "Overloaded");
    const before = callsTo(max).length;
    expect((await ask()).status).toBe(503);
    expect(callsTo(max).length).toBe(before + 1);
  });

  test.each([
    [401, "invalid bearer token"],
    [402, "no credit"],
    [403, "not in this plan"],
    [429, "Usage limit reached"],
  ])(
    "a status %i is the client's, with the provider's words and no credential",
    async (status, message) => {
      failing(status, `${message}: ${TOKEN}`, { "retry-after": "7" });
      const answer = await ask();
      expect(answer.status).toBe(status);
      expect(errorOf(answer.text).message).toContain(message);
      expect(answer.text).not.toContain(TOKEN);
      expect(answer.headers.get("anthropic-ratelimit-unified-status")).toBe("allowed");
      next = undefined;
      // The failure of one client's account is no evidence about another one's.
      expect((await ask()).status).toBe(200);
    },
  );

  const errorEvent = (type: string) =>
    event({ type: "error", error: { type, message: `Account problem: ${TOKEN}` } });

  test.each([
    ["authentication_error", 401],
    ["permission_error", 401],
    ["billing_error", 402],
    ["rate_limit_error", 429],
  ])("an event %s in a stream is the client's, and causes no cooldown", async (type, status) => {
    for (const started of [false, true]) {
      next = eventStreamResponse([...(started ? EVENTS.slice(0, 3) : []), errorEvent(type)]);
      const answer = await ask(undefined, { stream: true });
      expect(answer.status).toBe(started ? 200 : status);
      expect(answer.text).toContain("Account problem");
      expect(answer.text).not.toContain(TOKEN);
      next = undefined;
      const others = callsTo(other).length;
      expect((await ask(undefined, { model: "both" })).status).toBe(200);
      expect(callsTo(other).length).toBe(others);
    }
  });

  test("a failed response of the Responses API is the client's, and causes no cooldown", async () => {
    const error = { code: "insufficient_quota", message: `You exceeded your quota: ${TOKEN}` };
    const response = { id: "resp_1", object: "response", status: "failed", error, output: [] };
    const request = { path: "/v1/responses", model: "codex/gpt-5", input: "Hi", stream: true };
    const headers = { ...OWN, "x-tollgate-key": DEV };
    for (const _ of [1, 2]) {
      next = eventStreamResponse([event({ type: "response.failed", response })]);
      const answer = await ask(headers, { ...request, messages: undefined, max_tokens: undefined });
      expect(answer.text).toContain("You exceeded your quota");
      expect(answer.text).not.toContain(TOKEN);
      expect(answer.text).not.toContain("gateway's account");
    }
    const warnings = at.logs.filter((one) => JSON.stringify(one).includes("rejected credential"));
    expect(warnings).toEqual([]);
  });

  test("a redirect is not followed", async () => {
    next = { ...jsonResponse({}, 307), headers: { location: `${other.url}/v1/messages` } };
    const others = callsTo(other).length;
    expect((await ask()).status).toBe(502);
    expect(callsTo(other).length).toBe(others);
  });
});

describe("the bill", () => {
  test("is external: no cost, and the list price beside it", async () => {
    await ask();
    const settle = (await rows())
      .filter(({ kind, state }) => kind === "settle" && state === "external")
      .at(-1)!;
    expect(settle).toMatchObject({
      state: "external",
      target: { provider: "max", credential: "client" },
      usage: { input: 700, output: 300, list_nano_usd: 700 * 3_000 + 300 * 15_000 },
    });
    expect(BigInt(settle.costNano!)).toBe(0n);
  });

  test("changes no budget of money, and is inside the budget of tokens", async () => {
    const headers = { ...OWN, "x-tollgate-key": POOR };
    for (const stream of [true, false]) expect((await ask(headers, { stream })).status).toBe(200);
    // 2,000 of 2,500 tokens are used.
    const { status, text } = await ask(headers, { max_tokens: 600 });
    expect([status, errorOf(text).message]).toEqual([429, expect.stringContaining("2500 tokens")]);
    // The budget of money is as it was: too small for one call of the operator's credential.
    const own = await ask(
      { "x-tollgate-key": POOR },
      { model: "own/claude-sonnet-4-6", max_tokens: 1 },
    );
    expect([own.status, errorOf(own.text).message]).toEqual([
      402,
      expect.stringContaining("$0.000001 left"),
    ]);
  });
});

test("over a WebSocket, the credential is not accepted, and the client is told where to send it", async () => {
  const before = callsTo(max).length;
  await using client = await dial(at.url, { key: DEV, headers: { "x-api-key": TOKEN } });
  client.send({ type: "response.create", model: "max/claude-sonnet-4-6", input: "Hi" });
  const events = await client.until((one) => isTerminal(one) || one.type === "error");
  expect(JSON.stringify(events)).toContain("over HTTP");
  expect(JSON.stringify(events)).not.toContain(TOKEN);
  expect(callsTo(max).length).toBe(before);
});

test("canary: the credential is in no sink", async () => {
  await ask(undefined, { stream: true });
  await ask(undefined, { model: "max/claude-sonnet-4-6", tools: 7 });
  await ask({ ...OWN, authorization: `Bearer ${TOKEN}`, "x-api-key": TOKEN });
  const history = await callControl(at.stateDir, "requests.list", {});
  const status = await callControl(at.stateDir, "status", {});
  const stats = await callControl(at.stateDir, "stats", {});
  let files = "";
  for (const entry of readdirSync(at.stateDir, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) files += readFileSync(join(entry.parentPath, entry.name), "latin1");
  const audit = await callControl(at.stateDir, "audit.list", {});
  await until(() =>
    ["/v1/traces", "/v1/metrics", "/v1/logs"].every((path) =>
      collector.requests.some((one) => one.path === path),
    ),
  );
  const sinks: Record<string, string> = {
    telemetry: Buffer.concat(collector.requests.map(({ body }) => body)).toString("latin1"),
    audit: JSON.stringify(audit),
    logs: JSON.stringify(at.logs),
    hooks: seen.join("\n"),
    access: readFileSync(accessLog, "utf8"),
    admin: JSON.stringify([history, status, stats]),
    ledger: JSON.stringify(await rows()),
    files,
    other: JSON.stringify(
      other.requests.map((one) => [one.path, one.rawHeaders, String(one.body)]),
    ),
    report: JSON.stringify(process.report.getReport()),
  };
  expect(seen.length).toBeGreaterThan(20);
  for (const [sink, text] of Object.entries(sinks)) {
    expect(text.length, sink).toBeGreaterThan(0);
    for (const spelling of spellings(TOKEN)) expect(text.includes(spelling), sink).toBe(false);
  }
});

// The observer `metrics`: its output follows the formats, its amounts are exact, and clients cannot
// create series.
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChargeRecord, Observer, ObserverRoute, RouteResponse } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import metrics from "../../../plugins/observers/metrics.ts";
import { namingVersionsOf } from "../../../plugins/observers/genai-names.ts";
import { MetricsWriter } from "../../../plugins/observers/metrics/metrics-writer.ts";
import { createSharedTally } from "../../../plugins/observers/metrics/tally.ts";
import { negotiateFormat } from "../../../plugins/observers/metrics.ts";
import { MAX_SERIES } from "../../../plugins/observers/metrics/series.ts";
import { nanoToUsd, Exposition } from "../../../plugins/observers/metrics/exposition.ts";
import { SharedResources } from "../../../src/lib/lifetime-scope.ts";
import { parseSamples } from "../../kit/exposition.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";
import { createRequestRecord } from "../../kit/request-record.ts";
import { trialCount } from "../../kit/law-effort.ts";

const MODEL = { id: "p/m", provider: "p", model: "m", operation: "chat", policy: {} } as never;

const line = (
  costNano: bigint | null,
  more: Partial<ChargeRecord> = {},
  model = "m",
): ChargeRecord => ({
  at: 1795000000000,
  type: "settle",
  attempt: "a",
  call: {
    request: "x",
    number: 1,
    key: "k1",
    labels: {},
    privacy: "off",
    target: { provider: "p", model, protocol: "chat-completions", credential: "default" },
    limits: [],
  },
  state: costNano === null ? "unpriced" : "exact",
  usage: { input: 10, output: 20, reasoning: 5 },
  costNano,
  outcome: "ok",
  ms: { total: 100 },
  ...more,
});

const STREAMED = { stream: true } as never;
const TIMES = { total: 100, firstToken: 40 };

async function mounted(options: object = {}, lent: Parameters<typeof createTestContext>[0] = {}) {
  const test = createTestContext({ id: "observers.metrics", models: [MODEL], ...lent });
  const given = { genai_names: "both" as const, include_keys: false, labels: [], ...options };
  const observer = (await metrics.setup(given, test.ctx)) as Observer;
  const [route] = observer.routes as [ObserverRoute];
  const ask = async (headers: Record<string, string> = {}) =>
    (await (route as { handle(x: unknown): Promise<RouteResponse> }).handle({ headers })) as {
      headers: Record<string, string>;
      body: Buffer;
    };
  return { observer, ask, test, text: async () => String((await ask()).body) };
}

it("an amount is written to the last nano-dollar, and read back exactly", () => {
  fc.assert(
    fc.property(fc.bigInt(-(2n ** 50n), 2n ** 50n), (nano) => {
      expect(Math.round(Number(nanoToUsd(nano)) * 1e9)).toBe(Number(nano));
      expect(nanoToUsd(nano)).toMatch(/^-?\d+(\.\d*[1-9])?$/);
    }),
  );
});

it("counters equal the sum of all records", async () => {
  const aLine = fc.record({
    cost: fc.option(fc.bigInt(0n, 10n ** 12n), { nil: null }),
    model: fc.oneof(fc.constant("m"), fc.string()),
    state: fc.constantFrom("exact", "estimated", "void"),
    adjust: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(aLine, { maxLength: 40 }), async (all) => {
      const { observer, text, test } = await mounted({ include_keys: true });
      await using _ = test;
      const lines = all.map(({ cost, model, state, adjust }) =>
        adjust
          ? line(cost === null ? -5n : -cost, { type: "adjust", call: undefined, usage: {} })
          : line(cost, { state: state as "exact" }, model),
      );
      await observer.onCharges!(lines);
      const now = parseSamples(await text());
      const sum = (type: string) =>
        lines
          .filter((one) => one.type === type)
          .reduce((nano, one) => nano + (one.costNano ?? 0n), 0n);
      const of = (name: string, more = "") =>
        now
          .filter((one) => one.name === name && one.labels.includes(more))
          .reduce((nano, one) => nano + BigInt(Math.round(one.value * 1e9)), 0n);
      expect(of("tollgate_spend_usd_total")).toBe(sum("settle"));
      expect(of("tollgate_key_spend_usd_total")).toBe(sum("settle"));
      expect(of("tollgate_adjustments_usd_total", "down")).toBe(-sum("adjust"));
      const calls = lines.filter(({ type }) => type === "settle").length;
      const count = (name: string) =>
        now.filter((one) => one.name === name).reduce((all, { value }) => all + value, 0);
      expect(count("tollgate_calls_total")).toBe(calls);
      const used = lines.filter(({ type, state }) => type === "settle" && state !== "void").length;
      expect(count("tollgate_tokens_total")).toBe(30 * used);
      expect(count("tollgate_reasoning_tokens_total")).toBe(5 * used);
      expect(count("gen_ai_client_inference_usage_input_tokens_total")).toBe(10 * used);
      expect(count("gen_ai_client_operation_duration_seconds_count")).toBe(calls);
      expect(count("gen_ai_client_inference_duration_seconds_count")).toBe(calls);
    }),
    { numRuns: trialCount(30) },
  );
});

it("100,000 invented names of models, codes, keys, and labels create no more series than the cap", async () => {
  const { observer, text, test } = await mounted({ include_keys: true, labels: ["user"] });
  await using _ = test;
  for (let i = 0; i < 100_000; i += 1_000) {
    const each = Array.from({ length: 1_000 }, (_unused, n) => `made-up-${i + n}`);
    await observer.onCharges!(
      each.map((name) => {
        const { call, ...rest } = line(1n, {}, name);
        return { ...rest, call: { ...call!, key: name, labels: { user: name } } };
      }),
    );
    await observer.onRequests!(
      each.map((name) =>
        createRequestRecord({
          model: name,
          key: name,
          labels: { user: name },
          status: 400,
          fault: { kind: "invalid", code: name },
        }),
      ),
    );
  }
  const now = parseSamples(await text());
  const series = new Map<string, number>();
  for (const { name } of now) series.set(name, (series.get(name) ?? 0) + 1);
  // A histogram has one line per bucket of a series.
  for (const [name, count] of series)
    if (!name.endsWith("_bucket")) expect([name, count <= MAX_SERIES + 1]).toEqual([name, true]);
  expect(now.length).toBeLessThan(3_000);
  const sum = (name: string) =>
    now.filter((one) => one.name === name).reduce((all, { value }) => all + value, 0);
  expect(sum("tollgate_requests_total")).toBe(100_000);
  expect(sum("tollgate_rejections_total")).toBe(100_000);
  expect(sum("tollgate_calls_total")).toBe(100_000);
  for (const name of ["spend", "key_spend", "label_spend"])
    expect(Math.round(sum(`tollgate_${name}_usd_total`) * 1e9)).toBe(100_000);
  const value = (what: string) =>
    now.find(({ name, labels }) => `${name}{${labels}}` === what)?.value;
  expect(value('tollgate_spend_usd_total{provider="p",model="other"}')).toBe(0.0001);
  expect(value('tollgate_series_overflow_total{metric="tollgate_rejections"}')).toBe(98_000);
});

it("every observation above a metric's cap is counted as folded, and no other: 100 models too many, each called three times", async () => {
  const names = Array.from({ length: MAX_SERIES + 100 }, (_unused, i) => `known-${i}`);
  const models = names.map(
    (name) =>
      ({ id: `p/${name}`, provider: "p", model: name, operation: "chat", policy: {} }) as never,
  );
  const { observer, text, test } = await mounted({}, { models });
  await using _ = test;
  for (let round = 0; round < 3; round++) {
    // An unknown name uses this value as well, and does not exceed the limit.
    const all = [...names, "made-up"].map((name) => line(5n, {}, name));
    if (round === 0) all.unshift(all.pop()!);
    await observer.onCharges!(all);
  }
  const now = parseSamples(await text());
  const folded = new Map(
    now
      .filter(({ name }) => name === "tollgate_series_overflow_total")
      .map(({ labels, value }) => [/metric="(.*)"/.exec(labels)![1]!, value]),
  );
  // The first call of an invented name used one of the series.
  const beyond = (names.length + 1 - MAX_SERIES) * 3;
  for (const metric of [
    "tollgate_calls",
    "tollgate_spend_usd",
    "tollgate_call_duration_seconds",
    "tollgate_reasoning_tokens",
    "gen_ai_client_operation_duration_seconds",
    "gen_ai_client_inference_duration_seconds",
    "gen_ai_client_inference_usage_reasoning_output_tokens",
  ])
    expect([metric, folded.get(metric)]).toEqual([metric, beyond]);
  expect(folded.get("tollgate_calls_unpriced")).toBe(0);
  expect(folded.get("tollgate_requests")).toBe(0);
  // Two units, each with its own series: half of the models have one.
  const units = (names.length + 1) * 2 - MAX_SERIES;
  expect(folded.get("tollgate_tokens")).toBe(units * 3);
  // Both directions are one instrument, which is exported as two metrics.
  const ways = ["input", "output"].map((way) =>
    folded.get(`gen_ai_client_inference_usage_${way}_tokens`)!,
  );
  expect(ways[0]! + ways[1]!).toBe(units * 3);
  const sum = (name: string) =>
    now.filter((one) => one.name === name).reduce((all, { value }) => all + value, 0);
  expect(sum("tollgate_calls_total")).toBe((names.length + 1) * 3);
  expect(Math.round(sum("tollgate_spend_usd_total") * 1e9)).toBe((names.length + 1) * 15);
});

it("fallbacks, translation warnings, rejections, and outcomes are counted by type", async () => {
  const { observer, text, test } = await mounted();
  await using _ = test;
  const call = (n: number, provider: string) => ({
    n,
    spanId: "00f067aa0ba902b7",
    startMs: 0,
    provider,
    model: "m",
    credential: "default",
    protocol: null,
    mode: "translated" as const,
    state: "exact" as const,
    usage: {},
    costNano: 0n,
    ms: { total: 1 },
  });
  const failed = { ...call(1, "a"), fault: { kind: "overloaded" as const, code: undefined } };
  await observer.onRequests!([
    createRequestRecord({
      calls: [failed, { ...call(2, "b"), transport: "websocket" }],
      losses: 3,
      lossCodes: { dropped_field: 2, renamed: 1 },
    }),
    createRequestRecord({
      status: 403,
      outcome: "refused",
      fault: { kind: "privacy", code: "zdr_unavailable" },
    }),
    createRequestRecord({
      status: 429,
      outcome: "refused",
      fault: { kind: "quota", code: undefined },
    }),
  ]);
  const now = parseSamples(await text());
  const of = (name: string) =>
    now.filter((one) => one.name === name).map(({ labels, value }) => `${labels} ${value}`);
  expect(of("tollgate_fallbacks_total")).toEqual(['from="a",to="b",error_kind="overloaded" 1']);
  expect(of("tollgate_websocket_calls_total")).toEqual(['provider="b",model="other" 1']);
  expect(of("tollgate_translation_warnings_total")).toEqual([
    'code="dropped_field" 2',
    'code="renamed" 1',
  ]);
  expect(of("tollgate_rejections_total")).toEqual(['code="zdr_unavailable" 1', 'code="quota" 1']);
  expect(of("tollgate_requests_total").map((one) => one.slice(one.indexOf("outcome")))).toEqual([
    'outcome="ok",status="200" 1',
    'outcome="refused",status="403" 1',
    'outcome="refused",status="429" 1',
  ]);
});

it("hedges are counted by their result, and are not fallbacks", async () => {
  const { observer, text, test } = await mounted();
  await using _ = test;
  const call = (n: number, provider: string, more: object = {}) => ({
    n,
    spanId: "00f067aa0ba902b7",
    startMs: 0,
    provider,
    model: "m",
    credential: "default",
    protocol: null,
    mode: "translated" as const,
    state: "estimated" as const,
    usage: {},
    costNano: 5n,
    ms: { total: 1 },
    ...more,
  });
  const lost = { fault: { kind: "canceled" as const, code: "hedge_lost" } };
  const failed = { fault: { kind: "timeout" as const, code: undefined } };
  const won = [call(1, "a", lost), call(2, "b", { hedge: true })];
  const beaten = [call(2, "b", { hedge: true, ...lost }), call(1, "a")];
  const broken = [call(2, "b", { hedge: true, ...failed }), call(1, "a")];
  const rescued = [call(1, "a", failed), call(2, "b", { hedge: true })];
  observer.onRequests!(
    [won, beaten, broken, rescued].map((calls) => createRequestRecord({ calls })),
  );
  const now = parseSamples(await text());
  const of = (name: string) =>
    now.filter((one) => one.name === name).map(({ labels, value }) => `${labels} ${value}`);
  expect(of("tollgate_hedges_total").map((one) => one.slice(one.indexOf("outcome")))).toEqual([
    'outcome="won" 2',
    'outcome="lost" 1',
    'outcome="failed" 1',
  ]);
  expect(of("tollgate_fallbacks_total")).toEqual(['from="a",to="b",error_kind="timeout" 1']);
  const spent = now.filter(({ name }) => name === "tollgate_hedge_spend_usd_total");
  expect(spent.map(({ value }) => Math.round(value * 1e9))).toEqual([5, 5]);
});

it("a cooldown is exported by its reason, and ends with the recovery", async () => {
  const of = { provider: "p", credential: "c", reason: "upstream" as const, until: 1 };
  const readings = {
    ...(await createTestContext().ctx.stats()),
    cooldowns: [
      { ...of, model: "a", state: "open" as const },
      { ...of, model: "b", state: "open" as const },
      { ...of, model: "c", state: "recovering" as const },
    ],
  };
  const { text, test } = await mounted({}, { stats: readings });
  await using _ = test;
  const now = parseSamples(await text()).filter(({ name }) =>
    name.startsWith("tollgate_provider_"),
  );
  expect(now.map(({ labels, value }) => [labels, value])).toEqual([
    ['provider="p",credential="c"', 2],
    ['provider="p",credential="c",state="open"', 2],
    ['provider="p",credential="c",state="recovering"', 1],
    ['provider="p",credential="c",error_kind="upstream"', 0.001],
    ['provider="p",credential="c"', 0],
  ]);
});

it("text of a client cannot end a line or a label", async () => {
  const { observer, text, test } = await mounted({ labels: ["user"] });
  await using _ = test;
  const forged = 'x"} 1\ntollgate_spend_usd_total 99\r\u2028\\';
  const { call, ...rest } = line(1n);
  await observer.onCharges!([{ ...rest, call: { ...call!, labels: { user: forged } } }]);
  await observer.onRequests!([
    createRequestRecord({ fault: { kind: "invalid", code: forged }, status: 400 }),
  ]);
  const written = await text();
  expect(written).not.toMatch(/^tollgate_spend_usd_total 99/m);
  expect(written).not.toMatch(/[\r\u2028]/);
  expect(
    parseSamples(written).filter(({ name }) => name === "tollgate_label_spend_usd_total"),
  ).toHaveLength(1);
});

describe("a scraper's request", () => {
  const OF: readonly [accept: string | undefined, type: RegExp][] = [
    [undefined, /^text\/plain; version=0\.0\.4/],
    ["*/*", /^text\/plain; version=0\.0\.4/],
    ["application/json", /^text\/plain; version=0\.0\.4/],
    // As Prometheus 2 and 3 ask.
    [
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
      /^application\/openmetrics-text; version=1\.0\.0/,
    ],
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
      /^application\/openmetrics-text; version=1\.0\.0/,
    ],
    ["application/openmetrics-text; version=2.0.0, text/plain;q=0.1", /^text\/plain/],
    ["application/openmetrics-text;version=1.0.0;q=0, text/plain;q=0.1", /^text\/plain/],
    [",;,=;q=x".repeat(5), /^text\/plain/],
  ];
  it.each(OF)("%s", (accept, type) => {
    expect(negotiateFormat(accept === undefined ? {} : { accept }).type).toMatch(type);
  });
  it("gets gzip if it accepts gzip", async () => {
    const { ask, test } = await mounted();
    await using _ = test;
    const { headers, body } = await ask({ "accept-encoding": "gzip" });
    expect(headers["content-encoding"]).toBe("gzip");
    expect(String(gunzipSync(body))).toContain("tollgate_build_info");
    expect(negotiateFormat({ "accept-encoding": "gzip;q=0, br" }).gzip).toBe(false);
  });
  it("gets the same values in both formats", async () => {
    const { observer, ask, test } = await mounted();
    await using _ = test;
    await observer.onCharges!([line(123n)]);
    await observer.onRequests!([createRequestRecord()]);
    const of = async (accept: string) =>
      parseSamples(String((await ask({ accept })).body)).map(({ name, labels, value }) => [
        name,
        labels,
        value,
      ]);
    const open = await ask({ accept: "application/openmetrics-text" });
    expect(String(open.body).endsWith("\n# EOF\n")).toBe(true);
    expect(await of("application/openmetrics-text")).toEqual(await of("text/plain"));
  });
});

it("gets a recorded trace as an exemplar of its bucket, in OpenMetrics only", async () => {
  const { observer, ask, test } = await mounted();
  await using _ = test;
  const kept = { traceId: "11112222333344445555666677778888", spanId: "00f067aa0ba902b7" };
  await observer.onRequests!([
    createRequestRecord({ ms: 300, trace: { ...kept, sampled: true } }),
    createRequestRecord({ ms: 301 }),
  ]);
  const of = async (accept: string) =>
    String((await ask({ accept })).body)
      .split("\n")
      .filter((one) => one.includes(" # "));
  expect(await of("application/openmetrics-text")).toEqual([
    `tollgate_request_duration_seconds_bucket{frontend="chat-completions",stream="false",le="0.5"} 2 # {trace_id="${kept.traceId}"} 0.3 1795000000`,
    `tollgate_gateway_overhead_seconds_bucket{frontend="chat-completions",mode="passthrough",le="0.0025"} 2 # {trace_id="${kept.traceId}"} 0.0015 1795000000`,
  ]);
  expect(await of("text/plain")).toEqual([]);
});

it("of 10,000 series takes about 10 ms of CPU time, in either format", async () => {
  const names = Array.from({ length: 60 }, (_unused, i) => `m${i}`);
  const models = names.map(
    (model) => ({ id: `p/${model}`, provider: "p", model, operation: "chat", policy: {} }) as never,
  );
  await using test = createTestContext({ id: "observers.metrics", models });
  const options = { genAi: true, keys: true, labels: [], maxLabelValues: 50 };
  const { tally } = createSharedTally(test.ctx, options);
  tally.onCharges(
    names.map((name) =>
      line(7n, { call: { ...line(7n, {}, name).call!, clientRequest: STREAMED }, ms: TIMES }),
    ),
  );
  const all = new MetricsWriter(test.ctx, tally, namingVersionsOf("both"));
  for (const form of ["text", "openmetrics"] as const) {
    const scrape = async () => {
      const out = new Exposition(form);
      const before = ownCpuMs();
      await all.writeTo(out);
      const text = out.finish();
      return { took: ownCpuMs() - before, text };
    };
    const { text } = await scrape();
    expect(parseSamples(text).length).toBeGreaterThan(10_000);
    // Code that is not yet compiled, and other threads of the process, do not count.
    const took = [];
    for (let i = 0; i < 20; i++) took.push((await scrape()).took);
    // A margin of factor ten.
    expect(Math.min(...took)).toBeLessThan(100);
  }
});

it("a reload resets nothing, and may add metadata that was unknown", async () => {
  const shared = new SharedResources();
  const before = await mounted({}, { shared });
  await using _ = before.test;
  await before.observer.onCharges!([line(5n, {}, "new")]);
  const known = {
    id: "p/new",
    provider: "p",
    model: "new",
    operation: "chat",
    policy: {},
  } as never;
  const after = await mounted({}, { shared, models: [known] });
  await using _after = after.test;
  await after.observer.onCharges!([line(7n, {}, "new")]);
  const now = parseSamples(await after.text()).filter(
    ({ name }) => name === "tollgate_spend_usd_total",
  );
  expect(now.map(({ labels, value }) => [labels, value])).toEqual([
    ['provider="p",model="other"', 5e-9],
    ['provider="p",model="new"', 7e-9],
  ]);
});

it("a credential that a reload removed is no longer exported", async () => {
  const shared = new SharedResources();
  const of = (credential: string) => {
    const { call, ...rest } = line(1n);
    return { ...rest, call: { ...call!, target: { ...call!.target, credential } } };
  };
  const resting = async ({ text }: { text(): Promise<string> }) =>
    parseSamples(await text())
      .filter(({ name }) => name === "tollgate_provider_cooldown")
      .map(({ labels, value }) => `${labels} ${value}`);
  const before = await mounted({}, { shared });
  await using _ = before.test;
  await before.observer.onCharges!([of("old"), of("kept")]);
  expect(await resting(before)).toHaveLength(2);
  const after = await mounted({}, { shared });
  await using _after = after.test;
  await after.observer.onCharges!([of("kept"), of("new")]);
  expect(await resting(after)).toEqual([
    'provider="p",credential="kept" 0',
    'provider="p",credential="new" 0',
  ]);
});

it("budgets have the values of the last call, the nearest to their limit first, and are empty after their window", async () => {
  const now = Date.now();
  const budget = (scope: string, left: bigint, resetsAt: number) =>
    ({ scope, unit: "nano_usd", per: "month", max: 10n ** 9n, remaining: left, resetsAt }) as const;
  const { observer, text, test } = await mounted();
  await using _ = test;
  const { call, ...rest } = line(1n);
  const limits = Array.from({ length: 150 }, (_unused, i) =>
    budget(`key:k${i}`, BigInt(i) * 1_000_000n, i === 0 ? 1 : now * 10),
  );
  await observer.onCharges!([{ ...rest, call: { ...call!, limits } }]);
  const told = parseSamples(await text()).filter(({ name }) => name === "tollgate_budget_used_usd");
  expect(told).toHaveLength(100);
  expect(told[0]).toMatchObject({ labels: 'scope="key:k1",per="month"', value: 0.999 });
  expect(told.some(({ labels }) => labels.includes('"key:k0"'))).toBe(false);
});

describe("MCP", () => {
  const tool = (outcome: string, costNano: bigint) => {
    const { call, ...rest } = line(costNano, { outcome, usage: { tool_runs: 1 } }, "get_issue");
    const target = { ...call!.target, provider: "mcp:github", protocol: "mcp" };
    return { ...rest, call: { ...call!, target } };
  };

  it("requests and calls of tools have durations, and calls of tools are no calls of models", async () => {
    const { observer, text, test } = await mounted();
    await using _ = test;
    const rpc = { system: "mcp", method: "tools/call", version: "2026-07-28", target: "get_issue" };
    await observer.onRequests!([
      createRequestRecord({ rpc }),
      createRequestRecord({ rpc: { ...rpc, errorType: "-32602" } }),
      createRequestRecord({ rpc: { system: "mcp", method: "prompts/get", target: "greet" } }),
      createRequestRecord({}),
    ]);
    await observer.onCharges!([tool("ok", 2_000_000n), tool("timeout", 2_000_000n)]);
    const samples = parseSamples(await text());
    const of = (name: string) =>
      samples.filter((one) => one.name === name).map(({ labels, value }) => [labels, value]);
    expect(of("mcp_server_operation_duration_seconds_count")).toEqual([
      [expect.stringMatching(/mcp_method_name="tools\/call".*gen_ai_tool_name="get_issue"/), 1],
      [expect.stringContaining('error_type="-32602"'), 1],
      [expect.stringContaining('gen_ai_prompt_name="greet"'), 1],
    ]);
    expect(of("mcp_client_operation_duration_seconds_count")).toEqual([
      [expect.stringContaining('gen_ai_tool_name="get_issue"'), 1],
      [expect.stringContaining('error_type="timeout"'), 1],
    ]);
    expect(of("gen_ai_client_operation_duration_seconds_count")).toEqual([]);
    expect(of("tollgate_spend_usd_total")).toEqual([
      [expect.stringMatching(/provider="mcp:github".*model="get_issue"/), 0.004],
    ]);
  });

  it("invented names of tools create no more series than the cap", async () => {
    const { observer, text, test } = await mounted();
    await using _ = test;
    for (let i = 0; i < 10_000; i += 1_000)
      await observer.onCharges!(
        Array.from({ length: 1_000 }, (_unused, n) => {
          const { call, ...rest } = tool("ok", 1n);
          return { ...rest, call: { ...call, target: { ...call.target, model: `tool_${i + n}` } } };
        }),
      );
    const spend = parseSamples(await text()).filter(
      (one) => one.name === "tollgate_spend_usd_total",
    );
    expect(spend.length).toBeLessThanOrEqual(501);
  });
});

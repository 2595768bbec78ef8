// Values that `/metrics` reads at the time of a scrape: each gauge has the gateway's own value, in
// the unit of its name.
import { describe, expect, it } from "vitest";
import type { ListedModel, Observer, ObserverRoute, GatewayStats } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import metrics from "../../../plugins/observers/metrics.ts";
import { READ_METRICS } from "../../../plugins/observers/metrics/gauges.ts";
import { parseSamples } from "../../kit/exposition.ts";

const PROCESS = {
  pid: 41,
  startedAt: 1_700_000_000_250,
  cpu: { user: 1.5, system: 0.25 },
  memory: { rss: 1_000, heapUsed: 300, heapTotal: 500, external: 70 },
  loopDelayMs: { mean: 1.5, p99: 20, max: 250 },
  gc: {
    minor: { count: 7, seconds: 0.125 },
    major: { count: 2, seconds: 0.5 },
    incremental: { count: 0, seconds: 0 },
    weakcb: { count: 0, seconds: 0 },
  },
  openFiles: 23,
} as const;

const SAID: GatewayStats = {
  at: 1_795_000_000_000,
  version: "9.8.7",
  state: "ledger_unavailable",
  certificates: [{ listener: "listen.tls", expiresAt: 1_796_000_000_000 }],
  generation: { number: 4, at: 1_794_000_000_500 },
  processes: { expected: 4, responded: 3 },
  perProcess: [PROCESS, { ...PROCESS, pid: 42, openFiles: undefined }],
  inFlight: 5,
  inFlightByFrontend: { messages: 3, embeddings: 0 },
  webSocketsByFrontend: { responses: 2 },
  jobs: [
    { kind: "batch", open: 2, oldestAt: 1_794_000_000_250 },
    { kind: "response", open: 0 },
  ],
  cooldowns: [
    {
      provider: "p",
      credential: "c",
      state: "open",
      reason: "overloaded",
      until: 1_795_000_001_000,
    },
    {
      provider: "p",
      credential: "c",
      state: "retry_after",
      reason: "rate_limited",
      until: 1_795_000_002_500,
      rejectsRequests: true,
    },
    {
      provider: "q",
      credential: "c",
      state: "recovering",
      reason: "upstream",
      until: 1_795_000_009_000,
    },
  ],
  unreachable: [
    { plugin: "middleware.guard", since: 1_795_000_000_000, requests: "rejected", processes: 3 },
    { plugin: "middleware.audit", since: 1_794_000_000_000, requests: "continued", processes: 1 },
  ],
  pools: [
    { origin: "https://a.example", connected: 9, free: 4, running: 6, queued: 2 },
    { origin: "https://b.example", connected: 1, free: 1, running: 0, queued: 0 },
  ],
  ledger: {
    ok: false,
    queue: 17,
    commits: {
      count: 3,
      sumMs: 12,
      buckets: [
        { ms: 1, count: 1 },
        { ms: 5, count: 2 },
      ],
    },
    size: { bytes: 4_096, freeBytes: 8_192, oldestAt: 1_699_999_999_500 },
  },
  fleet: { live: 3, left: 2, dead: 1, clockAheadMs: -250, syncLagMs: 1_500 },
  modelLists: [
    { provider: "p", credential: "a", lastSuccessAt: 1_794_999_000_000, failures: 0 },
    { provider: "p", credential: "b", lastSuccessAt: 1_794_998_000_000, failures: 4 },
    { provider: "q", credential: "a", failures: 6 },
  ],
  loopDelayMs: { mean: 0, p99: 0, max: 0 },
  memory: { rss: 0, heapUsed: 0, external: 0 },
  rejections: {},
  droppedRecords: { "observers.otlp": 8 },
};

const model = (provider: string, name: string, expires?: string, retires?: string) =>
  ({
    id: `${provider}/${name}`,
    provider,
    model: name,
    policy: { expires },
    retires,
    operation: "chat",
  }) as never;
const MODELS: readonly ListedModel[] = [
  model("p", "late", "2026-09-01", "2027-01-01"),
  model("p", "soon", "2026-03-01T12:00:00Z", "2026-02-01"),
  model("q", "stays", "no date", undefined),
];

/** As exported, by the full name of their sample. */
const EXPECTED = {
  tollgate_build_info: [`version="9.8.7",node="${process.version}" 1`],
  tollgate_workers: ["3"],
  tollgate_processes_unresponsive: ["1"],
  tollgate_in_flight: ['frontend="messages" 3', 'frontend="embeddings" 0'],
  tollgate_websockets: ['frontend="responses" 2'],
  tollgate_jobs_open: ['kind="batch" 2', 'kind="response" 0'],
  tollgate_jobs_oldest_timestamp_seconds: ['kind="batch" 1794000000.25'],
  tollgate_config_generation: ["4"],
  tollgate_config_reload_success: ["1"],
  tollgate_config_reload_last_success_timestamp_seconds: ["1794000000.5"],
  tollgate_provider_cooldown: ['provider="p",credential="c" 2'],
  tollgate_provider_breakers: [
    'provider="p",credential="c",state="open" 1',
    'provider="p",credential="c",state="retry_after" 1',
    'provider="q",credential="c",state="recovering" 1',
  ],
  tollgate_provider_cooldown_end_timestamp_seconds: [
    'provider="p",credential="c",error_kind="overloaded" 1795000001',
    'provider="p",credential="c",error_kind="rate_limited" 1795000002.5',
  ],
  tollgate_provider_rejecting: ['provider="p",credential="c" 1'],
  tollgate_plugin_unreachable: [
    'plugin="middleware.guard",on_failure="rejected" 3',
    'plugin="middleware.audit",on_failure="continued" 1',
  ],
  tollgate_pool_sockets: [
    'origin="https://a.example",state="connected" 9',
    'origin="https://a.example",state="free" 4',
    'origin="https://a.example",state="running" 6',
    'origin="https://a.example",state="queued" 2',
    'origin="https://b.example",state="connected" 1',
    'origin="https://b.example",state="free" 1',
    'origin="https://b.example",state="running" 0',
    'origin="https://b.example",state="queued" 0',
  ],
  tollgate_ready: ["0"],
  tollgate_certificate_expiry_timestamp_seconds: ['listener="listen.tls" 1796000000'],
  tollgate_ledger_up: ["0"],
  tollgate_ledger_queue: ["17"],
  tollgate_ledger_commit_seconds_bucket: ['le="0.001" 1', 'le="0.005" 2', 'le="+Inf" 3'],
  tollgate_ledger_commit_seconds_count: ["3"],
  tollgate_ledger_commit_seconds_sum: ["0.012"],
  tollgate_ledger_bytes: ["4096"],
  tollgate_store_disk_free_bytes: ["8192"],
  tollgate_ledger_oldest_timestamp_seconds: ["1699999999.5"],
  tollgate_fleet_nodes: ['state="live" 3', 'state="left" 2', 'state="dead" 1'],
  tollgate_store_clock_ahead_seconds: ["-0.25"],
  tollgate_store_lag_seconds: ["1.5"],
  // Of two credentials, the older list and the worse state. A list that never arrived has no time.
  tollgate_model_list_last_success_timestamp_seconds: ['provider="p" 1794998000'],
  tollgate_model_list_failures: ['provider="p" 4', 'provider="q" 6'],
  tollgate_observer_dropped_records_total: ['observer="observers.otlp" 8'],
  process_cpu_seconds_total: ['pid="41" 1.75', 'pid="42" 1.75'],
  process_resident_memory_bytes: ['pid="41" 1000', 'pid="42" 1000'],
  process_start_time_seconds: ['pid="41" 1700000000.25', 'pid="42" 1700000000.25'],
  process_open_fds: ['pid="41" 23'],
  nodejs_eventloop_delay_seconds: ["41", "42"].flatMap((pid) => [
    `pid="${pid}",stat="mean" 0.0015`,
    `pid="${pid}",stat="p99" 0.02`,
    `pid="${pid}",stat="max" 0.25`,
  ]),
  nodejs_heap_size_used_bytes: ['pid="41" 300', 'pid="42" 300'],
  nodejs_heap_size_total_bytes: ['pid="41" 500', 'pid="42" 500'],
  nodejs_external_memory_bytes: ['pid="41" 70', 'pid="42" 70'],
  nodejs_gc_seconds_total: ["41", "42"].flatMap((pid) => [
    `pid="${pid}",gc_kind="minor" 0.125`,
    `pid="${pid}",gc_kind="major" 0.5`,
    `pid="${pid}",gc_kind="incremental" 0`,
    `pid="${pid}",gc_kind="weakcb" 0`,
  ]),
  nodejs_gc_runs_total: ["41", "42"].flatMap((pid) => [
    `pid="${pid}",gc_kind="minor" 7`,
    `pid="${pid}",gc_kind="major" 2`,
    `pid="${pid}",gc_kind="incremental" 0`,
    `pid="${pid}",gc_kind="weakcb" 0`,
  ]),
  // The date of the earliest review of a provider's facts.
  tollgate_policy_expiry_timestamp_seconds: [
    `provider="p" ${Date.parse("2026-03-01T12:00:00Z") / 1_000}`,
  ],
  tollgate_model_retirement_timestamp_seconds: [
    `model="p/soon" ${Date.parse("2026-02-01") / 1_000}`,
    `model="p/late" ${Date.parse("2027-01-01") / 1_000}`,
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** They come from bills, and folded ones from counters, which other tests cover. */
const ELSEWHERE: readonly string[] = [
  READ_METRICS.budgetLimit.name,
  READ_METRICS.budgetUsed.name,
  READ_METRICS.budgetResets.name,
  READ_METRICS.overflow.name,
];

async function scraped(readings: GatewayStats, told: (observer: Observer) => unknown = () => {}) {
  await using test = createTestContext({
    id: "observers.metrics",
    models: MODELS,
    stats: readings,
  });
  const options = { genai_names: "off" as const, include_keys: false, labels: [] };
  const observer = (await metrics.setup(options, test.ctx)) as Observer;
  await told(observer);
  const [route] = observer.routes as unknown as [ObserverRoute & { handle(x: object): unknown }];
  const { body } = (await route.handle({ headers: {} })) as { body: Buffer };
  const of: Record<string, string[]> = {};
  for (const { name, labels, value } of parseSamples(String(body)))
    (of[name] ??= []).push(labels === "" ? `${value}` : `${labels} ${value}`);
  return of;
}

describe("a gauge", () => {
  it.each(Object.entries(EXPECTED))("%s", async (name, lines) => {
    expect((await scraped(SAID))[name]).toEqual(lines);
  });

  it("is exported, whatever it is called", () => {
    const here = Object.keys(EXPECTED);
    const missing = Object.values(READ_METRICS).filter(
      ({ name }) => !ELSEWHERE.includes(name) && !here.some((one) => one.startsWith(name)),
    );
    expect(missing).toEqual([]);
  });

  it("is omitted if its value is unknown, and is not zero", async () => {
    const { commits } = SAID.ledger;
    const of = await scraped({
      ...SAID,
      fleet: undefined,
      unreachable: [],
      ledger: { ok: true, queue: 0, commits },
    });
    for (const { name } of [
      READ_METRICS.fleetNodes,
      READ_METRICS.clockAhead,
      READ_METRICS.storeLag,
      READ_METRICS.ledgerBytes,
      READ_METRICS.diskFree,
      READ_METRICS.oldest,
      READ_METRICS.pluginUnreachable,
    ])
      expect([name, of[name]]).toEqual([name, undefined]);
    expect([of["tollgate_ledger_up"], of["tollgate_ledger_queue"]]).toEqual([["1"], ["0"]]);
  });
});

it("time to first token and seconds per token count streamed calls only, and tokens after the first one", async () => {
  const call = (stream: boolean, ms: object, output: number) => ({
    at: 1_795_000_000_000,
    type: "settle",
    attempt: "a",
    call: {
      request: "x",
      number: 1,
      key: "k",
      labels: {},
      privacy: "off",
      target: { provider: "p", model: "soon", protocol: null, credential: "c" },
      limits: [],
      clientRequest: { stream },
    },
    state: "exact",
    usage: { input: 1, output },
    costNano: 1n,
    outcome: "ok",
    ms,
  });
  const of = await scraped(SAID, (observer) =>
    observer.onCharges!([
      // 125 ms for 8 tokens after the first one.
      call(true, { total: 250, firstToken: 125 }, 9),
      // A single token has none after it.
      call(true, { total: 300, firstToken: 300 }, 1),
      call(false, { total: 5_000, firstToken: 4_000 }, 9),
      call(true, { total: 5_000 }, 9),
    ] as never),
  );
  const target = 'provider="p",model="soon"';
  const bucket = (name: string, le: string) =>
    of[`${name}_bucket`]!.find((line) => line.startsWith(`${target},le="${le}"`))!.split(" ")[1];
  const first = "tollgate_time_to_first_token_seconds";
  expect(of[`${first}_count`]).toEqual([`${target} 2`]);
  expect(of[`${first}_sum`]).toEqual([`${target} 0.425`]);
  expect(["0.1", "0.25", "0.5"].map((le) => bucket(first, le))).toEqual(["0", "1", "2"]);
  const token = "tollgate_output_seconds_per_token";
  expect(of[`${token}_count`]).toEqual([`${target} 1`]);
  expect(of[`${token}_sum`]).toEqual([`${target} 0.015625`]);
  expect(["0.01", "0.02"].map((le) => bucket(token, le))).toEqual(["0", "1"]);
});

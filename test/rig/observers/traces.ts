// Thousands of requests, some of them retried, through two workers and a collector into a backend:
// one tree per request with the right parents, and a log line and a count for each, in both
// encodings. `collector`: a program in between, or none.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import {
  jsonResponse,
  say,
  startUpstream,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { attributesOf, itemsOf, type Decoded } from "../../plugins/observers/decoded.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { type ChangedSource, mutantOf, preloaded } from "../mutants/changed-source.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import { freePort } from "../../kit/process/ports.ts";

/** Planted defect of the export, which must be found. */
const MUTANTS = {
  // Attempts are next to their request, not below it.
  orphan: {
    in: "plugins/observers/otlp/spans.ts",
    line: "parentSpanId: trace.spanId,",
    instead: "parentSpanId: trace.parentId,",
  },
  // Only one of two encodings is sent.
  monoglot: {
    in: "plugins/observers/otlp/spans.ts",
    line: ".addUnder(names.cacheWrite, cacheWrites(usage))",
    instead: ".addUnder(names.cacheWrite.slice(0, 1), cacheWrites(usage))",
  },
  // A sent batch is sent again with the next one.
  repeating: {
    in: "plugins/observers/otlp/export-queue.ts",
    line: "items.clear();",
    instead: "",
  },
  // One request's attributes are used for the next one.
  mistaken: {
    in: "plugins/observers/otlp/log-records.ts",
    line: "addUniqueAttributes(attributes, record, of);",
    instead: "",
  },
  // Every other attempt is a retry.
  same: {
    in: "plugins/observers/otlp/spans.ts",
    line: ": from === target",
    instead: ': from !== ""',
  },
  // The first bill of each batch is not counted.
  uncounted: {
    in: "plugins/observers/otlp/metric-messages.ts",
    line: "onCharges: (lines) => activate().onCharges(lines)",
    instead: "onCharges: (lines) => activate().onCharges(lines.slice(1))",
  },
  // Money is rounded to a millionth.
  rounding: {
    in: "plugins/observers/otlp/spans.ts",
    line: "undefined : formatUsd(costNano)",
    instead: "undefined : formatUsd((costNano / 1_000n) * 1_000n)",
  },
  // Providers continue below the request.
  forwarding: {
    in: "pipeline/exchange/trace.ts",
    line: 'const parent = x.actionType === "generate" ? callSpanId(x.trace, n) : spanId;',
    instead: "const parent = spanId;",
  },
} as const satisfies Record<string, ChangedSource>;

const AT_ONCE = 32;

export interface TracesOptions {
  readonly seed: number;
  readonly requests: number;
  readonly protocol: string;
  /** Path of a collector. "": the data arrives directly. */
  readonly collector: string;
  readonly workers: number;
  readonly mutant?: keyof typeof MUTANTS | undefined;
}

/** A client's knowledge of one of its requests. */
interface Asked {
  readonly id: string;
  readonly status: number;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

const yaml = (up: string, to: string, { protocol, workers }: TracesOptions) => `workers: ${workers}
frontends: [chat-completions, messages]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
observers:
  - use: otlp
    with: { endpoint: "${to}", protocol: ${protocol}, batch_delay_ms: 50, metrics_interval_ms: 500, queue_size: 100000 }
providers:
  one:
    use: anthropic-compatible
    with: { base_url: "${up}/one/v1" }
    trace: forward
    models: { model: { price: { input: 3.001, output: 15.007, cache_read: 0.3, cache_write_5m: 3.75 } } }
  two:
    use: openai-compatible
    with: { base_url: "${up}/two/v1" }
    models: { model: { price: { input: 1.003, output: 2.011 } } }
models:
  falls: { candidates: [one/model, two/model, one/other], fallback_on: [context_length, overloaded] }
`;

const TOO_LONG = {
  type: "error",
  error: {
    type: "invalid_request_error",
    code: "context_length_exceeded",
    message: "prompt is too long: 9 tokens > 8 maximum",
  },
};

/** Fails as often as the request's own text states. */
function answering(asked: UpstreamRequest) {
  const fails = Number(/fails=(\d)/.exec(asked.body.toString())?.[1] ?? 0);
  const place = asked.path.startsWith("/two") ? 1 : asked.body.includes('"other"') ? 2 : 0;
  // A request that is too long shows nothing about its provider, so there is no cooldown. An
  // unavailable provider is called once more.
  if (place < fails) return jsonResponse(TOO_LONG, 400);
  if (asked.number % 97 === 0) return jsonResponse({ error: { message: "No." } }, 503);
  return say("Hello.")
    .usage({ input: 20, output: 7, cache_read: 5, cache_write_5m: 3 })
    .toResponse(asked);
}

export async function traces(
  of: TracesOptions & { say: (line: string) => void },
): Promise<RigResult> {
  const wrong: string[] = [];
  await using up = await startUpstream({ "POST /*": answering });
  await using sink = await startUpstream({ "POST /*": jsonResponse({}) });
  const between = of.collector === "" ? undefined : await collecting(of.collector, sink.url);
  try {
    const env = of.mutant && preloaded(MUTANTS[of.mutant]);
    const gateway = await startDaemon({
      yaml: yaml(up.url, between?.url ?? sink.url, of),
      ...(env && { env }),
    });
    await using _ = gateway;
    const asked = await all(gateway.url, gateway.key, of);
    of.say(`${asked.length} requests, ${callsAt(up).length} calls`);
    const told = () => spansIn(sink, "traces").length + spansIn(sink, "logs").length;
    const { traces, logs } = (await settled(gateway, asked.length)) as Counts;
    await until(
      () => told() >= traces.sent + logs.sent,
      () => `${told()} of ${traces.sent + logs.sent}`,
    );
    if (traces.dropped + logs.dropped > 0) wrong.push(`${traces.dropped + logs.dropped} lost`);
    let costs: Costs = new Map();
    await until(
      async () => (costs = await costsOf(gateway)).size >= callsAt(up).length,
      () => `${costs.size} rows of ${callsAt(up).length} calls`,
    );
    await gateway.stop();
    await between?.stop();
    wrong.push(...judged(asked, up, sink), ...paid(costs, sink));
    return {
      wrong,
      counts: {
        requests: asked.length,
        calls: callsAt(up).length,
        spans: spansIn(sink, "traces").length,
        lines: spansIn(sink, "logs").length,
        posts: sink.requests.length,
      },
      seed: of.seed,
    };
  } finally {
    await between?.stop();
  }
}

interface Counts {
  readonly traces: { readonly sent: number; readonly dropped: number };
  readonly logs: { readonly sent: number; readonly dropped: number };
}

/** When the gateway's queue is empty. */
async function settled(gateway: { ask(name: string): Promise<unknown> }, requests: number) {
  let now: Counts;
  await until(async () => {
    now = (await gateway.ask("observers.otlp/state")) as Counts;
    return now.logs.sent + now.logs.dropped >= requests && now.traces.sent > requests;
  });
  return now!;
}

/** Cost of each attempt from its ledger row: nano-dollars as text. */
type Costs = ReadonlyMap<string, string | null>;

async function costsOf(gateway: Pick<Daemon, "ask">): Promise<Costs> {
  const costs = new Map<string, string | null>();
  let after: string | undefined;
  do {
    const page = (await gateway.ask("ledger.entries", {
      limit: 1_000,
      ...(after !== undefined && { after }),
    })) as unknown as {
      items: { kind: string; attempt: string; costNano: string | null }[];
      next?: string | null;
    };
    for (const { kind, attempt, costNano } of page.items)
      if (kind === "settle") costs.set(attempt, costNano);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return costs;
}

async function all(url: string, key: string, of: TracesOptions): Promise<Asked[]> {
  const chanced = createChance(of.seed);
  const asked: Asked[] = [];
  let left = of.requests;
  const one = async () => {
    while (left-- > 0) asked.push(await ask(url, key, chanced));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return asked;
}

async function ask(url: string, key: string, chanced: Chance): Promise<Asked> {
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => chanced.one([..."123456789abcdef"])).join("");
  const [traceId, spanId] = chanced.often(0.5) ? [hex(32), hex(16)] : [];
  const messages = chanced.often(0.5);
  const fails = chanced.often(0.7) ? 0 : chanced.one([1, 2, 3]);
  const res = await fetch(`${url}/v1/${messages ? "messages" : "chat/completions"}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(messages ? { "x-api-key": key } : { authorization: `Bearer ${key}` }),
      ...(traceId !== undefined && { traceparent: `00-${traceId}-${spanId}-01` }),
    },
    body: JSON.stringify({
      model: "falls",
      max_tokens: 16,
      stream: chanced.often(0.5),
      messages: [{ role: "user", content: `Hello. fails=${fails}` }],
    }),
  });
  await res.arrayBuffer();
  const id = res.headers.get("x-request-id") ?? res.headers.get("request-id")!;
  return { id, status: res.status, traceId, spanId };
}

/** Its models are listed too. */
const callsAt = (up: TestUpstream) => up.requests.filter(({ method }) => method === "POST");

const spansIn = (sink: TestUpstream, signal: string): Decoded[] =>
  sink.requests.filter(({ path }) => path === `/v1/${signal}`).flatMap(itemsOf);

function judged(asked: readonly Asked[], up: TestUpstream, sink: TestUpstream): string[] {
  const wrong: string[] = [];
  const spans = spansIn(sink, "traces");
  const servers = new Map<unknown, Decoded>();
  const below = new Map<string, Decoded[]>();
  for (const span of spans) {
    if (span["kind"] !== 2) {
      const list = below.get(span["parentSpanId"]);
      if (list) list.push(span);
      else below.set(span["parentSpanId"], [span]);
      continue;
    }
    const id = attributesOf(span)["tollgate.request.id"];
    if (servers.has(id)) wrong.push(`${String(id)} is there twice`);
    servers.set(id, span);
  }
  const forwarded = new Set(up.requests.flatMap(({ headers }) => headers["traceparent"] ?? []));
  for (const one of asked) {
    const server = servers.get(one.id);
    if (!server) wrong.push(`${one.id} has no span`);
    else wrong.push(...tree(one, server, below.get(server["spanId"]) ?? [], forwarded));
  }
  if (servers.size !== asked.length)
    wrong.push(`${servers.size} spans of ${asked.length} requests`);
  if (spans.length - servers.size !== callsAt(up).length)
    wrong.push(`${spans.length - servers.size} spans of ${callsAt(up).length} calls`);
  const lines = new Set(
    spansIn(sink, "logs").map((line) => attributesOf(line)["tollgate.request.id"]),
  );
  for (const { id } of asked) if (!lines.has(id)) wrong.push(`${id} has no line`);
  return [...wrong, ...counted(sink, asked.length, callsAt(up).length)];
}

/**
 * The span of each attempt has the cost in its row, to the nano-dollar, or none without a price.
 */
function paid(costs: Costs, sink: TestUpstream): string[] {
  const wrong: string[] = [];
  const spans = spansIn(sink, "traces");
  const requests = new Map<string, unknown>();
  for (const span of spans)
    if (span["kind"] === 2) requests.set(span["spanId"], attributesOf(span)["tollgate.request.id"]);
  let priced = 0;
  for (const span of spans) {
    if (span["kind"] === 2) continue;
    const says = attributesOf(span);
    const attempt = `${String(requests.get(span["parentSpanId"]))}.${String(says["tollgate.attempt"])}`;
    const usd = says["tollgate.cost.usd"];
    const told = usd === undefined ? null : nanoUsd(String(usd));
    const cost = costs.get(attempt);
    if (told !== cost) wrong.push(`${attempt}: ${told} nano-dollars in place of ${String(cost)}`);
    if (cost !== undefined && cost !== null && cost !== "0") priced++;
  }
  if (priced === 0) wrong.push("no attempt has cost anything");
  return wrong;
}

function nanoUsd(text: string): string {
  const [whole, part = ""] = text.split(".");
  return String(BigInt(whole! + part.padEnd(9, "0")));
}

const SPELLINGS = [
  "gen_ai.usage.cache_creation.input_tokens",
  "gen_ai.usage.cache_write.input_tokens",
];

function tree(
  { id, status, traceId, spanId }: Asked,
  server: Decoded,
  calls: readonly Decoded[],
  forwarded: ReadonlySet<string>,
): string[] {
  const wrong: string[] = [];
  const check = (fact: boolean, what: string) => fact || wrong.push(`${id}: ${what}`);
  const time = (span: Decoded) => [span["startTimeUnixNano"], span["endTimeUnixNano"]].map(BigInt);
  const [from, to] = time(server) as [bigint, bigint];
  if (traceId !== undefined) check(server["traceId"] === traceId, "another trace");
  check((server["parentSpanId"] || undefined) === spanId, "another parent");
  // A target that keeps failing is in cooldown: then no provider is called.
  check(calls.length > 0 || status >= 500, "no attempt");
  check(Number(attributesOf(server)["http.response.status_code"]) === status, "another status");
  for (const [i, call] of calls.entries()) {
    const says = attributesOf(call);
    check(call["traceId"] === server["traceId"], "an attempt in another trace");
    check(Number(says["tollgate.attempt"]) === i + 1, "attempts out of order");
    const [begin, end] = time(call) as [bigint, bigint];
    check(begin >= from && end <= to && begin <= end, "an attempt out of its request's time");
    if (says["tollgate.provider"] === "one")
      check(forwarded.has(`00-${call["traceId"]}-${call["spanId"]}-01`), "not handed on");
    if (says["error.type"] === undefined && says["tollgate.provider"] === "one")
      for (const name of SPELLINGS) check(says[name] === "3", `no ${name}`);
  }
  // The same model of the same provider again is a retry, and another one is a fallback.
  const targets = calls.map((call) => {
    const says = attributesOf(call);
    return `${String(says["tollgate.provider"])}/${String(says["gen_ai.request.model"])}`;
  });
  const steps = targets
    .slice(1)
    .map((to, i) => `tollgate.${to === targets[i] ? "retry" : "fallback"} ${targets[i]} ${to}`);
  const events = (server["events"] ?? []).map((event: Decoded) => {
    const { "tollgate.from": from, "tollgate.to": to } = attributesOf(event);
    return `${event["name"]} ${String(from)} ${String(to)}`;
  });
  if (calls.length > 0)
    check(events.join() === steps.join(), `${events.join()} in place of ${steps.join()}`);
  return wrong;
}

/** The last value of each metric. */
function counted(sink: TestUpstream, requests: number, calls: number): string[] {
  const last = new Map<string, Decoded>();
  for (const metric of spansIn(sink, "metrics")) last.set(metric["name"], metric);
  const sum = (name: string): number => {
    const of = last.get(name);
    const points: Decoded[] = (of?.["sum"] ?? of?.["histogram"])?.dataPoints ?? [];
    return points.reduce((all, point) => all + Number(point["count"] ?? point["asDouble"]), 0);
  };
  const wanted: readonly (readonly [name: string, count: number])[] = [
    ["tollgate.requests", requests],
    ["tollgate.calls", calls],
    ["gen_ai.client.operation.duration", calls],
    ["gen_ai.client.inference.duration", calls],
  ];
  return wanted.flatMap(([name, count]) =>
    sum(name) === count ? [] : [`${name}: ${sum(name)} in place of ${count}`],
  );
}

/** A collector between the gateway and the backend. */
async function collecting(program: string, to: string) {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-collector-"));
  const port = await freePort();
  const signals = ["traces", "metrics", "logs"];
  const pipeline = "{ receivers: [otlp], exporters: [otlphttp] }";
  const config = `receivers: { otlp: { protocols: { http: { endpoint: "127.0.0.1:${port}" } } } }
exporters: { otlphttp: { endpoint: "${to}", encoding: json, compression: none } }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { ${signals.map((signal) => `${signal}: ${pipeline}`).join(", ")} }
`;
  const file = join(folder, "collector.yaml");
  await writeFile(file, config);
  const child = spawn(program, ["--config", file], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const over = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await until(
    () => said.includes("Everything is ready") || child.exitCode !== null,
    () => said,
  );
  if (child.exitCode !== null) throw new Error(`The collector ended: ${said}`);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGTERM");
      await over;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const rig: Rig = {
  options: {
    seed: Date.now() % 1e6,
    requests: 10_000,
    protocol: "http/protobuf",
    collector: "",
    workers: 2,
    mutant: "",
  },
  run: ({ seed, requests, protocol = "", collector = "", workers, mutant }, say) =>
    traces({
      seed: Number(seed),
      requests: Number(requests),
      protocol,
      collector,
      workers: Number(workers),
      mutant: mutantOf(MUTANTS, mutant),
      say,
    }),
};

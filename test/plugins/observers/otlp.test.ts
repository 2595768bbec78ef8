// The parts of the observer `otlp`: its output, its queue, its destinations, and its behavior after
// rejections.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { TemplateCache, MAX_TEMPLATES } from "../../../plugins/observers/template-cache.ts";
import { namingVersionsOf } from "../../../plugins/observers/genai-names.ts";
import { ExportQueue } from "../../../plugins/observers/otlp/export-queue.ts";
import {
  createEnvelope,
  type ItemBatch,
} from "../../../plugins/observers/otlp/message-envelope.ts";
import { jobSpan } from "../../../plugins/observers/otlp/job-span.ts";
import { addRequestLog } from "../../../plugins/observers/otlp/log-records.ts";
import { addSpans, createSpanOptions } from "../../../plugins/observers/otlp/spans.ts";
import { HttpExporter, rejectedCount } from "../../../plugins/observers/otlp/http-exporter.ts";
import { encodeProtobuf } from "../../../plugins/observers/otlp/protobuf.ts";
import type { ProtobufMessage } from "../../../plugins/observers/otlp/message-shapes.ts";
import {
  createSampler,
  SAMPLERS,
  exporterOrigins,
  resolveSettings,
  VARIABLES,
  type OtlpOptions,
} from "../../../plugins/observers/otlp/settings.ts";
import {
  REQUEST_SHAPES,
  type FieldShape,
  type MessageShape,
  type Scalar,
} from "../../../plugins/observers/otlp/message-shapes.ts";
import { newTraceId } from "../../../src/lib/trace-context.ts";
import { createRequestRecord } from "../../kit/request-record.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";
import { decode, itemsOf } from "./decoded.ts";
import { trialCount } from "../../kit/law-effort.ts";

const SCALARS: { readonly [S in Scalar]: fc.Arbitrary<unknown> } = {
  string: fc.oneof(fc.string({ unit: "grapheme" }), fc.string({ minLength: 120, maxLength: 400 })),
  hex: fc.constantFrom("00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736"),
  bool: fc.boolean(),
  enum: fc.nat(24),
  int64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  fixed64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
  fixed32: fc.nat(0xffff_ffff),
  double: fc.double({ noNaN: true }),
};

/** Any message of a shape. A nested value contains no further nested values. */
function messages(shape: MessageShape, depth = 0): fc.Arbitrary<ProtobufMessage> {
  const one = ({ type, isRepeated }: FieldShape): fc.Arbitrary<unknown> => {
    const single = typeof type === "string" ? SCALARS[type] : messages(type, depth + 1);
    return isRepeated ? fc.array(single, { minLength: 1, maxLength: 3 }) : single;
  };
  const fields = Object.entries(shape).filter(([name]) => depth < 8 || name !== "arrayValue");
  return fc.record(Object.fromEntries(fields.map(([name, field]) => [name, one(field)])), {
    requiredKeys: [],
  });
}

describe("protobuf", () => {
  it.each(["traces", "metrics", "logs"] as const)("of %s equals JSON", (signal) => {
    const { shape } = REQUEST_SHAPES[signal];
    fc.assert(
      fc.property(messages(shape), (message) => {
        expect(decode(encodeProtobuf(message, shape), shape)).toEqual(message);
      }),
      { numRuns: trialCount(60) },
    );
  });

  it("has no field beyond those of its rows", () => {
    expect(() => encodeProtobuf({ spanz: [] }, REQUEST_SHAPES.traces.shape)).toThrow("spanz");
  });
});

/** Requests that are mostly similar. */
const requests: fc.Arbitrary<RequestRecord> = fc
  .record({
    model: fc.constantFrom("fast", "slow", "m\u00e4r", "x".repeat(300)),
    key: fc.constantFrom(undefined, "key_a", "key_b"),
    status: fc.constantFrom(200, 429, 502),
    outcome: fc.constantFrom("ok", "upstream_error", "refused"),
    stream: fc.boolean(),
    labels: fc.dictionary(fc.string({ maxLength: 8 }), fc.string({ unit: "grapheme" }), {
      maxKeys: 2,
    }),
    fault: fc.constantFrom(undefined, { kind: "limited", code: "429" }, { kind: "server" }),
    finish: fc.constantFrom(undefined, "stop", "length"),
    losses: fc.constantFrom(0, 0, 2),
    at: fc.integer({ min: 0, max: 4e12 }),
    ms: fc.nat(100_000),
    overheadMs: fc.double({ min: 0, max: 1_000, noNaN: true }),
    parentId: fc.constantFrom(undefined, "00f067aa0ba902b7"),
    state: fc.constantFrom(undefined, "a=b"),
    calls: fc.array(
      fc.record({
        provider: fc.constantFrom("up", "over"),
        credential: fc.constantFrom("default", "second"),
        state: fc.constantFrom("exact", "estimated", "unpriced"),
        usage: fc.record(
          {
            input: fc.nat(1e6),
            output: fc.nat(),
            cache_read: fc.nat(9),
            cache_write_1h: fc.nat(9),
          },
          { requiredKeys: [] },
        ),
        costNano: fc.option(fc.bigInt(0n, 10n ** 18n), { nil: null }),
        hedge: fc.constantFrom(undefined, true),
        fault: fc.constantFrom(
          undefined,
          { kind: "canceled" },
          { kind: "canceled", code: "hedge_lost" },
          { kind: "server", code: "e 1" },
        ),
        firstToken: fc.option(fc.nat(9_000), { nil: undefined }),
      }),
      { maxLength: 2 },
    ),
  })
  .map(({ parentId, state, calls, ...of }) =>
    createRequestRecord({
      ...of,
      trace: { traceId: newTraceId(), spanId: "00f067aa0ba902b7", parentId, state },
      calls: calls.map(({ firstToken, ...call }, i) => ({
        ...call,
        n: i + 1,
        spanId: "00f067aa0ba902b8",
        startMs: i,
        model: "m",
        protocol: null,
        mode: "passthrough",
        ms: { total: 5, firstToken },
      })),
    } as never),
  );

describe("spans of requests", () => {
  const options = createSpanOptions(namingVersionsOf("both"), { keys: true, labels: true });
  const RESOURCE = { attributes: [{ key: "service.name", value: { stringValue: "gate" } }] };
  const said = (
    { protocol, signal }: { protocol: "http/json" | "http/protobuf"; signal: "traces" | "logs" },
    all: readonly RequestRecord[],
  ) => {
    const frame = createEnvelope(protocol, signal, RESOURCE);
    const items = frame.createBatch();
    for (const one of all)
      if (signal === "traces") addSpans(() => items, one, options);
      else addRequestLog(items, one, options);
    const bytes = items.encode();
    return protocol === "http/json"
      ? (JSON.parse(bytes.toString()) as unknown)
      : decode(bytes, REQUEST_SHAPES[signal].shape);
  };

  it.each(["traces", "logs"] as const)(
    "as %s have the same content in protobuf and JSON",
    (signal) => {
      fc.assert(
        fc.property(fc.array(requests, { minLength: 1, maxLength: 12 }), (some) => {
          // Fields of the second half were cached when the first half was written.
          const all = [...some.flatMap((one) => [one, twinOf(one)]), ...some];
          expect(sorted(said({ protocol: "http/protobuf", signal }, all))).toEqual(
            sorted(said({ protocol: "http/json", signal }, all)),
          );
        }),
        { numRuns: trialCount(60) },
      );
    },
  );

  it("have an event for a hedge, and both calls have its result", () => {
    const call = (n: number, provider: string, more: object = {}) =>
      ({
        n,
        spanId: `00f067aa0ba902b${n}`,
        startMs: 10 * n,
        provider,
        model: "m",
        credential: "default",
        protocol: null,
        mode: "passthrough",
        state: "estimated",
        usage: {},
        costNano: 5n,
        ms: { total: 1 },
        ...more,
      }) as RequestRecord["calls"][number];
    const lost = { fault: { kind: "canceled", code: "hedge_lost" } };
    const failed = { fault: { kind: "timeout" } };
    const hedge = { hedge: true };
    const cases: readonly [RequestRecord["calls"], events: string[], results: unknown[]][] = [
      [[call(1, "a", lost), call(2, "b", hedge)], ["hedge a/m b/m"], ["lost", "won"]],
      [[call(2, "b", { ...hedge, ...lost }), call(1, "a")], ["hedge a/m b/m"], ["lost", undefined]],
      [
        [call(1, "a", failed), call(2, "b", { ...hedge, ...failed }), call(3, "c")],
        ["hedge a/m b/m", "fallback a/m c/m timeout"],
        [undefined, "failed", undefined],
      ],
      [[call(1, "a", failed), call(2, "a")], ["retry a/m a/m timeout"], [undefined, undefined]],
    ];
    for (const [calls, events, results] of cases) {
      const all = [createRequestRecord({ calls })];
      const { resourceSpans } = said({ protocol: "http/json", signal: "traces" }, all) as {
        resourceSpans: any[];
      };
      const [server, ...spans] = resourceSpans[0].scopeSpans[0].spans;
      const of = (attributes: any[]) =>
        Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));
      expect(
        server.events.map(({ name, attributes }: any) =>
          [
            name.slice("tollgate.".length),
            ...attributes.map((each: any) => each.value.stringValue),
          ].join(" "),
        ),
      ).toEqual(events);
      expect(spans.map((span: any) => of(span.attributes)["tollgate.hedge"])).toEqual(results);
    }
  });

  it("are sent from their place in the buffer, also after a long resource and in a reused batch", () => {
    for (const length of [1, 100, 900, 1_100, 5_000]) {
      const attributes = [{ key: "k", value: { stringValue: "v".repeat(length) } }];
      const frame = createEnvelope("http/protobuf", "traces", { attributes });
      const items = frame.createBatch();
      for (let batch = 1; batch < 4; batch++) {
        for (let i = 0; i < batch * 40; i++) items.add({ name: `${batch} ${i}`, kind: 2 });
        const { resourceSpans } = decode(items.encode(), REQUEST_SHAPES.traces.shape);
        expect(resourceSpans[0].resource).toEqual({ attributes });
        expect(resourceSpans[0].scopeSpans[0].spans).toEqual(
          Array.from({ length: batch * 40 }, (_, i) => ({ name: `${batch} ${i}`, kind: 2 })),
        );
        items.clear();
      }
    }
  });

  it("have a maximum size, whatever names clients use", () => {
    const alike = new TemplateCache(() => []);
    for (let i = 0; i < 3 * MAX_TEMPLATES; i++) {
      const one = createRequestRecord({ model: `m${i % 5_000}`, status: 200 + (i % 40) });
      const found = alike.get(one);
      expect(alike.get(one)).toBe(found);
      expect(alike.size).toBeLessThanOrEqual(MAX_TEMPLATES);
    }
  });

  it("are sent although one of them cannot be encoded", () => {
    const frame = createEnvelope("http/protobuf", "logs", RESOURCE);
    const items = frame.createBatch();
    const good = createRequestRecord({ model: "fast" });
    addRequestLog(items, good, options);
    const bad = { ...good, labels: { a: Symbol("no text") } } as never;
    expect(() => addRequestLog(items, bad, options)).toThrow();
    addRequestLog(items, good, options);
    const { resourceLogs } = decode(items.encode(), REQUEST_SHAPES.logs.shape);
    expect(resourceLogs[0].scopeLogs[0].logRecords).toHaveLength(2);
  });
});

/**
 * Similar, but inside a client's trace where the other one is not, with content where the other one
 * has none, and with calls over the other transport.
 */
const twinOf = (one: RequestRecord): RequestRecord => ({
  ...one,
  at: one.at + 1,
  trace: {
    ...one.trace,
    parentId: one.trace.parentId === undefined ? "00f067aa0ba902b9" : undefined,
  },
  calls: one.calls.map((call) => ({
    ...call,
    transport: call.transport ? undefined : "websocket",
    ms: { ...call.ms, firstToken: call.ms.firstToken === undefined ? 7 : undefined },
  })),
});

/** Fields have another order if some of them were cached. */
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([, one]) => one !== undefined)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, one]) => [name, sorted(one)]),
        )
      : value;

const record = (of: Partial<RequestRecord>): RequestRecord =>
  ({
    outcome: "ok",
    calls: [],
    ms: 5,
    trace: { traceId: newTraceId(), spanId: "1" },
    ...of,
  }) as never;

describe("a sampler", () => {
  it.each(SAMPLERS)(
    "%s keeps failed, retried, and slow requests, unless traces are disabled",
    (sampler) => {
      const kept = createSampler({ sampler, ratio: 0, slowMs: 100 });
      const telling = [
        record({ outcome: "upstream_error" }),
        record({ outcome: "error" }),
        record({ calls: [{}, {}] as never }),
        record({ ms: 101 }),
        record({ ms: 200, firstTokenMs: 101 }),
      ];
      for (const one of telling) expect(kept(one)).toBe(sampler !== "always_off");
      const plain = [
        record({}),
        record({ outcome: "client_error" }),
        record({ ms: 900, firstTokenMs: 9 }),
      ];
      const all = sampler === "always_on" || sampler === "parentbased_always_on";
      for (const one of plain) expect(kept(one)).toBe(all);
      for (const sampled of [true, false]) {
        const one = record({ trace: { traceId: newTraceId(), spanId: "1", sampled } });
        const based = sampler.startsWith("parentbased");
        expect(kept(one)).toBe(based ? sampled : sampler === "always_on");
      }
    },
  );

  it("keeps its share, and a larger share includes a smaller one", () => {
    const traces = Array.from({ length: 4_000 }, () => record({}));
    let before: readonly RequestRecord[] = [];
    for (const ratio of [0, 0.1, 0.5, 0.9, 1]) {
      const kept = traces.filter(createSampler({ sampler: "traceidratio", ratio, slowMs: 100 }));
      expect(Math.abs(kept.length / traces.length - ratio)).toBeLessThan(0.05);
      expect(before.every((one) => kept.includes(one))).toBe(true);
      before = kept;
    }
  });
});

describe("settings", () => {
  const read = (said: OtlpOptions, env: Record<string, string>) =>
    resolveSettings(said, (name) => {
      expect(VARIABLES).toContain(name);
      return env[name];
    });

  it("have the specification's defaults", () => {
    const { destinations, resource, sampler, ratio, ignored } = read({}, {});
    expect(destinations.traces).toEqual({
      url: "http://localhost:4318/v1/traces",
      protocol: "http/protobuf",
      gzip: false,
      headers: {},
      timeoutMs: 10_000,
    });
    expect(destinations.logs!.url).toBe("http://localhost:4318/v1/logs");
    const gzip = (endpoint: string) => read({ endpoint }, {}).destinations.traces!.gzip;
    for (const here of ["http://127.0.0.1:4318", "http://[::1]:4318"])
      expect(gzip(here)).toBe(false);
    for (const there of [
      "http://10.0.0.1:4318",
      "https://otlp.example",
      "http://localhost.example",
    ])
      expect(gzip(there)).toBe(true);
    expect([...resource]).toEqual([["service.name", "tollgate"]]);
    expect([sampler, ratio, ignored]).toEqual(["parentbased_traceidratio", 1, []]);
  });

  it("are read from variables, a signal's own before the common one", () => {
    const { destinations, resource, ...more } = read(
      {},
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/base/",
        OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "https://logs.example/as-it-is",
        OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=two%2C",
        OTEL_EXPORTER_OTLP_LOGS_HEADERS: "a=2",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_COMPRESSION: "none",
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "500",
        OTEL_METRICS_EXPORTER: "none",
        OTEL_RESOURCE_ATTRIBUTES: "service.name=gate,team=infra",
        OTEL_SERVICE_NAME: "door",
        OTEL_TRACES_SAMPLER: "traceidratio",
        OTEL_TRACES_SAMPLER_ARG: "0.25",
        OTEL_BSP_MAX_QUEUE_SIZE: "10",
      },
    );
    expect(destinations.traces).toEqual({
      url: "http://collector:4318/base/v1/traces",
      protocol: "http/json",
      gzip: false,
      headers: { a: "1", b: "two," },
      timeoutMs: 500,
    });
    expect(destinations.metrics).toBeUndefined();
    expect(destinations.logs).toMatchObject({
      url: "https://logs.example/as-it-is",
      headers: { a: "2", b: "two," },
    });
    expect(Object.fromEntries(resource)).toEqual({ "service.name": "door", team: "infra" });
    expect(more).toMatchObject({
      sampler: "traceidratio",
      ratio: 0.25,
      maxQueued: 10,
      ignored: [],
    });
  });

  it("in options have priority", () => {
    const said = {
      endpoint: "http://here:1",
      signals: ["traces"],
      sample_ratio: 0.5,
      headers: { a: "3" },
      resource: { "service.name": "mine" },
    } as const;
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://there:1/v1/traces",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1",
      OTEL_TRACES_SAMPLER_ARG: "0.1",
      OTEL_SERVICE_NAME: "theirs",
    };
    const { destinations, ratio, resource } = read(said, env);
    expect(destinations).toMatchObject({
      traces: { url: "http://here:1/v1/traces", headers: { a: "3" } },
      metrics: undefined,
      logs: undefined,
    });
    expect([ratio, resource.get("service.name")]).toEqual([0.5, "mine"]);
    expect(exporterOrigins(said, (name) => (env as Record<string, string>)[name])).toEqual([
      "http://here:1/v1/traces",
    ]);
  });

  it("that are invalid are skipped with a log line", () => {
    const { destinations, ignored, ratio } = read(
      {},
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
        OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
        OTEL_TRACES_SAMPLER_ARG: "2",
        OTEL_RESOURCE_ATTRIBUTES: "%zz=1",
      },
    );
    expect(destinations.traces!.url).toBe("http://localhost:4318/v1/traces");
    expect(ratio).toBe(1);
    expect(ignored.toSorted()).toEqual([
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "OTEL_EXPORTER_OTLP_PROTOCOL",
      "OTEL_RESOURCE_ATTRIBUTES",
      "OTEL_TRACES_SAMPLER_ARG",
    ]);
    expect(read({}, { OTEL_SDK_DISABLED: "true" }).destinations).toEqual({
      traces: undefined,
      metrics: undefined,
      logs: undefined,
    });
  });
});

describe("batches", () => {
  it("have a maximum size, and every item is sent, dropped, or queued", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ many: fc.integer({ min: 1, max: 40 }), pause: fc.boolean() }), {
          maxLength: 30,
        }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 100 }),
        async (bursts, queue, batch, taken) => {
          const counts = { sent: 0, dropped: 0 };
          let under = 0;
          const send = async ({ count }: ItemBatch) => {
            expect(++under).toBe(1);
            expect(count).toBeLessThanOrEqual(batch);
            await turnEventLoop(1);
            under--;
            return Math.floor((count * taken) / 100);
          };
          const empty = () => createEnvelope("http/protobuf", "traces", {}).createBatch();
          const batches = new ExportQueue(
            { maxQueued: queue, batchSize: batch, delayMs: 1 },
            counts,
            { createBatch: empty, send },
          );
          let added = 0;
          for (const { many, pause } of bursts) {
            batches.add(many, (next) => {
              for (let i = 0; i < many; i++) next().add({});
            });
            added += many;
            expect(batches.waiting).toBeLessThanOrEqual(queue);
            if (pause) await turnEventLoop(1);
          }
          await batches.flush();
          expect([batches.waiting, counts.sent + counts.dropped]).toEqual([0, added]);
        },
      ),
      { numRuns: trialCount(25) },
    );
  });
});

describe("batches of a traffic burst", () => {
  it("reuse the buffers of earlier ones that were sent", async () => {
    let made = 0;
    const empty = () => {
      made++;
      return createEnvelope("http/protobuf", "traces", {}).createBatch();
    };
    const send = async ({ count }: ItemBatch) => (await turnEventLoop(1), count);
    const counts = { sent: 0, dropped: 0 };
    const batches = new ExportQueue({ maxQueued: 100, batchSize: 10, delayMs: 1 }, counts, {
      createBatch: empty,
      send,
    });
    for (let burst = 0; burst < 20; burst++) {
      // One is being sent while others fill.
      for (let i = 0; i < 40; i++) batches.add(1, (next) => next().add({}));
      await batches.flush();
    }
    expect([made, counts.sent]).toEqual([4, 800]);
  });
});

describe("a post", () => {
  const to = {
    protocol: "http/protobuf",
    gzip: true,
    headers: { "x-token": "t" },
    timeoutMs: 10_000,
  } as const;
  const posting = (url: string, retryMs = 5_000) => {
    const told: (string | undefined)[] = [];
    const over = new AbortController();
    const post = new HttpExporter({
      signal: "traces",
      destination: { ...to, url: `${url}/v1/traces` },
      resource: new Map([["service.name", "gate"]]),
      retryMs,
      fetch: ((at: string, init: RequestInit) => fetch(at, init)) as never,
      abortSignal: over.signal,
      onStateChange: (why) => void told.push(why),
    });
    return { post, told, over };
  };
  const spans = [{ name: "a" }, { name: "b" }];
  const sent = (post: HttpExporter) => {
    const items = post.createBatch();
    for (const span of spans) items.add(span);
    return post.send(items);
  };

  it("is repeated as long as the collector allows it, at the time that it states", async () => {
    const again = { status: 503, headers: { "retry-after": "0" }, body: "" };
    await using collector = await startUpstream({
      "POST /v1/traces": [again, { ...again, status: 429 }, jsonResponse({})],
    });
    const { post, told } = posting(collector.url);
    expect(await sent(post)).toBe(2);
    expect(told).toEqual([
      "the collector returned status 503",
      "the collector returned status 429",
      undefined,
    ]);
    const [first, ...others] = collector.requests;
    expect(others).toHaveLength(2);
    for (const other of others) expect(other.body.equals(first!.body)).toBe(true);
    expect(first!.headers).toMatchObject({
      "content-type": "application/x-protobuf",
      "content-encoding": "gzip",
      "x-token": "t",
    });
    expect(itemsOf(first!)).toEqual(spans);
  });

  it("is abandoned if it can never be accepted, and after its timeout", async () => {
    await using collector = await startUpstream({ "POST /v1/traces": jsonResponse({}, 400) });
    const { post, told } = posting(collector.url);
    expect(await sent(post)).toBe(0);
    expect([told, collector.requests.length]).toEqual([["the collector returned status 400"], 1]);
    await using busy = await startUpstream({ "POST /v1/traces": jsonResponse({}, 503) });
    expect(await sent(posting(busy.url, 1).post)).toBe(0);
    expect(busy.requests).toHaveLength(1);
    const gone = posting("http://127.0.0.1:1", 1);
    expect(await sent(gone.post)).toBe(0);
    expect(gone.told).toHaveLength(1);
  });

  it("that is partially rejected counts as accepted for the rest", async () => {
    await using collector = await startUpstream({
      "POST /v1/traces": { headers: {}, body: Buffer.from([0x0a, 0x04, 0x08, 0x01, 0x12, 0x00]) },
    });
    expect(await sent(posting(collector.url).post)).toBe(1);
    expect(rejectedCount(Buffer.from(""), false)).toBe(0);
    expect(rejectedCount(Buffer.from([0x0a, 0x80, 0x02, 0x08, 0xac, 0x02]), false)).toBe(300);
    expect(rejectedCount(Buffer.from('{"partialSuccess":{"rejectedSpans":"3"}}'), true)).toBe(3);
    for (const odd of ["", "{", "[]", "null", '{"partialSuccess":{"rejectedSpans":"x"}}'])
      expect(rejectedCount(Buffer.from(odd), true)).toBe(0);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 24 }), fc.boolean(), (bytes, form) => {
        expect(rejectedCount(Buffer.from(bytes), form)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("stops waiting when its generation ends", async () => {
    await using collector = await startUpstream({ "POST /v1/traces": jsonResponse({}, 503) });
    const { post, over } = posting(collector.url, 600_000);
    const sending = sent(post);
    await until(() => collector.requests.length === 1);
    over.abort();
    expect(await sending).toBe(0);
    expect(await sent(post)).toBe(0);
    expect(collector.requests).toHaveLength(1);
    await using hangs = await startUpstream({
      "POST /v1/traces": () => new Promise<never>(() => {}),
    });
    const hanging = posting(hangs.url, 600_000);
    const waiting = sent(hanging.post);
    await until(() => hangs.requests.length === 1);
    hanging.over.abort();
    expect(await waiting).toBe(0);
  });
});

it("the span of a job is linked to the request that created it, and contains a key only if asked", () => {
  const trace = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
  const job = {
    type: "job_ended",
    at: 9_000,
    kind: "batch",
    job: "batch_1",
    status: "failed",
    key: "alice",
    createdAt: 1_000,
    costUsd: "0.5",
    origin: { request: "r1", trace },
  } as const;
  const batch = createEnvelope("http/json", "traces", {}).createBatch();
  batch.add(jobSpan(job, { keys: false }));
  const [span] = JSON.parse(batch.encode().toString()).resourceSpans[0].scopeSpans[0].spans;
  expect(span).toMatchObject({
    name: "job batch",
    links: [trace],
    status: { code: 2 },
    startTimeUnixNano: "1000000000",
    endTimeUnixNano: "9000000000",
  });
  expect(span.traceId).not.toBe(trace.traceId);
  expect(JSON.stringify(span)).not.toContain("alice");
  expect(JSON.stringify(jobSpan(job, { keys: true }).attributes)).toContain("alice");
  expect(jobSpan(job, { keys: true }).spanId).toBe(span.spanId);
});

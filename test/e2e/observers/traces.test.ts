// A request's trace: continued from its client, one tree for all attempts, and forwarded only where
// the operator configured it.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineObserver, defineProvider, type RequestRecord } from "tollgate/plugin";
import {
  startTestGateway,
  jsonResponse,
  say,
  startUpstream,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { attributesOf, itemsOf, type Decoded } from "../../plugins/observers/decoded.ts";
import { createTraceHeaders } from "../../../src/pipeline/exchange/trace.ts";
import { until } from "../../kit/wait.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const MINE = {
  traceparent: `00-${TRACE}-${SPAN}-01`,
  tracestate: "rojo=00f067aa0ba902b7",
  baggage: "user=ann",
};

const EMPTY = Buffer.alloc(0);
const PRIVATE = { ...MINE, tracestate: "secret=1" };

/** Fails for models with this name. */
const answering = (asked: UpstreamRequest) =>
  asked.body.includes("failing")
    ? jsonResponse({ error: { message: "No." } }, 503)
    : say("Hello.").usage({ input: 20, output: 7, cache_read: 5 }).toResponse(asked);

const provider = (use: string, url: string, more = "") =>
  `{ use: ${use}, with: { base_url: "${url}/v1" }${more} }`;

/** A native provider that calls another address in addition to its base URL. */
const native = (base: string, other: string) =>
  defineProvider({
    api: 1,
    name: "native",
    summary: "Asks by itself",
    needs: { origins: [other] },
    setup: () => ({
      endpoints: [
        {
          operation: "chat" as const,
          base,
          auth: "none" as const,
          async *run(_request: unknown, call: { fetch: typeof fetch }) {
            await call.fetch(`${other}/elsewhere`, { method: "POST", body: "{}" });
            await call.fetch("job", { method: "POST", body: "{}" });
            await call.fetch("job/1");
            yield { type: "start" as const };
            yield { type: "open" as const, index: 0, block: { type: "text" as const } };
            yield { type: "delta" as const, index: 0, text: "Hello." };
            yield { type: "close" as const, index: 0 };
            yield { type: "usage" as const, usage: { input: 1, output: 1 } };
            yield { type: "finish" as const, reason: "stop" as const };
          },
        },
      ],
    }),
  } as never);

async function stage(up: TestUpstream, collector: TestUpstream, more = "") {
  const records: RequestRecord[] = [];
  const watcher = defineObserver({
    api: 1,
    name: "watcher",
    summary: "Keeps records",
    sends: "nowhere",
    setup: () => ({ onRequests: (batch) => void records.push(...batch) }),
  });
  const forward = ", trace: forward";
  const at = await startTestGateway({
    plugins: { watcher, native: native(`${up.url}/native`, collector.url) },
    yaml: `frontends: [chat-completions, messages]
middleware: [door, zdr]
observers:
  - watcher
  - use: otlp
    with: { endpoint: "${collector.url}", batch_delay_ms: 20, compression: none${more} }
providers:
  own: ${provider("openai-compatible", up.url, `${forward}, credentials: [{ name: a, zdr: { declared: true } }]`)}
  other: ${provider("openai-compatible", up.url)}
  spoken: ${provider("anthropic-compatible", up.url, forward)}
  native: { use: native, trace: forward }
models:
  falls: { candidates: [own/failing, own/works] }
`,
  });
  const ask = async (model: string, headers: Record<string, string> = {}) => {
    const res = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello." }] }),
    });
    await res.text();
    const id = res.headers.get("x-request-id")!;
    await until(() => records.some((record) => record.id === id));
    return records.find((record) => record.id === id)!;
  };
  return Object.assign(at, { ask, records });
}

const collecting = () => startUpstream({ "POST /*": jsonResponse({}) });
const asked = (up: TestUpstream) => up.requests.filter(({ method }) => method === "POST");

describe("the trace of a request", () => {
  let up: TestUpstream;
  let collector: TestUpstream;
  let at: Awaited<ReturnType<typeof stage>>;
  beforeAll(async () => {
    up = await startUpstream({
      "POST /native/*": jsonResponse({}),
      "POST /*": answering,
      "GET /*": jsonResponse({}),
    });
    collector = await collecting();
    at = await stage(up, collector);
  });
  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await Promise.all([up.close(), collector.close()]);
  });

  it("belongs to the client's trace, and continues at the named provider below the call's span, in both modes", async () => {
    for (const model of ["own/works", "spoken/works"]) {
      const { trace, calls } = await at.ask(model, MINE);
      expect(trace).toMatchObject({ traceId: TRACE, parentId: SPAN, sampled: true });
      expect(trace.state).toBe(MINE.tracestate);
      const { headers } = asked(up).at(-1)!;
      expect(headers["traceparent"]).toBe(`00-${TRACE}-${calls[0]!.spanId}-01`);
      expect(headers["tracestate"]).toBe(MINE.tracestate);
      expect(headers["baggage"]).toBeUndefined();
    }
    // A provider that is not listed receives no trace headers.
    await at.ask("other/works", MINE);
    const { headers } = asked(up).at(-1)!;
    for (const name of Object.keys(MINE)) expect(headers[name]).toBeUndefined();
  });

  it("starts with the request if the client's context is invalid", async () => {
    for (const traceparent of ["", "00-1-2-3", `00-${"0".repeat(32)}-${SPAN}-01`]) {
      const { trace } = await at.ask("own/works", { ...MINE, traceparent });
      expect(trace.traceId).not.toBe(TRACE);
      expect(Object.keys(trace).toSorted()).toEqual(["spanId", "traceId"]);
      expect(asked(up).at(-1)!.headers).toMatchObject({
        traceparent: expect.stringContaining(trace.traceId),
      });
      expect(asked(up).at(-1)!.headers["tracestate"]).toBeUndefined();
    }
    const { trace } = await at.ask("own/works", { traceparent: `00-${TRACE}-${SPAN}-00` });
    expect(trace.sampled).toBe(false);
    expect(asked(up).at(-1)!.headers["traceparent"]).toMatch(/-00$/);
  });

  it("is never sent with a private request, whatever its headers contain", async () => {
    const spans: Buffer[] = [];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("required", "strict"),
        fc.constantFrom("own/works", "falls"),
        fc.subarray(Object.entries(PRIVATE)),
        async (level, model, headers) => {
          const before = up.requests.length;
          const { privacy, trace } = await at.ask(model, {
            ...Object.fromEntries(headers),
            "service-zdr": level,
          });
          expect(privacy).toBe(level);
          spans.push(Buffer.from(trace.spanId, "hex"));
          const sent = up.requests.slice(before);
          expect(sent.length).toBeGreaterThan(0);
          for (const one of sent) {
            for (const name of Object.keys(MINE)) expect(one.headers[name]).toBeUndefined();
            expect(one.rawHeaders.join("\n")).not.toContain(trace.traceId);
          }
        },
      ),
      { numRuns: 12 },
    );
    // Nor does the client's trace state reach a collector.
    const posts = () =>
      Buffer.concat(
        collector.requests.map(({ path, body }) => (path === "/v1/traces" ? body : EMPTY)),
      );
    await until(() => spans.every((span) => posts().includes(span)));
    expect(posts().includes("secret=1")).toBe(false);
  });

  it("of a native endpoint is sent to its own origin only", async () => {
    const { calls } = await at.ask("native/any", MINE);
    const own = up.requests.filter(({ path }) => path.startsWith("/native/job"));
    expect(own.map(({ headers }) => headers["traceparent"])).toEqual(
      Array.from({ length: 2 }, () => `00-${TRACE}-${calls[0]!.spanId}-01`),
    );
    const elsewhere = collector.requests.find(({ path }) => path === "/elsewhere")!;
    expect(elsewhere.headers["traceparent"]).toBeUndefined();
  });
});

it("continues below the request itself if a call has no span: counts and stored objects", () => {
  const exchange = { privacy: "off", trace: { traceId: TRACE, spanId: SPAN, sampled: false } };
  const candidate = { mounted: { provider: { traceMode: "forward" } } };
  const of = (actionType: string) =>
    createTraceHeaders({ n: 1, candidate, exchange: { ...exchange, actionType } } as never)[
      "traceparent"
    ];
  expect([of("count"), of("relay")]).toEqual([`00-${TRACE}-${SPAN}-00`, `00-${TRACE}-${SPAN}-00`]);
  expect(of("generate")).not.toContain(SPAN);
});

describe("spans", () => {
  it.each(["http/protobuf", "http/json"])("form one tree per request for %s", async (protocol) => {
    await using up = await startUpstream({ "POST /*": answering });
    await using collector = await collecting();
    await using at = await stage(up, collector, `, protocol: ${protocol}, signals: [traces]`);
    const record = await at.ask("falls", MINE);
    await at.ask("own/works");
    const spans: Decoded[] = [];
    await until(() => {
      spans.length = 0;
      spans.push(...collector.requests.flatMap(itemsOf));
      return spans.length === 5;
    });
    const tree = spans.filter(({ traceId }) => traceId === TRACE);
    const [server, first, second] = tree;
    expect(server).toMatchObject({
      spanId: record.trace.spanId,
      parentSpanId: SPAN,
      traceState: MINE.tracestate,
      kind: 2,
      name: "POST /v1/chat/completions",
    });
    expect([first, second]).toMatchObject(
      record.calls.map(({ spanId, model }) => ({
        spanId,
        parentSpanId: record.trace.spanId,
        kind: 3,
        name: `chat ${model}`,
      })),
    );
    expect(server!["events"]).toMatchObject([{ name: "tollgate.fallback" }]);
    expect(first!["status"]).toEqual({ code: 2 });
    expect(second!["events"]).toMatchObject([{ name: "tollgate.first_token" }]);
    for (const { startTimeUnixNano: from, endTimeUnixNano: to } of tree) {
      expect(BigInt(from)).toBeLessThanOrEqual(BigInt(to));
      expect(BigInt(from)).toBeGreaterThanOrEqual(BigInt(server!["startTimeUnixNano"]));
      expect(BigInt(to)).toBeLessThanOrEqual(BigInt(server!["endTimeUnixNano"]));
    }
    // A backend that counts by these names counts each call once.
    expect(Object.keys(attributesOf(server!)).filter((key) => key.startsWith("gen_ai"))).toEqual(
      [],
    );
    expect(attributesOf(second!)).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "own",
      "gen_ai.request.model": "works",
      "gen_ai.usage.output_tokens": "7",
      "gen_ai.response.finish_reasons": ["stop"],
      "tollgate.attempt": "2",
      "tollgate.bill_state": "unpriced",
    });
    expect(attributesOf(first!)).toMatchObject({ "error.type": "overloaded" });
    // A trace that starts here has no parent.
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined)).toHaveLength(1);
  });
});

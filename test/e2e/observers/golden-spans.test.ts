// Spans that a collector receives for each frontend, in each mode, for each outcome of a call: the
// whole tree as one line, the request first, then its attempts. "!" marks a span with an error
// status.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  startTestGateway,
  jsonResponse,
  say,
  startUpstream,
  type TestGateway,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { attributesOf, itemsOf, type Decoded } from "../../plugins/observers/decoded.ts";
import { until } from "../../kit/wait.ts";

const HELLO = say("Hello. ".repeat(200)).usage({ input: 20, output: 7 });
/** For 20 input tokens and 7 output tokens. */
const [PRICE, COST] = ["{ input: 1.001, output: 2.003 }", "0.000034041"];

/** Outcome of a call, by the first segment of the provider's path. */
const ANSWERS: Record<string, (asked: UpstreamRequest) => object | Promise<never>> = {
  whole: (asked) => HELLO.toResponse(asked),
  streamed: (asked) => HELLO.toResponse(asked),
  // After some of its content.
  torn: (asked) => ({
    ...HELLO.toResponse(asked),
    truncation: { after: { pieces: 9 }, how: "reset" },
  }),
  silent: () => new Promise<never>(() => {}),
  busy: () => jsonResponse({ error: { message: "No." } }, 503),
  limited: () => jsonResponse({ error: { message: "No." } }, 429),
  refused: () => jsonResponse({ error: { message: "No." } }, 401),
  invalid: () => jsonResponse({ error: { message: "No." } }, 400),
};

/** Expected spans. `own` contains the name of the provider and the mode. */
const EXPECTED: Record<string, (frontend: string, own: string) => string> = {
  whole: (at, own) => `${at} 200 ok | ${own} exact ${COST} stop +first_token`,
  streamed: (at, own) => `${at} 200 ok | ${own} exact ${COST} stop +first_token`,
  torn: (at, own) =>
    `${at} 200 upstream_error upstream! | ${own} estimated some upstream +first_token!`,
  silent: (at, own) => `${at} 499 canceled canceled | ${own} estimated some canceled`,
  // One retry. The client receives the provider's own status.
  busy: (at, own) => {
    const attempt = `${own} void 0 overloaded!`;
    return `${at} 503 upstream_error overloaded +retry! | ${attempt} | ${attempt}`;
  },
  limited: (at, own) => `${at} 429 upstream_error rate_limited! | ${own} void 0 rate_limited!`,
  refused: (at, own) => `${at} 502 upstream_error upstream_auth! | ${own} void 0 upstream_auth!`,
  // A client's own error is not a failure of the server.
  invalid: (at, own) => `${at} 400 client_error invalid | ${own} void 0 invalid!`,
};

const WIRES = {
  chat: { use: "openai-compatible", speaks: ["chat-completions"] },
  spoken: { use: "anthropic-compatible", speaks: ["messages"] },
  answers: { use: "openai-compatible", speaks: ["chat-completions", "responses"] },
} as const;
type Wire = keyof typeof WIRES;

type Ask = (model: string, stream: boolean) => readonly [path: string, body: object];
const MESSAGES = [{ role: "user", content: "Hello." }];
const FRONTENDS: Readonly<Record<string, Ask>> = {
  "chat-completions": (model, stream) => [
    "/v1/chat/completions",
    { model, stream, messages: MESSAGES },
  ],
  messages: (model, stream) => [
    "/v1/messages",
    { model, stream, max_tokens: 9, messages: MESSAGES },
  ],
  responses: (model, stream) => ["/v1/responses", { model, stream, input: "Hello." }],
  gemini: (model, stream) => [
    `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: "Hello." }] }] },
  ],
};

/** A model for each, so that no cooldown affects another. */
const CASES = Object.keys(FRONTENDS).flatMap((frontend) =>
  (Object.keys(WIRES) as Wire[]).flatMap((wire) =>
    Object.keys(ANSWERS).map((how) => ({
      frontend,
      wire,
      how,
      provider: `${frontend}-${wire}-${how}`,
    })),
  ),
);

let up: TestUpstream;
let collector: TestUpstream;
let at: TestGateway;
beforeAll(async () => {
  up = await startUpstream({
    "POST /*": (asked) => ANSWERS[asked.path.split("/")[1]!]!(asked) as never,
  });
  collector = await startUpstream({ "POST /*": jsonResponse({}) });
  const providers = CASES.map(
    ({ provider, wire, how }) => `  ${provider}:
    use: ${WIRES[wire].use}
    with: { base_url: "${up.url}/${how}/${provider}", list_models: false${wire === "answers" ? ", responses: true" : ""} }
    models: { m: { price: ${PRICE} } }
`,
  );
  at = await startTestGateway({
    yaml: `frontends: [${Object.keys(FRONTENDS).join(", ")}]
middleware: [door]
observers:
  - use: otlp
    with: { endpoint: "${collector.url}", batch_delay_ms: 20, compression: none, signals: [traces] }
providers:
${providers.join("")}
  first: { use: openai-compatible, with: { base_url: "${up.url}/busy/first", list_models: false } }
  second: { use: openai-compatible, with: { base_url: "${up.url}/whole/second", list_models: false } }
models:
  falls: { candidates: [first/m, second/m], fallback_on: [overloaded] }
`,
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await Promise.all([up?.close(), collector?.close()]);
});

/** Sends a request, disconnects if no response will come, and returns the trace ID of its spans. */
async function asked(frontend: string, model: string, how: string): Promise<string> {
  const trace = randomBytes(16).toString("hex");
  const [path, body] = FRONTENDS[frontend]!(model, how === "streamed" || how === "torn");
  const gone = new AbortController();
  const asking = fetch(at.url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      traceparent: `00-${trace}-00f067aa0ba902b7-01`,
    },
    body: JSON.stringify(body),
    signal: gone.signal,
  })
    .then((res) => res.arrayBuffer())
    .catch(() => {});
  if (how === "silent") {
    const provider = model.split("/")[0]!;
    await until(() => up.requests.some((one) => one.path.includes(`/${provider}/`)));
    gone.abort();
  }
  await asking;
  return trace;
}

/** The received trees, by trace ID. */
function trees(): Map<string, string> {
  const spans = collector.requests.flatMap(itemsOf);
  return new Map(
    spans
      .filter(({ kind }) => kind === 2)
      .map((server) => {
        const calls = spans.filter(({ parentSpanId }) => parentSpanId === server["spanId"]);
        return [server["traceId"] as string, [server, ...calls].map(lineOf).join(" | ")];
      }),
  );
}

async function arrived(traces: readonly string[]): Promise<ReadonlyMap<string, string>> {
  let now: ReadonlyMap<string, string> = new Map();
  await until(() => ((now = trees()), traces.every((trace) => now.has(trace))));
  return now;
}

function lineOf(span: Decoded): string {
  const says = attributesOf(span);
  const events = ((span["events"] ?? []) as Decoded[]).map(({ name }) => String(name));
  const cost = String(says["tollgate.cost.usd"] ?? "-");
  const own =
    span["kind"] === 2
      ? [says["tollgate.frontend"], says["http.response.status_code"], says["tollgate.outcome"]]
      : [
          says["tollgate.provider"],
          says["tollgate.mode"],
          says["tollgate.bill_state"],
          says["tollgate.bill_state"] === "estimated" && Number(cost) > 0 ? "some" : cost,
          ...((says["gen_ai.response.finish_reasons"] ?? []) as string[]),
        ];
  return [
    ...own,
    ...[says["error.type"] ?? says["tollgate.error_kind"] ?? []].flat(),
    ...events.map((name) => name.replace("tollgate.", "+")),
  ]
    .join(" ")
    .concat(span["status"]?.code === 2 ? "!" : "");
}

it("the spans of each frontend, in each mode, for each outcome of the call", async () => {
  const traces = await Promise.all(
    CASES.map(({ frontend, provider, how }) => asked(frontend, `${provider}/m`, how)),
  );
  const all = (model: string) =>
    Promise.all(Object.keys(FRONTENDS).map((frontend) => asked(frontend, model, "whole")));
  const [nowhere, falls] = [await all("nowhere/m"), await all("falls")];
  const told = await arrived([...traces, ...nowhere, ...falls]);
  expect(traces.map((trace) => told.get(trace))).toEqual(
    CASES.map(({ frontend, wire, how, provider }) => {
      const isSpoken = (WIRES[wire].speaks as readonly string[]).includes(frontend);
      return EXPECTED[how]!(frontend, `${provider} ${isSpoken ? "passthrough" : "translated"}`);
    }),
  );
  // No provider was called.
  expect(nowhere.map((trace) => told.get(trace))).toEqual(
    Object.keys(FRONTENDS).map((frontend) => `${frontend} 404 client_error not_found`),
  );
  // Only the attempt that gave the response has its finish reason.
  expect(falls.map((trace) => told.get(trace))).toEqual(
    Object.keys(FRONTENDS).map((frontend) => {
      const mode = frontend === "chat-completions" ? "passthrough" : "translated";
      return `${frontend} 200 ok +fallback | first ${mode} void 0 overloaded! | second ${mode} unpriced - stop +first_token`;
    }),
  );
});

// Request records, read by an observer in a whole gateway: outcome, routing decisions, actions of
// hooks, times, and only the requested data about the client.
import fc from "fast-check";
import { request as ask } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  defineMiddleware,
  defineObserver,
  ERRORS,
  fail,
  createFault,
  getFault,
  type ErrorKind,
  type Observer,
  type RequestRecord,
} from "tollgate/plugin";
import {
  startTestGateway,
  jsonResponse,
  say,
  startUpstream,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";
import { attributeFault } from "../../../src/pipeline/faults/fault-source.ts";
import { outcomeOfRequest } from "../../../src/pipeline/stages/request-outcome.ts";
import { installTestClock, type TestClock } from "../../kit/clock.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";

const CHAT = "/v1/chat/completions";
const HELLO = say("Hello").usage({ input: 10, output: 2 });

/** Keeps the records that it receives. */
const ear = (
  heard: RequestRecord[],
  more: Partial<Observer> = {},
  sends: "nowhere" | object = "nowhere",
) =>
  defineObserver({
    api: 1,
    name: "ear",
    summary: "Keeps records",
    sends: sends as "nowhere",
    setup: () => ({ ...more, onRequests: (batch) => void heard.push(...batch) }),
  });

/** Records of the current test. */
let time: TestClock | undefined;
const SLOW_MS = 5_000;

/** Behaves as the message orders. */
const moody = defineMiddleware({
  api: 1,
  name: "moody",
  summary: "Does as it is told",
  sends: "nowhere",
  setup: () => ({
    async inspect(_request, x) {
      const said = JSON.stringify(x.body["messages"]);
      if (said.includes("wait")) {
        await turnEventLoop(1);
        time!.skip(20);
        await turnEventLoop(1);
      }
      if (said.includes("refuse")) fail("content_policy", "No.", { code: "guarded" });
      if (said.includes("break")) throw new Error("no luck");
    },
    async attempt(call, next) {
      const said = JSON.stringify(call.exchange.body["messages"]);
      if (!said.includes("answer")) return next();
      return {
        response: { blocks: [{ type: "text", text: "Mine." }], finish: { reason: "stop" } },
      } as never;
    },
  }),
});

let up: TestUpstream;
let at: TestGateway;
const heard: RequestRecord[] = [];
beforeAll(async () => {
  up = await startUpstream({
    "POST /busy/chat/completions": jsonResponse({ error: { message: "Busy." } }, 503),
    "POST /v1/chat/completions": async (asked) => {
      if (asked.json().model === "slow") time!.skip(SLOW_MS);
      if (asked.json().model === "silent")
        return { ...HELLO.toResponse(asked), truncation: { after: "nothing", how: "stall" } };
      return HELLO.toResponse(asked);
    },
  });
  at = await startTestGateway({
    plugins: { ear: ear(heard, { clientAddress: "prefix" }), moody },
    yaml: `frontends: [chat-completions]
middleware:
  - door
  - { use: moody, on_error: continue }
observers: [ear]
models:
  fast: { candidates: [busy/m, up/m], fallback_on: [overloaded] }
  "my-*": ["up/*"]
providers:
  busy: { use: openai-compatible, with: { base_url: "${up.url}/busy", api_key: k } }
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
`,
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

async function told(model: string, content = "Hello.", headers: Record<string, string> = {}) {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content }] });
  const res = await fetch(at.url + CHAT, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer k", ...headers },
    body,
  });
  await res.arrayBuffer();
  const answered = () => heard.find(({ id }) => id === res.headers.get("x-request-id"));
  await until(() => answered() !== undefined);
  return { record: answered()!, body };
}

describe("a record", () => {
  it("contains the requested model, the route, and the model that responded", async () => {
    const { record, body } = await told("fast", "Hello.", { "x-request-id": "theirs-1" });
    expect(record).toMatchObject({
      clientRequestId: "theirs-1",
      worker: 0,
      generation: 1,
      outcome: "ok",
      route: CHAT,
      model: "fast",
      alias: "fast",
      served: "up/m",
      isPinned: false,
      bytesIn: body.length,
      client: "127.0.0.0/24",
      lossCodes: {},
      calls: [
        { provider: "busy", state: "void", fault: { kind: "overloaded" } },
        { provider: "up", state: "unpriced" },
      ],
    });
    expect(record.zdrReceipt).toContain("up/chat-completions;");
    const [first, second] = record.calls;
    expect(first!.startMs).toBeGreaterThanOrEqual(0);
    expect(second!.startMs).toBeGreaterThanOrEqual(first!.startMs + first!.ms.total - 1);
    expect(record.firstTokenMs).toBeGreaterThanOrEqual(second!.startMs);
    // A target that failed five times in a row is tried last, which is recorded.
    for (let i = 0; i < 4; i++) await told("fast");
    const again = (await told("fast")).record;
    expect(again.calls).toMatchObject([{ provider: "up" }]);
    expect(again.skippedCandidates).toEqual([
      { candidate: "busy/m", credential: "default", by: "cooldown", code: "overloaded" },
    ]);
    expect((await told("my-m")).record).toMatchObject({ model: "my-m", alias: "my-*" });
    expect((await told("up/m")).record.alias).toBeUndefined();
  });

  it("keeps a client's ID only if it is one word of plain characters", async () => {
    const ids = fc.string({
      unit: fc.constantFrom("a", "Z", "9", "-", "~", '"', " ", "\t", "é"),
      maxLength: 140,
    });
    const alike = async (id: string) => {
      const { record } = await told("nowhere/m", "Hello.", {
        "x-request-id": Buffer.from(id).toString("latin1"),
      });
      const sent = id.trim();
      expect(record.clientRequestId).toBe(/^[!-~]{1,128}$/.test(sent) ? sent : undefined);
    };
    await Promise.all(fc.sample(ids, 40).map(alike));
  });

  it("contains actions of hooks, and nothing for hooks that let it pass", async () => {
    time = installTestClock();
    /** On a busy machine, the request may have waited for any hook. */
    const acted = (record: RequestRecord) =>
      record.hooks
        ?.filter(({ effect }) => effect !== "delayed")
        .map(({ ms: _ms, ...more }) => more) ?? [];
    const did = async (content: string) => {
      const { record } = await told("up/m", content);
      return [record.outcome, record.served, acted(record)];
    };
    const hook = (name: string, what: string) => [
      { plugin: "middleware.moody", hook: name, effect: what },
    ];
    expect(await did("Hello.")).toEqual(["ok", "up/m", []]);
    expect(await did("wait")).toEqual(["ok", "up/m", []]);
    expect(await did("refuse")).toEqual(["client_error", undefined, hook("inspect", "refused")]);
    expect(await did("break")).toEqual(["ok", "up/m", hook("inspect", "skipped")]);
    expect(await did("answer")).toEqual(["ok", undefined, hook("attempt", "responded")]);
    const { record } = await told("up/m", "wait");
    const inspect = record.hooks!.find((one) => one.hook === "inspect");
    expect(inspect).toMatchObject({ plugin: "middleware.moody", effect: "delayed" });
    expect(inspect!.ms).toBeGreaterThanOrEqual(20);
    // A provider's failure that passes through a hook is not the hook's.
    expect(acted((await told("busy/m")).record)).toEqual([]);
  });

  it("separates the gateway's own time from that of the provider and of the client", async () => {
    time = installTestClock();
    const { record } = await told("up/slow");
    expect(record.ms).toBeGreaterThanOrEqual(SLOW_MS);
    expect(record.overheadMs).toBeLessThan(SLOW_MS / 2);
    const before = heard.length;
    const body = JSON.stringify({ model: "up/m", messages: [{ role: "user", content: "Hello." }] });
    const req = ask(at.url + CHAT, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": body.length },
    });
    req.write(body.slice(0, 9));
    await turnEventLoop();
    time.skip(SLOW_MS);
    req.end(body.slice(9));
    await until(() => heard.length > before);
    expect(heard[before]!.ms).toBeGreaterThanOrEqual(SLOW_MS);
    expect(heard[before]!.overheadMs).toBeLessThan(SLOW_MS / 2);
  });

  it("of a disconnected client has the outcome canceled", async () => {
    const before = heard.length;
    const gone = new AbortController();
    const asked = fetch(at.url + CHAT, {
      method: "POST",
      signal: gone.signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "up/silent", messages: [{ role: "user", content: "Hello." }] }),
    }).catch(() => {});
    await until(() => up.requests.some(({ body }) => body.includes('"silent"')));
    gone.abort();
    await asked;
    await until(() => heard.length === before + 1);
    expect(heard.at(-1)).toMatchObject({ outcome: "canceled", status: 499 });
  });
});

describe("the client's address in a record", () => {
  const yaml =
    "frontends: [chat-completions]\nobservers: [one, two]\nproviders: { demo: { use: demo } }";

  it("has the form that each observer requests", async () => {
    const [one, two]: [RequestRecord[], RequestRecord[]] = [[], []];
    await using it = await startTestGateway({
      plugins: { one: ear(one), two: ear(two, { clientAddress: "full" }) },
      yaml,
    });
    await fetch(it.url + CHAT, { method: "POST" });
    await until(() => one.length + two.length === 2);
    expect([one[0]!.client, two[0]!.client]).toEqual([undefined, "127.0.0.1"]);
  });

  it("is never complete if the observer sends it elsewhere", async () => {
    const abroad = { retention: { kind: "none" } };
    const refused = startTestGateway({
      plugins: { one: ear([]), two: ear([], { clientAddress: "full" }, abroad) },
      yaml,
    });
    await expect(refused).rejects.toThrow(/full client addresses/);
    const wrong = startTestGateway({
      plugins: { one: ear([]), two: ear([], { clientAddress: "some" as never }) },
      yaml,
    });
    await expect(wrong).rejects.toThrow(/none, prefix, or full/);
  });
});

describe("the outcome of a request", () => {
  it("is one word for each type of failure, whatever caused it", () => {
    for (const kind of Object.keys(ERRORS) as ErrorKind[])
      for (const side of ["caller", "gateway", "target", "answer"] as const) {
        const problem = attributeFault(createFault(kind, "x"), side);
        const outcome = outcomeOfRequest({ fault: getFault(problem)!, status: 500 }, false);
        expect(["ok", undefined]).not.toContain(outcome);
        // A client above its limit and a provider above its own are two different things.
        if (kind === "rate_limited")
          expect(outcome).toBe(
            side === "target" || side === "answer" ? "upstream_error" : "refused",
          );
      }
  });
});

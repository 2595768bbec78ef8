// Hedging: a call without content gets a second one in parallel. One of them responds, and both are
// billed.
import type { ServerResponse } from "node:http";
import { Readable, Writable } from "node:stream";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  defineMiddleware,
  type Call,
  type ModelEvent,
  type Outcome,
  type Reserve,
  type Settle,
} from "tollgate/plugin";
import { startGateway } from "tollgate/testing";
import type { HedgeDelays } from "../../../src/model/route-settings.ts";
import { runPipeline } from "../../../src/pipeline/pipeline.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { VirtualClock } from "../goodput/clock.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const line = (o: object) => `${JSON.stringify(o)}\n`;
const after = (allMs: number): HedgeDelays => ({ allMs, classes: new Map() });
const settles = (journal: readonly any[]) =>
  journal.filter((c): c is Settle & { at: number } => c.do === "settle");
const endpoint = (base: string, protocol = createToyProtocol()) => ({
  endpoints: [{ protocol, base, auth: "none" as const }],
});
const never = () => startBackend(() => {});
const answer = (say: string, { body }: { body: string }, res: ServerResponse): void => {
  const usage = { input: 3, output: 2 };
  if (JSON.parse(body).stream !== true) {
    res.setHeader("content-type", "application/json");
    return void res.end(JSON.stringify({ id: "u", model: "m", say, usage, end: "stop" }));
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write(line({ id: "u", model: "m" }));
  res.write(line({ say }));
  res.end(line({ usage, end: "stop" }));
};
const answering = (say: string) => startBackend((req, res) => answer(say, req, res));
const MODELS = { m: ["a/m", "b/m"] };

const ROADS = [
  ["passthrough", "passthrough", true],
  ["passthrough", "passthrough", false],
  ["translated", "translated", true],
  ["translated", "translated", false],
  ["passthrough", "translated", true],
  ["translated", "passthrough", false],
] as const;
const protocolOf = (lane: string) =>
  lane === "passthrough" ? createToyProtocol() : createToyProtocol("other");

it.each(ROADS)(
  "a slow call (%s) loses to the next candidate (%s), stream: %s",
  async (one, two, stream) => {
    await using a = await never();
    await using b = await answering("B");
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: endpoint(a.base, protocolOf(one)), b: endpoint(b.base, protocolOf(two)) },
      models: MODELS,
      hedge: after(20),
    });
    const res = await s.ask({ model: "m", text: "hi", stream });
    const text = await res.text();
    expect(text).toContain('"say":"B"');
    expect(text).toContain("b/m");
    await until(() => a.asked[0]?.aborted === true);
    const [lost, won] = settles(s.journal).toSorted((x, y) => x.attempt.localeCompare(y.attempt));
    expect(lost).toMatchObject({ outcome: "canceled", state: "estimated" });
    expect(won).toMatchObject({ outcome: "ok", usage: { input: 3, output: 2 } });
  },
);

/** Progress of a native endpoint when it loses, and its row. */
const SENDS = {
  "a fetch with a body that is not answered": ["never"],
  "a fetch whose answer has begun": ["begun"],
  "a job that was taken, before it says so": ["job", "wait"],
  "a job that was taken, while it asks for its state": ["job", "state"],
  "a job that was taken, and a second one that is not answered": ["job", "never"],
  "a job that was refused": ["refused", "wait"],
  "a job that was taken, and a second one that was refused": ["job", "refused", "wait"],
  "a question without a body": ["state"],
  "nothing yet": ["wait"],
} as const;
type Step = (typeof SENDS)[keyof typeof SENDS][number];
/** Only a request that its provider rejected, or never received, is free. */
const isBilled = (steps: readonly Step[]): boolean =>
  steps.some((step) => step === "never" || step === "begun" || step === "job");

const native = (base: string, steps: readonly Step[]) => ({
  endpoints: [
    {
      operation: "chat" as const,
      base,
      auth: "none" as const,
      async *run(_request: unknown, call: Call): AsyncGenerator<ModelEvent> {
        for (const step of steps)
          if (step === "wait")
            await new Promise<never>((_resolve, reject) => {
              const ended = () => reject(call.signal.reason as Error);
              call.signal.addEventListener("abort", ended, { once: true });
            });
          else {
            const body = step === "state" ? {} : { method: "POST", body: "{}" };
            await (await call.fetch(step, body)).text();
          }
        yield { type: "start" };
        yield { type: "finish", reason: "stop" };
      },
    },
  ],
});

const LOSERS = Object.entries(SENDS).flatMap(([what, steps]) =>
  (["first", "second"] as const).flatMap((place) =>
    [true, false].map((stream) => [what, place, stream, steps] as const),
  ),
);

it.each(LOSERS)(
  "a native call that loses after %s is billed for what was sent (%s, stream: %s)",
  async (_what, place, stream, steps) => {
    const isLate = Promise.withResolvers<void>();
    await using a = await startBackend((req, res) => {
      if (req.url!.endsWith("job")) return void res.end("{}");
      if (req.url!.endsWith("refused")) return void res.writeHead(400).end("{}");
      if (req.url!.endsWith("begun")) res.write("{");
    });
    await using b = await startBackend((req, res) => {
      void isLate.promise.then(() => answer("B", req, res));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: native(a.base, steps) as never, b: endpoint(b.base) },
      models: { m: place === "first" ? ["a/m", "b/m"] : ["b/m", "a/m"] },
      hedge: after(20),
    });
    const asked = s.ask({ model: "m", text: "hi", stream });
    const calls = steps.filter((step) => step !== "wait").length;
    await until(() => a.asked.length === calls && s.journal.length >= 2);
    isLate.resolve();
    expect(await (await asked).text()).toContain('"say":"B"');
    await until(() => settles(s.journal).length === 2);
    const rows = settles(s.journal);
    expect(rows.find(({ outcome }) => outcome === "ok")).toMatchObject({ usage: { output: 2 } });
    expect(rows.find(({ outcome }) => outcome === "canceled")?.state).toBe(
      isBilled(steps) ? "estimated" : "void",
    );
  },
);

it("is off unless the route enables it, per class", async () => {
  await using a = await never();
  await using b = await answering("B");
  const providers = { a: endpoint(a.base), b: endpoint(b.base) };
  const classes = { allMs: undefined, classes: new Map([["image", 1]]) };
  for (const hedge of [undefined, classes]) {
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers,
      models: MODELS,
      hedge,
    });
    const leaving = new AbortController();
    const asking = s.ask({ model: "m", text: "hi", stream: true }, { signal: leaving.signal });
    const before = a.asked.length;
    await until(() => a.asked.length > before);
    await new Promise((resolve) => void setImmediate(resolve));
    leaving.abort();
    await expect(asking).rejects.toThrow();
    expect(b.asked).toHaveLength(0);
  }
});

it("a hedge that a limit rejects is not sent, and the first call responds", async () => {
  const held = Promise.withResolvers<void>();
  await using a = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    void held.promise.then(() =>
      res.end(line({ id: "u" }) + line({ say: "A" }) + line({ end: "stop" })),
    );
  });
  await using b = await answering("B");
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { a: endpoint(a.base), b: endpoint(b.base) },
    models: MODELS,
    hedge: after(20),
    verdict: ({ number }: Reserve) => {
      if (number === 1) return { ok: true };
      held.resolve();
      const denied = {
        scope: "key",
        unit: "nano_usd",
        per: "total",
        max: 1n,
        remaining: 0n,
        resetsAt: 0,
      };
      return { ok: false, denied, retryAfterMs: null } as never;
    },
  });
  const res = await s.ask({ model: "m", text: "hi", stream: true });
  expect(await res.text()).toContain('"say":"A"');
  expect(b.asked).toHaveLength(0);
  expect(settles(s.journal).map(({ outcome }) => outcome)).toEqual(["ok"]);
});

it("if both fail, the client gets the first error, and the next candidate is tried", async () => {
  await using a = await startBackend((_req, res) => {
    setTimeout(() => res.writeHead(503).end('{"error":"A is busy"}'), 60);
  });
  await using b = await startBackend(
    (_req, res) => void res.writeHead(503).end('{"error":"B is busy"}'),
  );
  await using c = await answering("C");
  const providers = { a: endpoint(a.base), b: endpoint(b.base), c: endpoint(c.base) };
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers,
    models: MODELS,
    hedge: after(10),
  });
  const res = await s.ask({ model: "m", text: "hi" });
  expect(res.status).toBe(503);
  expect(await res.text()).toContain("A is busy");
  await using more = await startTestServices({
    frontend: createToyProtocol(),
    providers,
    models: { m: ["a/m", "b/m", "c/m"] },
    hedge: after(10),
  });
  expect(await (await more.ask({ model: "m", text: "hi" })).text()).toContain('"say":"C"');
});

// From here on in virtual time: the whole pipeline except for its two sockets.

interface Script {
  /** Milliseconds to the headers, then to the first token, then to the end. */
  readonly ms: readonly [number, number, number];
  readonly ends: "well" | "503" | "cut before content" | "cut after content" | "never";
}

interface UpstreamCall {
  readonly id: string;
  over: "well" | "aborted" | "cut" | undefined;
}

/** Replaces undici's pools. */
function pools(script: () => Script, calls: UpstreamCall[], sent: () => void) {
  const dispatch = (_options: unknown, handler: any) => {
    const { ms, ends } = script();
    const call: UpstreamCall = {
      id: `call${calls.length}`,
      over: undefined,
    };
    calls.push(call);
    sent();
    const end = (how: NonNullable<UpstreamCall["over"]>, run: () => void) => {
      if (call.over) return;
      call.over = how;
      run();
    };
    const controller = {
      rawHeaders: null,
      pause() {},
      resume() {},
      abort: (reason: Error) => end("aborted", () => handler.onResponseError(controller, reason)),
    };
    handler.onRequestStart(controller);
    const later = (at: number, run: () => void) =>
      void setTimeout(() => void (call.over ?? run()), at);
    const say = (o: object) => handler.onResponseData(controller, Buffer.from(line(o)));
    const cut = () => end("cut", () => handler.onResponseError(controller, new Error("cut")));
    const done = () => end("well", () => handler.onResponseEnd(controller, {}));
    if (ends === "never") return true;
    later(ms[0], () => {
      if (ends === "503") {
        handler.onResponseStart(controller, 503, { "content-type": "application/json" });
        say({ error: "busy" });
        return done();
      }
      handler.onResponseStart(controller, 200, { "content-type": "text/event-stream" });
      say({ id: call.id });
      later(ms[1], () => {
        if (ends === "cut before content") return cut();
        say({ say: call.id });
        later(ms[2], () => {
          if (ends === "cut after content") return cut();
          say({ usage: { input: 1, output: 1 }, end: "stop" });
          done();
        });
      });
    });
    return true;
  };
  const line_ = { dispatch, close: async () => {}, stats: {} };
  return {
    acquire: () => ({ pool: line_, openConnection: () => line_, release: async () => {} }),
    stats: () => [],
    async [Symbol.asyncDispose]() {},
  };
}

class Response extends Writable {
  heads = 0;
  text = "";
  statusCode = 200;
  headersSent = false;
  writeHead(status: number): this {
    this.heads++;
    this.statusCode = status;
    this.headersSent = true;
    return this;
  }
  setHeader(): void {}
  flushHeaders(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

const script: fc.Arbitrary<Script> = fc.record({
  ms: fc.tuple(fc.nat(300), fc.nat(300), fc.nat(300)),
  ends: fc.constantFrom(
    "well",
    "well",
    "well",
    "503",
    "cut before content",
    "cut after content",
    "never",
  ),
});

it("one response, canceled losers, one row per call, no hedge after the first token, and no more hedges than the retry budget", async () => {
  let hedges = 0;
  const requests = fc.array(
    fc.tuple(fc.nat(2_000), fc.array(script, { minLength: 4, maxLength: 4 })),
    { minLength: 1, maxLength: 25 },
  );
  const law = fc.asyncProperty(requests, fc.constantFrom(1, 50, 200), async (all, delay) => {
    using clock = new VirtualClock(() => 0.5);
    const calls: UpstreamCall[] = [];
    let scripts: Script[] = [];
    let res = new Response();
    let outcome: Outcome | undefined;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: Object.fromEntries(
        ["a", "b", "c"].map((name) => [name, endpoint(`http://${name}.test`)]),
      ),
      models: { m: ["a/m", "b/m", "c/m"] },
      attempts: { perTarget: 1, total: 3 },
      hedge: after(delay),
      hooks: [{ settle: (_x, said) => void (outcome = said) }],
      pools: pools(
        () => scripts.shift()!,
        calls,
        () => expect(res.text).not.toContain('"say"'),
      ) as never,
    });
    const { ledgerQueue } = s.house as any;
    ledgerQueue.settle = async (row: object) => void s.journal.push(row as never);
    const mounted = s.built.gen.findRoute("/toy")!;
    let made = 0;
    // One after another, so that calls can be assigned to requests.
    for (const [gap, its] of all) {
      clock.at(clock.now + gap, () => {});
      await clock.run();
      scripts = [...its];
      res = new Response();
      outcome = undefined;
      const first = calls.length;
      const row = s.journal.length;
      const walking = runPipeline(s.built.gen, mounted, {
        req: request(),
        res,
        params: {},
      } as never);
      const { promise: over, resolve } = Promise.withResolvers<void>();
      void walking.then(resolve);
      // A client disconnects from a request that no call answers.
      clock.at(clock.now + 5_000, () => void (outcome ?? res.destroy()));
      await clock.run();
      await over;
      const mine = calls.slice(first);
      const rows = s.journal.slice(row) as (Reserve | Settle)[];
      const attempts = (what: string) =>
        rows.flatMap((one) => (one.do === what ? [(one as Settle).attempt] : [])).toSorted();
      expect(attempts("settle")).toEqual(attempts("reserve"));
      // A call that is canceled between its row and its request is free.
      const billed = rows.filter((one) => one.do === "settle" && one.state !== "void");
      expect(billed.length).toBeLessThanOrEqual(mine.length);
      expect(mine.length).toBeLessThanOrEqual(attempts("reserve").length);
      expect(outcome!.calls.map(({ attemptId }) => attemptId).toSorted()).toEqual(
        attempts("settle"),
      );
      expect(res.heads).toBeLessThanOrEqual(1);
      const said = mine.filter(({ id }) => res.text.includes(`"say":"${id}"`));
      expect(said.length).toBeLessThanOrEqual(1);
      for (const call of mine) expect(call.over).toBeDefined();
      const beside = outcome!.calls.filter(({ hedge }) => hedge);
      expect(beside.length).toBeLessThanOrEqual(1);
      // The call whose content the client has is last.
      if (said.length > 0) expect(outcome!.calls.at(-1)!.upstreamId).toBe(said[0]!.id);
      made += beside.length;
    }
    hedges += made;
    expect(made).toBeLessThanOrEqual(10 + 0.06 * all.length + clock.now / 30_000);
  });
  await fc.assert(law, { numRuns: trialCount(40) });
  expect(hedges).toBeGreaterThan(0);
});

function request() {
  const raw = Buffer.from(JSON.stringify({ model: "m", text: "hi", stream: true }));
  const headers = { "content-type": "application/json", "content-length": String(raw.length) };
  return Object.assign(Readable.from([raw], { objectMode: false }), {
    method: "POST",
    url: "/toy",
    headers,
    rawHeaders: Object.entries(headers).flat(),
    httpVersion: "1.1",
    complete: true,
    socket: { remoteAddress: "127.0.0.1" },
  });
}

/** A chat that never responds, or after a delay. */
const chat = (ms: number | undefined) =>
  startBackend((_req, res) => {
    if (ms === undefined) return;
    setTimeout(() => {
      res.setHeader("content-type", "application/json");
      const message = { role: "assistant", content: "Hello." };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };
      const head = { id: "u", object: "chat.completion", created: 1, model: "m" };
      res.end(JSON.stringify({ ...head, choices, usage }));
    }, ms);
  });

it.each([
  ["both calls fit into a hard budget", 1_000_000, undefined, 2, "b"],
  ["one of them fits: the other is not made", 150_000, 150, 1, "a"],
] as const)("%s", async (_name, max, ms, attempts, provider) => {
  await using a = await chat(ms);
  await using b = await chat(0);
  const of = (base: string) =>
    `{ use: openai-compatible, with: { base_url: "${base}/v1", list_models: false }, models: { m: { price: { input: "1", output: "2" } } } }`;
  let calls: Outcome["calls"] = [];
  const door = defineMiddleware({
    api: 1,
    name: "door",
    summary: "Identifies every client",
    sends: "nowhere",
    setup: () => ({
      admit: (x) =>
        x.identify({
          id: "client",
          limits: [{ scope: "client", unit: "nano_usd", max: BigInt(max), per: "total" }],
        }),
      settle: (_x, outcome) => void (calls = outcome.calls),
    }),
  });
  await using at = await startGateway({
    config: `store: memory
response_headers: [x-tollgate-attempts, x-tollgate-provider, x-tollgate-cost]
frontends: [chat-completions]
middleware: [door, { use: limits, with: { hold: hard } }]
providers: { a: ${of(a.base)}, b: ${of(b.base)} }
models: { m: { candidates: [a/m, b/m], hedge: 20ms } }
`,
    plugins: { door },
  });
  const res = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer x" },
    body: JSON.stringify({
      model: "m",
      max_tokens: 20,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  const told = await res.text();
  expect(res.status, told).toBe(200);
  expect(res.headers.get("x-tollgate-attempts")).toBe(String(attempts));
  expect(res.headers.get("x-tollgate-provider")).toBe(provider);
  await until(() => calls.length === attempts);
  const spent = calls.reduce((sum, { costNano }) => sum + costNano!, 0n);
  expect(spent).toBeLessThanOrEqual(BigInt(max));
  expect(Math.round(Number(res.headers.get("x-tollgate-cost")) * 1e9)).toBe(Number(spent));
  expect(b.asked).toHaveLength(attempts - 1);
  // The canceled call is billed as an estimate, and the one that responded is last.
  expect(calls.map(({ state }) => state)).toEqual(
    attempts === 2 ? ["estimated", "exact"] : ["exact"],
  );
});

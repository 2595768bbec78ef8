// Clients that disconnect, upstreams that misbehave, and hooks that break rules: every path ends,
// with one row per reserve.
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { fail } from "tollgate/plugin";
import { UpstreamHttpResponse } from "../../src/pipeline/upstream/upstream-http-response.ts";
import { installTestClock } from "../kit/clock.ts";
import { waitUntilStable, turnEventLoop, until } from "../kit/wait.ts";
import { startBackend, startTestServices, TIMEOUTS } from "../kit/test-services.ts";
import { createToyProtocol } from "./toy-protocol.ts";

const line = (o: object) => `${JSON.stringify(o)}\n`;
const HELLO = [line({ id: "u" }), line({ say: "Hello" })];
const END = line({ usage: { input: 3, output: 2 }, end: "stop" });
const ASK = { model: "p/m", text: "Hi", stream: true };
const SSE = { "content-type": "text/event-stream" };

const endpoint = (base: string, protocol = createToyProtocol(), more: object = {}) => ({
  endpoints: [{ protocol, base, auth: "none" as const }],
  ...more,
});
const rows = (journal: readonly { do: string }[], what: string): any[] =>
  journal.filter((c) => c.do === what);
const good = () =>
  startBackend((req, res) => {
    res.writeHead(200, SSE).end([...HELLO, END].join(""));
  });
/**
 * Every exchange leaves its generation, which then ends without waiting. A retained one hangs here.
 */
const left = (s: Awaited<ReturnType<typeof startTestServices>>) => s.built.retire();

const unhandled: unknown[] = [];
const note = (problem: unknown) => void unhandled.push(problem);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});
afterEach(async () => {
  await turnEventLoop();
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

describe("a client that disconnects", () => {
  /** Sends headers and optionally a body, and disconnects on request. */
  const visit = async (url: string, of: { length?: number; body?: string }) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    const body = of.body ?? "";
    socket.write(
      `POST /toy HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${of.length ?? Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return socket;
  };

  it.each([
    ["with its body sent", { body: JSON.stringify(ASK) }],
    ["in the middle of its body", { body: '{"model":', length: 100 }],
    ["before its body", { length: 100 }],
  ])("while it is admitted, %s", async (_, sent) => {
    await using up = await good();
    let asked = false;
    let go = () => {};
    let gone: Promise<unknown> | undefined;
    const told: number[] = [];
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          admit: (x) => {
            asked = true;
            gone = once(x.signal, "abort");
            return new Promise<void>((resolve) => (go = resolve));
          },
          settle: (_x, outcome) => void told.push(outcome.status),
        },
      ],
    });
    const socket = await visit(s.url, sent);
    await until(() => asked);
    socket.destroy();
    await gone;
    go();
    await until(() => told.length === 1);
    expect(told).toEqual([499]);
    expect(up.asked).toEqual([]);
    expect(rows(s.journal, "reserve")).toEqual([]);
    await left(s);
  });

  it("during the reserve: nothing is sent, and the row is void", async () => {
    await using up = await good();
    const gone = new AbortController();
    let seen: AbortSignal | undefined;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [{ admit: (x) => void (seen = x.signal), charge: () => void gone.abort() }],
    });
    s.house.ledgerQueue.reserve = async (c: any) => {
      await until(() => seen!.aborted);
      s.journal.push(c);
      return { ok: true } as never;
    };
    await expect(s.ask(ASK, { signal: gone.signal })).rejects.toThrow();
    await until(() => rows(s.journal, "settle").length === 1);
    expect(rows(s.journal, "settle")[0]).toMatchObject({ state: "void", outcome: "canceled" });
    expect(up.asked).toEqual([]);
    await left(s);
  });

  it("while its credential is signed: nothing is sent", async () => {
    await using up = await good();
    const gone = new AbortController();
    let seen: AbortSignal | undefined;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      hooks: [{ admit: (x) => void (seen = x.signal) }],
      providers: {
        p: {
          endpoints: [
            {
              protocol: createToyProtocol(),
              base: up.base,
              auth: async () => {
                gone.abort();
                await until(() => seen!.aborted);
                return {};
              },
            },
          ],
        },
      },
    });
    await expect(s.ask(ASK, { signal: gone.signal })).rejects.toThrow();
    await until(() => rows(s.journal, "settle").length === 1);
    await turnEventLoop();
    expect(up.asked).toEqual([]);
    expect(rows(s.journal, "settle")[0]).toMatchObject({ state: "void" });
    await left(s);
  });

  it.each([
    ["before the head", (_res: any) => {}],
    ["between head and content", (res: any) => res.writeHead(200, SSE).flushHeaders()],
    ["in the content", (res: any) => res.writeHead(200, SSE).write(HELLO.join(""))],
  ])("%s: the upstream call ends, with one row", async (_, begin) => {
    await using up = await startBackend((_req, res) => begin(res));
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const gone = new AbortController();
    const asking = s.ask(ASK, { signal: gone.signal });
    await until(() => up.asked.length === 1);
    await turnEventLoop();
    gone.abort();
    await asking.then((r) => r.text()).catch(() => {});
    await until(() => up.asked[0]!.aborted && rows(s.journal, "settle").length === 1);
    await turnEventLoop();
    expect(rows(s.journal, "settle")).toHaveLength(1);
    expect(up.asked).toHaveLength(1);
    await left(s);
  });

  it("during the settlement: one row", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      settling: () => turnEventLoop(500),
    });
    const gone = new AbortController();
    const answer = await s.ask(ASK, { signal: gone.signal });
    await until(() => rows(s.journal, "settle").length === 1);
    gone.abort();
    await answer.text().catch(() => {});
    await left(s);
    expect(rows(s.journal, "settle")).toHaveLength(1);
    expect(rows(s.journal, "settle")[0]).toMatchObject({ outcome: "ok" });
  });
});

describe("an upstream", () => {
  it("that fails before content and keeps the connection open is reported with its own error", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE).write(line({ error: "no room here" }));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, createToyProtocol("o")) },
    });
    const answer = await s.ask(ASK);
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({
      error: expect.stringMatching(/^p: no room here\. Retry after \d s\.$/),
    });
    expect(rows(s.journal, "settle")).toMatchObject([{ outcome: "upstream" }]);
  });

  it("whose error never ends, or is truncated, is classified by its headers", async () => {
    for (const more of ["endless", "cut"]) {
      await using up = await startBackend((_req, res) => {
        res.writeHead(429, { "content-type": "application/json", "content-length": 1e9 });
        res.write('{"error":"slow down"}');
        if (more === "cut") setTimeout(() => res.destroy(), 20);
        else {
          const flood = () => {
            while (!res.destroyed && res.write(Buffer.alloc(65_536, 32)));
          };
          res.on("drain", flood);
          flood();
        }
      });
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base) },
      });
      const answer = await s.ask(ASK);
      expect([more, answer.status]).toEqual([more, 429]);
      await until(() => up.asked[0]!.aborted);
      expect(rows(s.journal, "settle")).toMatchObject([{ outcome: "rate_limited", state: "void" }]);
    }
  });

  it("that sends only headers is canceled after the idle timeout, and another candidate responds", async () => {
    await using mute = await startBackend(
      (_req, res) => void res.writeHead(200, SSE).flushHeaders(),
    );
    await using up = await good();
    const timeouts = { ...TIMEOUTS, idleMs: 300 };
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        a: endpoint(mute.base, createToyProtocol(), { timeouts }),
        b: endpoint(up.base),
      },
      models: { m: ["a/m", "b/m"] },
    });
    const answer = await s.ask({ ...ASK, model: "m" });
    expect(await answer.text()).toContain("Hello");
    expect(rows(s.journal, "settle").map((c) => c.outcome)).toEqual(["timeout", "ok"]);
  });

  it("that streams endlessly for a non-streaming client is stopped", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE);
      const more = line({ say: "x".repeat(1 << 20) });
      const flood = () => {
        while (!res.destroyed && res.write(more));
      };
      res.on("drain", flood);
      flood();
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: {
          endpoints: [
            {
              protocol: createToyProtocol("o"),
              base: up.base,
              auth: "none",
              streaming: "always" as const,
            },
          ],
        },
      },
    });
    const answer = await s.ask({ ...ASK, stream: false });
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({ code: "too_large" });
    await until(() => up.asked[0]!.aborted);
  });

  it.each([204, 205, 304])("that responds with %s has sent no response", async (status) => {
    await using up = await startBackend((_req, res) => void res.writeHead(status).end());
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const answer = await s.ask(ASK);
    expect(answer.status).toBe(502);
    await answer.text();
    expect(rows(s.journal, "settle")).toHaveLength(1);
    await left(s);
  });

  it("may send early hints and trailers", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeEarlyHints({ link: "</x>; rel=preload" });
      res.writeHead(200, { ...SSE, trailer: "x-sum" });
      res.write([...HELLO, END].join(""));
      res.addTrailers({ "x-sum": "1" });
      res.end();
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const answer = await s.ask(ASK);
    expect(await answer.text()).toContain("Hello");
    expect(answer.headers.has("link")).toBe(false);
  });

  it("that is slower than the client's patience is not at fault, and no cooldown starts", async () => {
    await using up = await startBackend(() => {});
    await using other = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: endpoint(up.base), b: endpoint(other.base) },
      models: { m: ["a/m", "b/m"] },
    });
    const answer = await s.ask(
      { ...ASK, model: "m" },
      { headers: { "x-stainless-timeout": "0.3" } },
    );
    expect(answer.status).toBe(504);
    await answer.text();
    expect(s.house.targetHealth.describeCooldowns()).toEqual([]);
    expect(other.asked).toEqual([]);
  });

  it("that truncates after content is put in cooldown", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE).write(HELLO.join(""));
      setTimeout(() => res.destroy(), 20);
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    for (let i = 0; i < 5; i++) await (await s.ask(ASK)).text();
    expect(s.house.targetHealth.describeCooldowns()).toMatchObject([
      { state: "open", reason: "upstream" },
    ]);
  });

  it("that floods after its finish during settlement is paused", async () => {
    let sent = 0;
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE).write([...HELLO, END].join(""));
      const more = line({ note: "x".repeat(1 << 18) });
      const flood = () => {
        while (!res.destroyed && sent < 150) {
          sent++;
          if (!res.write(more)) return;
        }
      };
      res.on("drain", flood);
      flood();
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const billed = Promise.withResolvers<void>();
    s.house.ledgerQueue.settle = async (c: any) => {
      s.journal.push(c);
      await billed.promise;
    };
    const asking = s.ask(ASK).then((r) => r.text());
    await until(() => rows(s.journal, "settle").length === 1);
    expect(await waitUntilStable(() => sent)).toBeLessThan(100);
    billed.resolve();
    expect(await asking).toContain("Hello");
  });
});

describe("a hook", () => {
  it("that responds from its own store after a call: the call is billed, and ends", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE).write(HELLO.join(""));
    });
    const cached = {
      operation: "chat",
      protocol: "toy",
      stream: true,
      contentType: "text/event-stream",
      body: Buffer.from(line({ say: "cached" })),
      usage: {},
    };
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          attempt: async (_call, next) => {
            await next();
            return cached as never;
          },
        },
      ],
    });
    expect(await (await s.ask(ASK)).text()).toContain("cached");
    await until(() => rows(s.journal, "settle").length === 1);
    expect(rows(s.journal, "reserve")).toHaveLength(1);
    await until(() => up.asked[0]!.aborted);
    await left(s);
  });

  it.each([
    ["nothing", () => undefined],
    ["something", () => ({ status: 200 })],
    ["an error", () => fail("rate_limited", "no")],
  ])(
    "that returns %s without waiting for the call: the call is ended and billed",
    async (_, what) => {
      await using up = await good();
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base) },
        hooks: [
          {
            attempt: async (_call, next) => {
              next().catch(() => {});
              return what() as never;
            },
          },
        ],
      });
      const answer = await s.ask(ASK);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      await answer.text();
      await until(() => rows(s.journal, "settle").length === rows(s.journal, "reserve").length);
      await left(s);
    },
  );

  it("that throws before its first await is handled like one that throws later", async () => {
    await using up = await good();
    const heard: string[] = [];
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          attempt: (_call, next) =>
            next()
              .catch((problem: Error) => {
                heard.push(problem.message);
                throw problem;
              })
              .finally(() => heard.push("over")),
        },
        { attempt: () => fail("invalid", "not this one") },
      ],
    });
    const answer = await s.ask(ASK);
    expect(answer.status).toBe(400);
    expect(heard).toEqual(["not this one", "over"]);
    await answer.text();
  });

  it("cannot change the properties of a candidate, also in the list that it received", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          route: (list) => {
            (list as any[])[0] = { ...list[0], model: "another" };
            return list;
          },
        },
      ],
    });
    await (await s.ask(ASK)).text();
    expect(rows(s.journal, "reserve")).toMatchObject([{ target: { model: "m" } }]);
  });

  it("may exclude candidates with reasons in the list that it received", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          route: (list) => {
            const [candidate] = (list as any[]).splice(0, 1);
            (list as any[]).push({ candidate, kind: "forbidden", code: "not_here", message: "no" });
            return list;
          },
        },
      ],
    });
    const answer = await s.ask(ASK);
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ code: "not_here" });
  });

  it.each([
    ["once", 500, async (next: () => Promise<unknown>) => void next()],
    ["twice", 200, async (next: () => Promise<unknown>) => void (await next(), next())],
    ["late", 200, async (next: () => Promise<unknown>) => void setImmediate(next)],
  ])("that calls next %s and ignores it ends only its call", async (_, status, ask) => {
    await using up = await startBackend((_req, res) => void res.writeHead(status, SSE).end("{}"));
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          attempt: async (_call, next) => {
            await ask(next);
            await turnEventLoop();
            return fail("invalid", "no");
          },
        },
      ],
    });
    expect((await s.ask(ASK)).status).toBe(400);
    await turnEventLoop();
  });

  it("that calls next after the call has ended sends nothing", async () => {
    await using up = await good();
    let late: (() => Promise<unknown>) | undefined;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          attempt: async (_call, next) => {
            late = next;
            return fail("invalid", "no");
          },
        },
      ],
    });
    await (await s.ask(ASK)).text();
    await expect(late!()).rejects.toThrow();
    expect(s.journal).toEqual([]);
  });

  it("that returns invalid headers causes a 500, reported to every settle hook, and the generation is released", async () => {
    await using up = await good();
    const told: number[] = [];
    await using s = await startTestServices({
      frontend: {
        ...createToyProtocol(),
        server: { ...createToyProtocol().server!, encodeHeaders: () => ({ "bad name\n": "x" }) },
      },
      providers: { p: endpoint(up.base) },
      hooks: [{ settle: (_x, outcome) => void told.push(outcome.status) }],
    });
    await s.ask(ASK).then(
      (r) => r.text(),
      () => {},
    );
    await until(() => told.length === 1);
    await left(s);
    expect(rows(s.journal, "settle")).toHaveLength(rows(s.journal, "reserve").length);
  });

  it("cannot name a header that cannot be sent", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [{ admit: (x) => x.setResponseHeader("a\r\nset-cookie", "x") }],
    });
    const answer = await s.ask(ASK);
    expect(answer.status).toBe(500);
    expect(answer.headers.has("set-cookie")).toBe(false);
  });

  it("whose settle throws hides nothing from the others", async () => {
    await using up = await good();
    const told: string[] = [];
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        { settle: () => void told.push("first") },
        { settle: () => fail("internal", "broken") },
        { settle: async () => Promise.reject(new Error("broken")) },
        { settle: () => void told.push("last") },
      ],
    });
    await (await s.ask(ASK)).text();
    await until(() => told.length === 2);
    await left(s);
  });
});

describe("a client that reads slowly", () => {
  const more = line({ say: "x".repeat(8_000) });
  const COUNT = 3_000;
  const many = (...first: string[]) =>
    startBackend((_req, res) => {
      let sent = 0;
      res.writeHead(200, SSE).write([...HELLO, ...first].join(""));
      const flow = () => {
        while (sent < COUNT) {
          sent++;
          if (!res.write(more)) return;
        }
        res.off("drain", flow).end(END);
      };
      res.on("drain", flow);
      flow();
    });

  it("does not affect the upstream: its silence is not the provider's", async () => {
    const { skip } = installTestClock();
    const paused = vi.spyOn(UpstreamHttpResponse.prototype, "pause");
    const resumed = vi.spyOn(UpstreamHttpResponse.prototype, "resume");
    onTestFinished(() => void vi.restoreAllMocks());
    await using up = await many();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const answer = await s.ask(ASK);
    const waits = () => paused.mock.calls.length > resumed.mock.calls.length;
    // The system's socket buffers fill up, and then stay full.
    await until(
      async () =>
        waits() && (await waitUntilStable(() => paused.mock.calls.length, 1_000)) > 0 && waits(),
    );
    skip(1.5 * TIMEOUTS.idleMs);
    await turnEventLoop();
    const text = await answer.text();
    expect(text.slice(-200)).toContain('"end":"stop"');
    expect(rows(s.journal, "settle")).toMatchObject([{ outcome: "ok" }]);
  });
});

describe("a ledger", () => {
  it("that rejects a reserve prevents the call", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    s.house.ledgerQueue.reserve = () => Promise.reject(new Error("disk is full"));
    const answer = await s.ask(ASK);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("disk");
    expect(up.asked).toEqual([]);
    await left(s);
  });

  it("that rejects a settle does not delay the client's last bytes", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    s.house.ledgerQueue.settle = () => Promise.reject(new Error("disk is full"));
    expect(await (await s.ask(ASK)).text()).toContain('"end":"stop"');
    await left(s);
  });

  it.each([
    ["after content", (res: any) => res.write(HELLO.join(""), () => res.destroy())],
    ["before it", (res: any) => res.destroy()],
  ])("that hangs does not delay a failure, %s", async (_, cut) => {
    await using up = await startBackend((_req, res) => cut(res.writeHead(200, SSE)));
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    s.house.ledgerQueue.settle = () => new Promise(() => {});
    const answer = await s.ask(ASK);
    expect(await answer.text()).toContain("error");
    await left(s);
  });
});

it("a frontend's error in a recorded response cannot end the process", async () => {
  await using up = await good();
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: endpoint(up.base) },
    read: (_x, body) => ({
      model: body["model"] as string,
      record: {
        maxBytes: 1e6,
        onRecorded() {
          throw new Error("broken");
        },
      },
    }),
  });
  expect(await (await s.ask(ASK)).text()).toContain("Hello");
});

it("a native endpoint that never yields is aborted, and gets an error", async () => {
  let signal: AbortSignal | undefined;
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: {
        timeouts: { ...TIMEOUTS, totalMs: 400 },
        endpoints: [
          {
            operation: "chat",
            async *run(_r: unknown, call: any) {
              signal = call.signal;
              await new Promise(() => {});
              yield undefined as never;
            },
          } as never,
        ],
      },
    },
  });
  const answer = await s.ask(ASK);
  expect(answer.status).toBe(504);
  await answer.text();
  expect(signal!.aborted).toBe(true);
  await left(s);
});

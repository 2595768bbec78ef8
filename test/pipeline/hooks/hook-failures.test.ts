// Effects of a failing hook on a request, hook by hook: it throws an error that is no rejection, or
// it takes too long.
import { describe, expect, it } from "vitest";
import {
  fail,
  type Context,
  type Hooks,
  type ModelEvent,
  type UpstreamResponse,
} from "tollgate/plugin";
import { installTestClock } from "../../kit/clock.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { turnEventLoop } from "../../kit/wait.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const ANSWER = { id: "u", model: "m", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" };
const PASSABLE = ["rewrite", "inspect", "route", "attempt"] as const;
type Passable = (typeof PASSABLE)[number];
const forever = () => new Promise<never>(() => {});
const mistake = (): never => {
  throw new TypeError("a mistake in a plugin");
};

async function asked(
  hook: NonNullable<TestServicesOptions["hooks"]>[number],
  of: { slow?: () => void; body?: object; upstream?: number } = {},
) {
  await using up = await startBackend(async (_req, res) => {
    of.slow?.();
    res.writeHead(of.upstream ?? 200, { "content-type": "application/json" });
    res.end(of.upstream ? '{"error":"busy"}' : JSON.stringify(ANSWER));
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" as const }] },
    },
    hooks: [hook],
  });
  const res = await s.ask({ model: "p/m", text: "hi", ...of.body });
  const text = await res.text();
  return {
    status: res.status,
    text,
    asked: up.asked.length,
    rows: s.journal.filter((row) => row.do === "settle").map((row) => row.state),
    log: s.log.map(({ fields, message }) => ({
      message,
      hook: fields.hook,
      plugin: fields.plugin,
      action: fields.action,
    })),
    rests: s.house.targetHealth.describeCooldowns(),
  };
}

const failing = (name: Passable, run: () => unknown): Hooks => ({ [name]: run }) as Hooks;
const ways: readonly (readonly [string, () => unknown])[] = [
  ["throws at once", mistake],
  ["throws later", async () => mistake()],
  ["hangs", forever],
];

describe.each(PASSABLE)("%s", (name) => {
  describe.each(ways)("that %s", (how, run) => {
    const hangs = how === "hangs";
    const timeoutMs = hangs ? 100 : 30_000;

    it("ends the request, unless the operator chose otherwise", async () => {
      const got = await asked({ ...failing(name, run), timeoutMs });
      expect(got).toMatchObject({ status: hangs ? 503 : 500, asked: 0, rows: [], rests: [] });
      // By its name in gateway.yaml, and not by its error.
      expect(got.text).toContain("middleware.m0");
      expect(got.text).not.toContain("a mistake");
      if (hangs)
        expect(got.log).toContainEqual({
          message: "hook timed out",
          hook: name,
          plugin: "middleware.m0",
        });
    });

    it("is skipped with on_error: continue, and logged once", async () => {
      const got = await asked({ ...failing(name, run), timeoutMs, onError: "continue" });
      expect(got).toMatchObject({ status: 200, asked: 1, rows: ["unpriced"] });
      expect(got.log.filter(({ action }) => action === "skipped")).toEqual([
        { message: "hook failed", hook: name, plugin: "middleware.m0", action: "skipped" },
      ]);
    });
  });

  it("that rejects always takes effect, whatever on_error is", async () => {
    for (const run of [() => fail("forbidden", "No."), async () => fail("forbidden", "No.")])
      expect(await asked({ ...failing(name, run), onError: "continue" })).toMatchObject({
        status: 403,
        asked: 0,
      });
  });

  it("whose own fetch fails has rejected nothing", async () => {
    let ctx: Context | undefined;
    const run = async () => ctx!.fetch("http://127.0.0.1:1/moderate");
    const of = { ...failing(name, run), lent: (c: Context) => void (ctx = c) };
    expect(await asked({ ...of, onError: "continue" })).toMatchObject({ status: 200, asked: 1 });
    expect(await asked(of)).toMatchObject({ status: 502, asked: 0, rests: [] });
  });
});

describe("an attempt hook", () => {
  const around = (after: (reply: UpstreamResponse) => unknown): Hooks => ({
    attempt: async (_call, next) => (await after(await next())) as UpstreamResponse,
  });

  it("has its full time again after the provider's headers, however long they took", async () => {
    const time = installTestClock();
    const late = () => time.skip(9_000);
    const hook = {
      ...around(async (reply) => (await turnEventLoop(1), late(), reply)),
      timeoutMs: 15_000,
    };
    expect(await asked(hook, { slow: late })).toMatchObject({ status: 200, rows: ["unpriced"] });
  });

  it("that fails after the headers ends the call, and sent content is billed", async () => {
    for (const [run, status] of [
      [mistake, 500],
      [forever, 503],
    ] as const)
      expect(await asked({ ...around(run), timeoutMs: 100 })).toMatchObject({
        status,
        asked: 1,
        rows: ["estimated"],
        rests: [],
      });
  });

  it("passes the existing response on under on_error: continue", async () => {
    for (const run of [mistake, forever])
      expect(await asked({ ...around(run), timeoutMs: 100, onError: "continue" })).toMatchObject({
        status: 200,
        asked: 1,
        rows: ["unpriced"],
      });
  });

  it.each([
    ["record", (reply: UpstreamResponse) => reply.recordResponse(1_000)],
    ["settled", (reply: UpstreamResponse) => reply.whenSettled()],
  ])(
    "that waits for %s before it responds is aborted, and its call is billed",
    async (_what, wait) => {
      const hook: Hooks = {
        async attempt(_call, next) {
          const reply = await next();
          await wait(reply);
          return reply;
        },
      };
      expect(await asked({ ...hook, timeoutMs: 100 })).toMatchObject({
        status: 503,
        asked: 1,
        rows: ["estimated"],
      });
      expect(await asked({ ...hook, timeoutMs: 100, onError: "continue" })).toMatchObject({
        status: 200,
        rows: ["unpriced"],
      });
    },
  );

  it("passes the provider's failure on, also under on_error: continue", async () => {
    const hook: Hooks = { attempt: (_call, next) => next() };
    expect(await asked({ ...hook, onError: "continue" }, { upstream: 503 })).toMatchObject({
      status: 503,
      asked: 1,
      rows: ["void"],
    });
  });

  it("that continues too late sends no call", async () => {
    let late: Promise<unknown> | undefined;
    let over = Promise.withResolvers<void>();
    const hook: Hooks = {
      attempt: (_call, next) =>
        new Promise((_, reject) => {
          const wake = async () => {
            await over.promise;
            return next();
          };
          late = wake().catch((error: Error) => error.message);
          void late.then(reject);
        }),
    };
    for (const [onError, count] of [
      ["reject", 0],
      ["continue", 1],
    ] as const) {
      over = Promise.withResolvers();
      expect((await asked({ ...hook, timeoutMs: 100, onError })).asked).toBe(count);
      over.resolve();
      expect(await late).toMatch(/canceled/);
    }
  });
});

describe("an admit hook", () => {
  it("may wait for a slow client's body", async () => {
    await using up = await startBackend((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify(ANSWER));
    });
    const time = installTestClock();
    let read = false;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" as const }] },
      },
      hooks: [
        {
          admit: async (x) => ((read = (await x.readBody()).model === "p/m"), undefined),
          timeoutMs: 15_000,
        },
      ],
    });
    const body = new ReadableStream<Uint8Array>({
      async start(to) {
        to.enqueue(Buffer.from('{"model":"p/m",'));
        await turnEventLoop();
        time.skip(20_000);
        to.enqueue(Buffer.from('"text":"hi"}'));
        to.close();
      },
    });
    const res = await fetch(`${s.url}/toy`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer x" },
      body,
      duplex: "half",
    } as RequestInit);
    expect([res.status, read]).toEqual([200, true]);
  });

  it("is aborted if it hangs itself", async () =>
    expect(await asked({ admit: forever, timeoutMs: 100 })).toMatchObject({
      status: 503,
      asked: 0,
    }));
});

describe("a failure that is never skipped", () => {
  it.each([
    ["admit", 500],
    ["charge", 500],
    ["prepare", 500],
  ] as const)("%s", async (name, status) => {
    const hooks = { [name]: mistake, inspect() {} } as Hooks;
    expect(await asked({ ...hooks, onError: "continue" })).toMatchObject({ status, asked: 0 });
  });

  it("includes an event stage, which may have held back half", async () => {
    const hooks: Hooks = { event: () => mistake, inspect() {} };
    expect(await asked({ ...hooks, onError: "continue" })).toMatchObject({ status: 500 });
  });

  describe.each(["wire", "native"] as const)("an event stage of a %s endpoint", (way) => {
    const served = async (event: NonNullable<Hooks["event"]>, stream: boolean) => {
      await using up = await startBackend(
        (_req, res) => void res.end(`${JSON.stringify(ANSWER)}\n`),
      );
      const endpoint =
        way === "wire"
          ? { protocol: createToyProtocol(), base: up.base, auth: "none" as const }
          : {
              operation: "chat" as const,
              async *run(): AsyncGenerator<ModelEvent> {
                yield { type: "start" };
                yield { type: "open", index: 0, block: { type: "text" } };
                yield { type: "delta", index: 0, text: "Hello" };
                yield { type: "close", index: 0 };
                yield { type: "finish", reason: "stop" };
              },
            };
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: { endpoints: [endpoint] } },
        hooks: [{ event, timeoutMs: 400 }],
      });
      const res = await s.ask({ model: "p/m", text: "hi", stream });
      const text = await res.text();
      const rows = s.journal.filter((row) => row.do === "settle");
      return { status: res.status, text, rows, rests: s.house.targetHealth.describeCooldowns() };
    };

    it.each([false, true])("may emit the end later (stream: %s)", async (stream) => {
      const later: Hooks["event"] = (_call, next) => {
        const kept: ModelEvent[] = [];
        return (event) => {
          kept.push(event);
          if (event.type === "finish") setTimeout(() => kept.forEach(next), 50);
        };
      };
      const got = await served(later, stream);
      expect(got.status).toBe(200);
      expect(got.text).toContain("Hello");
      expect(got.rows).toHaveLength(1);
    });

    it.each([false, true])(
      "that holds everything back and stops is billed for it (stream: %s)",
      async (stream) => {
        const stopping: Hooks["event"] = (_call, _next, stop) => (event) => {
          if (event.type === "finish") stop({ kind: "content_policy", message: "Not this." });
        };
        const got = await served(stopping, stream);
        expect(got.status).toBe(400);
        const usage = way === "wire" ? ANSWER.usage : { output: 2 };
        expect(got.rows).toMatchObject([{ state: "estimated", usage }]);
      },
    );

    it.each([false, true])(
      "that never emits the end is aborted and billed, and the provider is not at fault (stream: %s)",
      async (stream) => {
        const got = await served(() => () => {}, stream);
        expect(got.status).toBe(503);
        expect(got.text).toContain("middleware.m0 exceeded its time limit (event)");
        expect(got.rows).toMatchObject([{ state: "estimated" }]);
        expect(got.rests).toEqual([]);
      },
    );
  });

  // A JavaScript author gets no compiler error. An unhandled rejection would end the process.
  describe.each([
    ["comes to its end later", () => turnEventLoop(1)],
    ["fails later", async () => mistake()],
  ] as const)("a promise where none is awaited, that %s", (_how, promise) => {
    const late = promise as never;
    it.each([
      ["charge", { charge: late }, 0],
      ["prepare", { prepare: late }, 0],
      ["making an event stage", { event: late }, 1],
      ["an event stage", { event: () => late }, 1],
      ["making a watcher", { watch: late }, 1],
      ["a watcher", { watch: () => late }, 1],
    ] as const)("%s", async (_name, hooks, sent) => {
      for (const stream of [false, true])
        expect(await asked(hooks as Hooks, { body: { stream } })).toMatchObject({
          status: 500,
          asked: sent,
        });
    });

    it("does not include a watcher with on_error: continue", async () => {
      for (const watch of [late, () => late])
        expect(await asked({ watch, onError: "continue" })).toMatchObject({ status: 200 });
    });

    it.each(["protocol", "endpoint"])(
      "includes the prepare hook of a provider's %s",
      async (whose) => {
        const protocol = createToyProtocol();
        const own = { ...protocol, client: { ...protocol.client!, prepare: late } };
        await using up = await startBackend((_req, res) => void res.end(JSON.stringify(ANSWER)));
        const endpoint = {
          protocol: whose === "protocol" ? own : protocol,
          base: up.base,
          auth: "none" as const,
          ...(whose === "endpoint" && { prepare: late }),
        };
        await using s = await startTestServices({
          frontend: createToyProtocol(),
          providers: { p: { endpoints: [endpoint] } },
        });
        expect((await s.ask({ model: "p/m", text: "hi" })).status).toBe(500);
        expect(up.asked).toEqual([]);
      },
    );
  });

  it("is reported to the operator if on_error: continue would have no effect", async () => {
    await expect(asked({ prepare() {}, onError: "continue" })).rejects.toThrow(
      /none of its hooks can be skipped.*rewrite, inspect, route, attempt, watch/,
    );
  });
});

it("a settle hook that hangs delays nothing beyond its timeout, and never the client", async () => {
  const got = await asked({ settle: forever, timeoutMs: 100 });
  expect(got).toMatchObject({ status: 200, rows: ["unpriced"] });
});

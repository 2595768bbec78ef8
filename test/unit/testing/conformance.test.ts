// The kit is only as good as what it catches: one correct plugin of each kind passes, and each of
// its mutants fails the check that is named for it.
import { createServer } from "node:net";
import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import {
  apiKeySchema,
  defineFrontend,
  defineMiddleware,
  defineObserver,
  defineProvider,
  fail,
  type Definition,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { conformanceChecks, type ConformanceOptions } from "tollgate/testing";

async function broken(definition: unknown, options: ConformanceOptions = {}): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of conformanceChecks(definition as Definition, options))
    await run().catch((error: Error) =>
      failed.push(`${name.split(": ").slice(1).join(": ")} | ${error.message}`),
    );
  return failed;
}

const CANARY = "canary-7f3a-secret";
// The upstream's response to its native endpoint is not recorded, and the report states that.
const keyed = {
  with: { region: "eu" },
  credential: { api_key: CANARY },
  recordings: false,
} as const;

const goodProvider = {
  api: 1,
  name: "acme",
  summary: "Acme's models",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    required: ["region"],
    properties: {
      region: { type: "string", enum: ["eu", "us"], description: "Where it runs" },
      retries: { type: "integer", default: 2, description: "How often it tries" },
    },
  },
  setup: ({ region }: { region: string }, ctx: any) => {
    ctx.log.info({ region }, "Ready.");
    ctx.runEvery(1000, () => {});
    return {
      endpoints: [
        {
          protocol: chatCompletions(),
          base: `https://${region}.acme.test/v1`,
          auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        },
        {
          operation: "chat",
          base: "https://native.acme.test",
          auth: { header: "x-key", field: "api_key" },
          async *run(request: unknown, call: any) {
            const body = JSON.stringify(request);
            const response = await call.fetch("/say", { method: "POST", body });
            if (!response.ok) fail("upstream", `Acme answered ${response.status}.`);
            const said = await response.text();
            yield { type: "start" };
            yield { type: "open", index: 0, block: { type: "text" } };
            yield { type: "delta", index: 0, text: said };
            yield { type: "close", index: 0 };
            yield { type: "finish", reason: "stop" };
          },
        },
      ],
      listModels: async (line: any) => {
        const response = await line.fetch("/models", { headers: { accept: "application/json" } });
        if (!response.ok) fail("upstream", `Acme answered ${response.status}.`);
        return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => ({
          model: id,
          operation: "chat",
        }));
      },
    };
  },
};
const provider = (change: (made: any) => unknown = () => {}, more: object = {}) => {
  const definition: any = { ...goodProvider, ...more };
  const { setup } = definition;
  definition.setup = async (options: any, ctx: any) => {
    const made = await setup(options, ctx);
    await change(made);
    return made;
  };
  return defineProvider(definition);
};

describe("a provider", () => {
  it(
    "without a defect passes",
    async () => expect(await broken(provider(), keyed)).toEqual([]),
    120_000,
  );

  const schema = (change: (properties: any) => object) => ({
    options: { ...goodProvider.options, properties: change(goodProvider.options.properties) },
  });
  it.each<[string, object, string]>([
    ["a name in capitals", { name: "Acme" }, "the definition is well-formed"],
    ["another api", { api: 2 }, "the definition is well-formed"],
    [
      "an open schema",
      { options: { ...goodProvider.options, additionalProperties: true } },
      "the schema is closed",
    ],
    [
      "a later draft's keyword",
      schema((p) => ({ ...p, region: { ...p.region, prefixItems: [] } })),
      "the schema is closed",
    ],
    [
      "an open object inside",
      schema((p) => ({
        ...p,
        more: {
          type: "object",
          properties: { a: { type: "string", description: "some a" } },
          description: "more",
        },
      })),
      "the schema is closed",
    ],
    [
      "an option nobody described",
      schema((p) => ({ ...p, mute: { type: "string" } })),
      "each property has a description",
    ],
    [
      "a secret that is not marked",
      schema((p) => ({ ...p, admin_token: { type: "string", description: "A token" } })),
      "secrets are marked",
    ],
    [
      "a default that is not valid",
      schema((p) => ({ ...p, retries: { ...p.retries, default: "two" } })),
      "defaults are valid",
    ],
    [
      "options that are not valid",
      schema((p) => ({ ...p, region: { ...p.region, enum: ["asia"] } })),
      "the given values are valid",
    ],
    [
      "a check that complains",
      { check: () => [{ path: "/region", message: "No." }] },
      "check() accepts",
    ],
  ])("is rejected with %s", async (_what, more, law) => {
    expect(
      (await broken(defineProvider({ ...goodProvider, ...more } as any), keyed)).join(),
    ).toContain(law);
  });

  it.each<[string, (made: any) => unknown, string]>([
    [
      "a base that is no address",
      (p) => (p.endpoints[0].base = "acme.test"),
      "endpoints are well-formed",
    ],
    [
      "auth by a field that is not there",
      (p) => (p.endpoints[0].auth.field = "token"),
      "endpoints are well-formed",
    ],
    [
      "a header in capitals",
      (p) => (p.endpoints[0].auth.header = "X-Key"),
      "endpoints are well-formed",
    ],
    [
      "a path that leaves the base",
      (p) => (p.endpoints[0].paths = { generate: "https://evil.test/" }),
      "requests contain the credential",
    ],
    [
      "a key in the body",
      (p) => (p.endpoints[0].prepare = (out: any) => out.set("key", CANARY)),
      "requests contain the credential",
    ],
    [
      "a key in the query",
      (p) => (p.endpoints[0].paths = { generate: `/chat?key=${CANARY}` }),
      "requests contain the credential",
    ],
    [
      "an endpoint that changes the call",
      (p) => (p.endpoints[0].prepare = (_o: any, call: any) => (call.model = "x")),
      "requests contain the credential",
    ],
    [
      "a token that is over in a word",
      (p) => (p.endpoints[0].auth = { sign: () => ({}), renewToken: () => "expired" }),
      "whether the token has expired",
    ],
    [
      "a token whose refusal must be JSON",
      (p) =>
        (p.endpoints[0].auth = {
          sign: () => ({}),
          renewToken: ({ body }: any) => JSON.parse(String(body)).error === "expired",
        }),
      "whether the token has expired",
    ],
    [
      "a list that ignores its signal",
      (p) => {
        p.listModels = (line: any) => line.fetch("/models", {}).catch(() => new Promise(() => {}));
      },
      "an abort ends",
    ],
    [
      "a run that goes on",
      (p) => {
        p.endpoints[1].run = async function* (_r: any, call: any) {
          await call.fetch("/say").catch(() => new Promise(() => {}));
          yield { type: "start" };
        };
      },
      "an abort ends",
    ],
    [
      "events out of their grammar",
      (p) => {
        p.endpoints[1].run = async function* () {
          yield { type: "start" };
          yield { type: "delta", index: 0, text: "x" };
        };
      },
      "native endpoints emit valid event streams",
    ],
    [
      "a usage that falls",
      (p) => {
        p.endpoints[1].run = async function* () {
          yield { type: "start" };
          yield { type: "usage", usage: { output: 5 } };
          yield { type: "usage", usage: { output: 4 } };
          yield { type: "finish", reason: "stop" };
        };
      },
      "native endpoints emit valid event streams",
    ],
    [
      "a key in an error",
      (p) => {
        p.listModels = async (line: any) => {
          await line.fetch("/models");
          throw new Error(`Cannot list with ${CANARY}`);
        };
      },
      "secrets do not appear in log lines",
    ],
  ])(
    "is rejected with %s",
    async (_what, change, law) => {
      expect((await broken(provider(change), keyed)).join()).toContain(law);
    },
    120_000,
  );

  it.each<[string, (options: any, ctx: any) => unknown, string]>([
    ["a timer", () => setInterval(() => {}, 1000), "dispose releases"],
    [
      "a timer that nobody waits for",
      () => setInterval(() => {}, 1000).unref(),
      "dispose releases",
    ],
    [
      "a server",
      () => new Promise<void>((r) => createServer().listen(0, () => r())),
      "dispose releases",
    ],
    ["a listener on the process", () => process.on("SIGUSR2", () => {}), "dispose releases"],
    [
      "a call upstream",
      (_o, ctx) => ctx.fetch("https://acme.test/models").catch(() => {}),
      "setup calls no upstream",
    ],
    [
      "a global",
      () => ((globalThis as any)[`acme${Math.random()}`] = 1),
      "setup calls no upstream",
    ],
    ["options that it changed", (o) => (o.region = "us"), "setup calls no upstream"],
    [
      "a key in the log",
      (_o, ctx) => ctx.log.info({ key: CANARY }, "Ready."),
      "secrets do not appear in log lines",
    ],
    [
      "a key in base64 in the log",
      (_o, ctx) => ctx.log.info({}, Buffer.from(CANARY).toString("base64")),
      "secrets do not appear in log lines",
    ],
    [
      "an undo that fails",
      (_o, ctx) =>
        ctx.onDispose(() => {
          throw new Error("No.");
        }),
      "two instances",
    ],
  ])(
    "is rejected with a setup that leaves %s",
    async (_what, act, law) => {
      const definition = defineProvider({
        ...goodProvider,
        setup: async (options: any, ctx: any) => {
          await act(options, ctx);
          return goodProvider.setup(options, ctx);
        },
      } as any);
      expect((await broken(definition, keyed)).join()).toContain(law);
      process.removeAllListeners("SIGUSR2");
    },
    120_000,
  );
});

describe("a frontend", () => {
  const frontend = (more: object) =>
    defineFrontend({
      api: 1,
      name: "acme",
      summary: "Acme's own API",
      setup: () => ({
        protocol: chatCompletions(),
        routes: [
          {
            method: "POST",
            path: "/acme/:model",
            actionType: "generate",
            readInput: (x: any) => ({ model: x.params.model }),
          },
        ],
        ...more,
      }),
    } as any);

  it("without a defect passes", async () => expect(await broken(frontend({}))).toEqual([]));

  it.each<[string, object, string]>([
    ["no routes", { routes: [] }, "routes are well-formed"],
    [
      "a path without its slash",
      { routes: [{ method: "POST", path: "acme", actionType: "generate" }] },
      "routes are well-formed",
    ],
    [
      "a route that is there twice",
      { routes: [{ method: "POST", path: ["/a/:x", "/a/:y"], actionType: "generate" }] },
      "routes are well-formed",
    ],
    ["no protocol to walk with", { protocol: undefined }, "routes are well-formed"],
    [
      "errors without words",
      { encodeFault: () => ({ body: { error: "no" } }) },
      "every error has a message",
    ],
    [
      "a foreign throw at a strange header",
      {
        extractCredential: () => {
          throw new TypeError("x");
        },
      },
      "credential extraction",
    ],
    [
      "a reading of nothing",
      {
        routes: [
          { method: "POST", path: "/a", actionType: "generate", readInput: () => ({ model: "" }) },
        ],
      },
      "readInput returns",
    ],
    [
      "a reading that changes the body",
      {
        routes: [
          {
            method: "POST",
            path: "/a",
            actionType: "generate",
            readInput: (_x: any, body: any) => {
              body.model = "x";
              return { model: "x" };
            },
          },
        ],
      },
      "readInput returns",
    ],
  ])("is rejected with %s", async (_what, more, law) =>
    expect((await broken(frontend(more))).join()).toContain(law),
  );
});

describe("a middleware", () => {
  /** A cache that stores values under a name. */
  const kept = new Map<unknown, unknown>();
  const shelf = async (next: any, name: () => unknown) => {
    if (kept.has(name())) return kept.get(name());
    const reply = await next();
    void reply.recordResponse(1_000).then((got: unknown) => got && kept.set(name(), got));
    return reply;
  };
  beforeEach(() => kept.clear());
  const middleware = (hooks: object) =>
    defineMiddleware({
      api: 1,
      name: "acme",
      summary: "Acme's way",
      sends: "nowhere",
      setup: () => hooks,
    } as any);
  const good = {
    admit: (x: any, credential: any) =>
      credential === "tg_nobody" ? x.identify({ id: "nobody" }) : fail("unauthenticated", "Who?"),
    rewrite: (request: any) => ({ ...request, user: "x" }),
    inspect: (request: any, x: any) => x.addLabel("operation", request.operation),
    watch: () => () => {},
    route: (list: any) => list.toReversed(),
    charge: () => ({ limits: [{ scope: "key", unit: "tokens", max: 5, per: "day" }] }),
    prepare: (out: any) => out.set("user", "x"),
    attempt: async (_call: any, next: any) => next(),
    event: (_call: any, next: any) => (e: any) => void setImmediate(() => next(e)),
    settle: async () => {},
  };

  it("without a defect passes", async () => expect(await broken(middleware(good))).toEqual([]));

  it.each<[string, object, string]>([
    ["a hook that is none", { admitt() {} }, "declares only known hooks"],
    [
      "a foreign throw in admit",
      {
        admit: () => {
          throw new Error("x");
        },
      },
      "admit:",
    ],
    [
      "a second identity",
      {
        admit: (x: any) => {
          x.identify({ id: "a" });
          x.identify({ id: "b" });
        },
      },
      "admit:",
    ],
    [
      "headers that it changed",
      {
        admit: (x: any) => {
          x.headers.seen = "1";
        },
      },
      "admit:",
    ],
    [
      "a request changed in place",
      {
        rewrite: (r: any) => {
          r.turns.push({ role: "user", blocks: [] });
          return r;
        },
      },
      "rewrite:",
    ],
    ["a request that lost parts", { rewrite: ({ rest: _rest, ...r }: any) => r }, "rewrite:"],
    [
      "a request that it changed while it looked",
      { inspect: (r: any) => void (r.turns = []) },
      "inspect:",
    ],
    ["a request that it gives back", { inspect: (r: any) => ({ ...r }) }, "inspect:"],
    ["a watcher that waits", { watch: () => async () => {} }, "watch:"],
    [
      "an event that a watcher changed",
      { watch: () => (e: any) => void (e.type === "delta" && (e.text = "")) },
      "watch:",
    ],
    [
      "a candidate of its own",
      { route: (list: any) => list.map((c: any) => ({ ...c })) },
      "route:",
    ],
    [
      "an exclusion without a reason",
      {
        route: (list: any) =>
          list.map((candidate: any) => ({ candidate, kind: "forbidden", code: "", message: "" })),
      },
      "route:",
    ],
    ["a charge that waits", { charge: async () => ({}) }, "charge:"],
    [
      "a negative limit",
      { charge: () => ({ limits: [{ scope: "a", unit: "tokens", max: -1, per: "day" }] }) },
      "charge:",
    ],
    ["a prepare that waits", { prepare: async () => {} }, "prepare:"],
    [
      "a retry of its own",
      { attempt: async (_c: any, next: any) => (await next(), next()) },
      "attempt:",
    ],
    [
      "a failure that it swallowed",
      {
        attempt: (_c: any, next: any) =>
          next().catch(() => ({
            contentType: "text/plain",
            body: Buffer.alloc(0),
            usage: {},
            model: "x",
          })),
      },
      "attempt:",
    ],
    [
      "one shelf for all keys",
      { attempt: (_c: any, next: any) => shelf(next, () => "all") },
      "shares no response between keys",
    ],
    [
      "a shelf for private requests too",
      { attempt: (c: any, next: any) => shelf(next, () => c.exchange.identity?.id) },
      "stores nothing of private requests",
    ],
    [
      "a stream without its end",
      { event: (_c: any, next: any) => (e: any) => void (e.type !== "close" && next(e)) },
      "event:",
    ],
    [
      "a stage that keeps what it does not know",
      {
        event: (_c: any, next: any) => (e: any) =>
          void (/start|open|delta|close|usage|finish/.test(e.type) && next(e)),
      },
      "event:",
    ],
    [
      "a watcher that fails at what it does not know",
      {
        watch: () => (e: any) =>
          void ({ start() {}, open() {}, delta() {}, close() {}, usage() {}, finish() {} } as any)[
            e.type
          ](),
      },
      "watch:",
    ],
    ["a stage that waits", { event: (_c: any, next: any) => async (e: any) => next(e) }, "event:"],
    [
      "a settle that fails for refused requests",
      { settle: (x: any) => void x.identity.id },
      "settle:",
    ],
  ])("is rejected with %s", async (_what, hooks, law) =>
    expect((await broken(middleware(hooks))).join()).toContain(law),
  );
});

describe("an import", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-import-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const plugin = defineMiddleware({
    api: 1,
    name: "x",
    summary: "x is fine",
    sends: "nowhere",
    setup: () => ({}),
  });
  const importing = async (code: string) => {
    const module = join(folder, `${Math.random()}.mjs`);
    writeFileSync(module, `${code}\nexport default { name: "x", setup: () => ({}) };`);
    return (await broken(plugin, { module })).join();
  };

  it("without side effects passes", async () => expect(await importing("const x = 1;")).toBe(""));
  it.each([
    ["prints", 'console.log("hi");', "prints"],
    ["keeps the loop alive", "setInterval(() => {}, 1000);", "open: Timeout"],
    ["touches globals", "globalThis.mine = 1;", "globalThis: mine"],
    ["listens to the process", 'process.on("exit", () => {});', "added listeners to process"],
    ["throws", 'throw new Error("No.");', "No."],
  ])("is rejected if it %s", async (_what, code, words) =>
    expect(await importing(code)).toContain(words),
  );
});

describe("an observer", () => {
  const observer = (made: object) =>
    defineObserver({
      api: 1,
      name: "acme",
      summary: "Acme's eye",
      sends: "nowhere",
      setup: () => made,
    } as any);

  it("without a defect passes", async () => {
    const counts = new Map<string, number>();
    const good = {
      onRequests: (batch: any) => {
        for (const { status } of batch) counts.set(status, (counts.get(status) ?? 0) + 1);
      },
      onEvent: async () => {},
    };
    expect(await broken(observer(good))).toEqual([]);
  });

  it.each<[string, object, string]>([
    ["changes a record", { onRequests: (batch: any) => (batch[0].status = 1) }, "onRequests:"],
    ["sorts what it was handed", { onRequests: (batch: any) => void batch.sort() }, "onRequests:"],
    [
      "expects a call in every request",
      { onRequests: (b: any) => b.map((r: any) => r.calls[0].n) },
      "onRequests:",
    ],
    [
      "expects a price",
      { onRequests: (b: any) => b.map((r: any) => r.calls[0]?.costNano.toString()) },
      "onRequests:",
    ],
    [
      "knows only some notices",
      { onEvent: (n: any) => ({ ledger: () => {} })[n.type as "ledger"]() },
      "onEvent:",
    ],
  ])("that %s is rejected", async (_what, made, law) =>
    expect((await broken(observer(made))).join()).toContain(law),
  );
});

describe("routes of a plugin other than a frontend", () => {
  const handle = () => ({ status: 200 });
  const of = (kind: string, route: object) => ({
    "~tollgate": kind,
    api: 1,
    name: "x",
    summary: "Serves",
    sends: "nowhere",
    setup: () => ({ routes: [{ method: "GET", path: "/x", handle, ...route }] }),
  });

  it.each(["middleware", "observer"])("of a %s: valid routes pass", async (kind) => {
    expect(await broken(of(kind, { role: "metrics" }))).toEqual([]);
  });

  it.each([
    ["middleware", { method: "get" }, /must be uppercase/],
    ["middleware", { path: ["/x", "/x"] }, /is declared twice/],
    ["middleware", { path: "x" }, /must start with a slash/],
    ["middleware", { handle: undefined }, /has no handler/],
    ["middleware", { listener: "private" }, /unknown listener private/],
    ["middleware", { allowUnauthenticated: true, role: "viewer" }, /must not be open/],
    ["observer", { listener: "public" }, /must not be on the public listener/],
  ])("of a %s: %o is rejected", async (kind, route, words) => {
    const failed = await broken(of(kind, route));
    expect(failed).toHaveLength(1);
    expect(failed[0]).toMatch(words);
  });
});

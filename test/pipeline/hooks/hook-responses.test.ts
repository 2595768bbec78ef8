// Responses that a hook returns in place of a provider: recorded ones, which must fit, and its own,
// which the host encodes in any protocol and bills at zero. Also limits and bill of a reply.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fail, collectResponse } from "tollgate/plugin";
import type {
  Call,
  CallRecord,
  SyntheticResponse,
  Hooks,
  Price,
  RateLimit,
  RecordedResponse,
  UpstreamResponse,
} from "tollgate/plugin";
import {
  createCallContext,
  decode,
  decodeWhole,
  jsonResponse,
  say,
  protocolAtPath,
  startUpstream,
} from "tollgate/testing";
import { parseRateLimits } from "../../../src/pipeline/faults/rate-limits.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { CLIENTS, TARGETS } from "../protocol-pairs.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const ANSWER = { id: "u", model: "m", say: "Hello", usage: { input: 3, output: 2 }, end: "stop" };
const price: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "2", per: 1_000_000 },
  ],
};
const answering = (headers: Record<string, string> = {}) =>
  startBackend((req, res) => {
    const stream = JSON.parse(req.body).stream === true;
    res.writeHead(200, {
      "content-type": stream ? "text/event-stream" : "application/json",
      ...headers,
    });
    res.end(`${JSON.stringify(ANSWER)}\n`);
  });
const provider = (base: string, protocol = createToyProtocol()) => ({
  endpoints: [{ protocol, base, auth: "none" as const }],
  facts: new Map([["m", { price }]]) as never,
});
const rows = (journal: readonly any[]) => journal.filter((row) => row.do !== "progress");

describe("a recorded answer", () => {
  const kept: RecordedResponse = {
    operation: "chat",
    protocol: "toy",
    stream: true,
    contentType: "text/event-stream; charset=utf-8",
    body: Buffer.from(`${JSON.stringify({ ...ANSWER, say: "Kept" })}\n`),
    usage: {},
    model: "p/m",
  };
  const asked = async (
    given: unknown,
    of: { stream?: boolean; identity?: TestServicesOptions["identity"]; around?: Hooks } = {},
  ) => {
    await using up = await answering();
    const hooks: TestServicesOptions["hooks"] = [
      ...(of.around ? [of.around] : []),
      { attempt: async () => given as RecordedResponse },
    ];
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: {
          ...provider(up.base),
          credentials: DECLARED,
          zdrAllowedFields: ["model", "text", "stream"],
        } as never,
      },
      hooks,
      ...(of.identity && { identity: of.identity }),
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: of.stream ?? true });
    const text = await res.text();
    const replayed = text.includes("Kept");
    return {
      status: res.status,
      text,
      replayed,
      asked: up.asked.length,
      rows: rows(s.journal),
      log: s.log,
    };
  };
  const DECLARED = [
    {
      name: "main",
      fields: {},
      weight: 1,
      models: undefined,
      zdr: { declared: true, until: "2099-01-01" },
    },
  ];

  it("that fits is returned, and neither a provider nor the ledger is called", async () =>
    expect(await asked(kept)).toMatchObject({ status: 200, replayed: true, asked: 0, rows: [] }));

  it("of another operation, protocol, or form is not returned: the provider is called, and this is logged", async () => {
    for (const other of [
      { operation: "image" },
      { protocol: "other" },
      { stream: false },
      { operation: undefined },
      { protocol: undefined, stream: undefined },
    ]) {
      const got = await asked({ ...kept, ...other });
      expect(got).toMatchObject({ status: 200, replayed: false, asked: 1 });
      expect(got.text).toContain("Hello");
      expect(got.log.filter(({ message }) => message.includes("not replayed"))).toHaveLength(1);
    }
    expect(await asked(kept, { stream: false })).toMatchObject({ replayed: false, asked: 1 });
  });

  it.each(["required", "strict"] as const)("is not returned under privacy: %s", async (privacy) => {
    const around: Hooks = { admit: (x) => x.requirePrivacy(privacy) };
    const got = await asked(kept, { around });
    expect(got, got.text).toMatchObject({ status: 200, replayed: false, asked: 1 });
    expect(got.log.filter(({ message }) => message.includes("not replayed"))).toHaveLength(1);
  });

  it("is like any other reply for the hooks around it", async () => {
    let seen: UpstreamResponse | undefined;
    let record: CallRecord | undefined;
    const around: Hooks = {
      async attempt(_call, next) {
        seen = await next();
        void seen.whenSettled().then((settled) => (record = settled));
        return seen;
      },
    };
    expect(await asked(kept, { around })).toMatchObject({ status: 200, replayed: true, asked: 0 });
    expect([seen!.status, seen!.headers, seen!.limits]).toEqual([200, {}, []]);
    expect(record).toMatchObject({ state: "void", costNano: 0n, usage: {} });
  });

  it.each([undefined, null, 7, {}, "text"])("a hook that returns %o has failed", async (given) =>
    expect(await asked(given)).toMatchObject({ status: 500, asked: 0, rows: [] }),
  );
});

const REFUSAL: SyntheticResponse = {
  response: {
    blocks: [{ type: "text", text: "I cannot help with that, café." }],
    finish: { type: "finish", reason: "stop" },
  },
};

describe("a hook's own response", () => {
  const clients = Object.keys(CLIENTS).filter((id) => id !== "images");
  const wishes = clients.flatMap((from) => [false, true].map((stream) => [from, stream] as const));

  it.each(wishes)(
    "is encoded for a client of %s, stream: %s, and billed at zero",
    async (from, stream) => {
      await using up = await startUpstream({
        "POST /*": (asked) =>
          protocolAtPath(asked.path)
            ? say("Hello").toResponse(asked)
            : jsonResponse({ error: { message: "no" } }, 400),
      });
      await using s = await startTestServices({
        frontend: CLIENTS[from]!.protocol,
        providers: {
          p: {
            endpoints: [{ protocol: TARGETS[from]!, base: `${up.url}/v1`, auth: "none" as const }],
          },
        },
        hooks: [{ attempt: async () => REFUSAL }],
      });
      const res = await s.ask({ model: "p/m", stream, ...CLIENTS[from]!.least });
      const body = Buffer.from(await res.arrayBuffer());
      expect(res.status, body.toString()).toBe(200);
      const client = TARGETS[from]!.client!;
      const answer = collectResponse(
        stream
          ? decode(client, [body], createCallContext())
          : decodeWhole(client, body, createCallContext()),
      );
      expect(answer.blocks).toMatchObject(REFUSAL.response.blocks);
      expect(answer.finish.reason).toBe("stop");
      expect(Object.values(answer.usage).filter((n) => n !== 0)).toEqual([]);
      expect(up.requests).toEqual([]);
      expect(rows(s.journal)).toMatchObject([
        { do: "reserve", holdNano: 0n, price: null },
        {
          do: "settle",
          state: "void",
          costNano: 0n,
          usage: {},
          outcome: "middleware",
          finish: "stop",
        },
      ]);
    },
  );

  const asked = async (of: {
    attempt: NonNullable<Hooks["attempt"]>;
    limits?: any;
    stream?: boolean;
    verdict?: TestServicesOptions["verdict"];
    around?: Hooks;
  }) => {
    await using up = await answering();
    const outcomes: any[] = [];
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base) },
      hooks: [
        { settle: (_x, outcome) => void outcomes.push(outcome) },
        ...(of.around ? [of.around] : []),
        { attempt: of.attempt },
      ],
      settling: turnEventLoop,
      ...(of.limits && { identity: { limits: of.limits } }),
      ...(of.verdict && { verdict: of.verdict }),
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: of.stream ?? false });
    const text = await res.text();
    const [settle] = s.journal.filter((row) => row.do === "settle");
    const durable = settle && "durable" in settle ? settle.durable : undefined;
    return {
      status: res.status,
      text,
      asked: up.asked.length,
      rows: rows(s.journal),
      durable,
      outcomes,
    };
  };

  it("uses one request and one slot of the limits, and no tokens or money", async () => {
    const limits = [
      { scope: "key:k", unit: "requests", max: 5, per: "minute" },
      { scope: "key:k", unit: "concurrent", max: 5, per: "open" },
      { scope: "key:k", unit: "tokens", max: 5, per: "minute" },
      { scope: "key:k", unit: "nano_usd", max: 5n, per: "day" },
    ];
    const got = await asked({ attempt: async () => REFUSAL, limits });
    expect(got.rows[0].claims.map(({ unit, take }: any) => [unit, take])).toEqual([
      ["requests", 1n],
      ["concurrent", 1n],
    ]);
    expect(got.durable).toBe(true);
    expect(got.outcomes).toMatchObject([
      { status: 200, cached: false, finish: "stop", calls: [{ state: "void", costNano: 0n }] },
    ]);
  });

  it("is not returned to a client whose request limit is reached", async () => {
    const denied = {
      scope: "key:k",
      unit: "requests",
      max: 1,
      per: "minute",
      remaining: 0,
      resetsAt: 1e12,
    };
    const got = await asked({
      attempt: async () => REFUSAL,
      limits: [{ scope: "key:k", unit: "requests", max: 1, per: "minute" }],
      verdict: () => ({ ok: false, denied, retryAfterMs: 1_000 }) as never,
    });
    expect(got).toMatchObject({ status: 429 });
    expect(got.text).not.toContain("I cannot help");
  });

  it("ends a call in progress, which is billed for what was received", async () => {
    for (const stream of [false, true]) {
      const got = await asked({ attempt: async (_call, next) => (await next(), REFUSAL), stream });
      expect(got.text).toContain("I cannot help with that, café.");
      expect(got.text).not.toContain("Hello");
      expect(got.rows).toMatchObject([{ do: "reserve" }, { do: "settle", state: "estimated" }]);
      expect(got.rows[1].costNano).toBeGreaterThan(0n);
      expect(JSON.parse(got.text.trim().split("\n").at(-1)!).usage).toMatchObject(
        got.rows[1].usage,
      );
    }
  });

  it("is like any other reply for the hooks around it", async () => {
    const seen: CallRecord[] = [];
    const around: Hooks = {
      async attempt(_call, next) {
        const reply = await next();
        void reply.whenSettled().then((record) => seen.push(record));
        return reply.status === 200 ? reply : fail("internal", "no status");
      },
    };
    expect(await asked({ attempt: async () => REFUSAL, around })).toMatchObject({
      status: 200,
      asked: 0,
    });
    expect(seen).toMatchObject([{ state: "void", costNano: 0n }]);
  });

  it("that is invalid is the hook's error, and is reported as one", async () => {
    const attempt = async (): Promise<SyntheticResponse> => ({
      response: {
        blocks: [{ type: "result", callId: "c", blocks: [], isError: false }],
        finish: { type: "finish", reason: "stop" },
      },
    });
    expect(await asked({ attempt, stream: true })).toMatchObject({ status: 500 });
  });
});

describe("the settlement of a reply", () => {
  const asked = async (of: {
    protocol: ReturnType<typeof createToyProtocol>;
    stream: boolean;
    body?: string;
    hook?: Hooks;
  }) => {
    const seen: CallRecord[] = [];
    let durable: unknown;
    await using up = await startBackend((req, res) => {
      const stream = JSON.parse(req.body).stream === true;
      res.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      res.end(of.body ?? `${JSON.stringify(ANSWER)}\n`);
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base, of.protocol) },
      settling: turnEventLoop,
      hooks: [
        ...(of.hook ? [of.hook] : []),
        {
          async attempt(_call: Call, next) {
            const reply = await next();
            void reply.whenSettled().then((record) => {
              durable = s.journal.find((row) => row.do === "settle")?.durable;
              return seen.push(record);
            });
            return reply;
          },
        },
      ],
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: of.stream });
    await res.text();
    await until(() => seen.length > 0);
    await turnEventLoop();
    return { seen, durable, settle: s.journal.find((row) => row.do === "settle") as any };
  };

  it.each([
    ["passthrough", false],
    ["passthrough", true],
    ["translated", false],
    ["translated", true],
  ] as const)("equals the ledger, %s, stream: %s", async (lane, stream) => {
    const protocol = createToyProtocol(lane === "passthrough" ? "toy" : "other");
    const { seen, durable, settle } = await asked({ protocol, stream });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      state: "exact",
      usage: { input: 3, output: 2 },
      costNano: 7_000n,
    });
    expect(seen[0]).toMatchObject({
      state: settle.state,
      usage: settle.usage,
      costNano: settle.costNano,
    });
    expect(durable).toBe(true);
  });

  it("is reported once, also for a failure", async () => {
    const cut = await asked({
      protocol: createToyProtocol(),
      stream: true,
      body: '{"id":"u"}\n{"say":"Hel"}\n',
    });
    expect(cut.seen).toMatchObject([{ state: "estimated", fault: { kind: "upstream" } }]);
    const refused = await asked({
      protocol: createToyProtocol(),
      stream: false,
      hook: { attempt: async (_call, next) => (await next(), fail("forbidden", "No.")) },
    });
    expect(refused.seen).toMatchObject([{ state: "estimated", fault: { kind: "forbidden" } }]);
  });
});

describe("the limits of a reply", () => {
  it("are the gateway's after the reserve, and the provider's from its headers", async () => {
    const state = {
      scope: "key:k",
      unit: "requests",
      max: 10,
      per: "minute",
      remaining: 9,
      resetsAt: 1_900_000_000_000,
    } as const;
    let limits: readonly RateLimit[] = [];
    await using up = await answering({
      "x-ratelimit-limit-tokens": "1000",
      "x-ratelimit-remaining-tokens": "990",
      "x-ratelimit-reset-tokens": "6m0s",
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base) },
      verdict: () => ({ ok: true, limits: [state] }),
      hooks: [
        {
          async attempt(call, next) {
            const reply = await next();
            limits = reply.limits;
            for (const { source, unit, remaining } of limits)
              if (source === "gateway")
                call.exchange.setResponseHeader(`ratelimit-${unit}`, String(remaining));
            return reply;
          },
        },
      ],
    });
    const res = await s.ask({ model: "p/m", text: "hi" });
    expect(res.headers.get("ratelimit-requests")).toBe("9");
    expect(limits).toMatchObject([
      { ...state, source: "gateway" },
      { source: "provider", unit: "tokens", remaining: 990, max: 1000 },
    ]);
    expect(limits[1]!.resetsAt).toBeGreaterThan(0);
  });

  const NOW = 1_800_000_000_000;
  it.each<[string, Record<string, string>, object[]]>([
    [
      "spans",
      {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1m30.5s",
      },
      [{ source: "provider", unit: "requests", remaining: 59, max: 60, resetsAt: NOW + 90_500 }],
    ],
    [
      "dates, the unit first",
      {
        "acme-ratelimit-input-tokens-limit": "100",
        "acme-ratelimit-input-tokens-remaining": "7",
        "acme-ratelimit-input-tokens-reset": "2027-01-15T08:00:01Z",
        "acme-ratelimit-output-tokens-remaining": "8",
      },
      [
        {
          source: "provider",
          unit: "input",
          remaining: 7,
          max: 100,
          resetsAt: Date.parse("2027-01-15T08:00:01Z"),
        },
        { source: "provider", unit: "output", remaining: 8, max: undefined, resetsAt: undefined },
      ],
    ],
    [
      "seconds, and moments",
      {
        "ratelimit-remaining": "3",
        "ratelimit-reset": "20",
        "x-ratelimit-remaining-tokens": "1",
        "x-ratelimit-reset-tokens": "1800000007",
      },
      [
        {
          source: "provider",
          unit: "requests",
          remaining: 3,
          max: undefined,
          resetsAt: NOW + 20_000,
        },
        { source: "provider", unit: "tokens", remaining: 1, max: undefined, resetsAt: NOW + 7_000 },
      ],
    ],
    [
      "what is no count",
      { "x-ratelimit-remaining-requests": "-1", "x-ratelimit-remaining-tokens": "1e9" },
      [],
    ],
    [
      "units that are not ours",
      { "x-ratelimit-remaining-requests-day": "5", "x-ratelimit-remaining-constructor": "5" },
      [],
    ],
    ["limits of which nothing is left to say", { "x-ratelimit-limit-requests": "60" }, []],
    ["an endless value", { "x-ratelimit-remaining-requests": "1".repeat(100) }, []],
  ])("parse %s", (_what, headers, expected) =>
    expect(parseRateLimits(headers, NOW)).toEqual(expected),
  );

  it("never throw, whatever the headers contain", () => {
    const name = fc.stringMatching(/^(x-|a-)?ratelimit-[a-z-]{0,20}$/);
    fc.assert(
      fc.property(fc.dictionary(name, fc.string()), (headers) => {
        for (const { remaining, max, resetsAt } of parseRateLimits(headers, NOW)) {
          expect(Number.isSafeInteger(remaining)).toBe(true);
          expect(max === undefined || Number.isSafeInteger(max)).toBe(true);
          expect(resetsAt === undefined || Number.isFinite(resetsAt)).toBe(true);
        }
      }),
    );
  });
});

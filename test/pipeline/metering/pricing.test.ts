// The price of a call: by the time of its reserve, and by the terms that upstream reports, or else
// the requested ones.
import { describe, expect, it } from "vitest";
import {
  chatOperation,
  fail,
  imageOperation,
  type ErrorKind,
  type Hooks,
  type ModelEvent,
  type Price,
  type Reserve,
  type Settle,
  type UsageReport,
  type OperationSpec,
} from "tollgate/plugin";
import { ERRORS } from "../../../src/model/error.ts";
import { priceHash } from "../../../src/money/price.ts";
import { until } from "../../kit/wait.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const price: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "10", per: 1_000_000 },
  ],
  tiers: { flex: [{ unit: "output", usd: "5", per: 1_000_000 }] },
  multipliers: [{ when: { speed: "fast" }, by: "6" }],
};

/** An image is priced by its size and quality. */
const pictures: Price = {
  lines: [
    { unit: "images", usd: "0.04", per: 1, variant: { quality: "low" } },
    { unit: "images", usd: "0.17", per: 1, variant: { quality: "high", size: "1024x1024" } },
  ],
};

const speaking = (survey: object, seen: Partial<UsageReport>, of: Price = price) => {
  const protocol = createToyProtocol();
  return {
    frontend: {
      ...protocol,
      server: { ...protocol.server!, analyze: () => ({ features: [], ...survey }) },
    },
    providers: {
      p: {
        facts: new Map([["m", { price: of }]]) as never,
        endpoints: [
          {
            operation: "chat" as const,
            async *run(): AsyncGenerator<ModelEvent> {
              yield { type: "start", id: "u1" };
              yield { type: "open", index: 0, block: { type: "text" } };
              yield { type: "delta", index: 0, text: "Hello" };
              yield { type: "close", index: 0 };
              if (seen.usage) yield { ...seen, type: "usage", usage: seen.usage };
              yield { type: "finish", reason: "stop" };
            },
          },
        ],
      },
    },
  };
};

async function billed(
  survey: object,
  seen: Partial<UsageReport>,
  of?: Price,
  kind: "chat" | "image" = "chat",
) {
  const told = speaking(survey, seen, of);
  if (kind === "image") {
    Object.assign(told.frontend, { operationSpec: imageOperation });
    Object.assign(told.providers.p.endpoints[0]!, { operation: kind });
    told.providers.p.facts = new Map([["m", { operation: kind, price: of }]]) as never;
  }
  await using s = await startTestServices(told);
  await (await s.ask({ model: "p/m", text: "hi" })).text();
  const reserve = s.journal.find((c) => c.do === "reserve") as Reserve & { at: number };
  const settle = s.journal.find((c) => c.do === "settle") as Settle;
  return { reserve, settle };
}

describe("a call is priced", () => {
  const usage = { input: 1000, output: 100 };
  it.each([
    ["plainly", {}, {}, 2_000_000n],
    ["by the tier that upstream reports", {}, { tier: "flex" }, 1_500_000n],
    ["by the tier that was asked for, where it reports none", { tier: "flex" }, {}, 1_500_000n],
    ["by the report where the two differ", { tier: "flex" }, { tier: "default" }, 2_000_000n],
    [
      "with the facts that upstream reports",
      {},
      { pricingAttributes: { speed: "fast" } },
      12_000_000n,
    ],
    [
      "with the facts that were asked for",
      { pricingAttributes: { speed: "fast" } },
      {},
      12_000_000n,
    ],
    [
      "without the asked facts that it denies",
      { pricingAttributes: { speed: "fast" } },
      { pricingAttributes: { speed: "standard" } },
      2_000_000n,
    ],
  ])("%s", async (_how, survey, seen, nano) => {
    const { settle, reserve } = await billed(survey, { usage, ...seen });
    expect(settle).toMatchObject({ state: "exact", costNano: nano, usage });
    expect(reserve.price).toBe(priceHash(price));
  });

  it.each([10n ** 30n, -1n])(
    "an upstream amount of %d is ignored, because no ledger would accept it",
    async (costNano) => {
      const { settle } = await billed({}, { usage, costNano });
      expect(settle).toMatchObject({ state: "exact", costNano: 2_000_000n });
      expect(settle.upstreamCostNano).toBeUndefined();
    },
  );

  it("as an estimate at the highest rates if the upstream bills a tier without a price", async () => {
    const { settle } = await billed({}, { usage, tier: "lightning" });
    expect(settle).toMatchObject({ state: "estimated", costNano: 2_000_000n });
  });

  it.each([
    ["searches", { searches: 2 }],
    ["cached tokens", { cache_read: 500 }],
    ["cache writes", { cache_write_30m: 500 }],
    ["audio", { audio_in: 5, audio_out: 5 }],
    ["pictures", { image_out: 5 }],
    ["code", { code_sessions: 1 }],
  ])("for units with a price, and %s without a price as an estimate", async (_what, more) => {
    const { settle } = await billed({}, { usage: { ...usage, ...more } });
    expect(settle).toMatchObject({ state: "estimated", usage: { ...usage, ...more } });
    expect(settle.costNano).toBeGreaterThan(2_000_000n);
  });

  it("by the size and quality of an image", async () => {
    const asked = { size: "1024x1024", quality: "high" };
    expect((await billed(asked, { usage: { images: 2 } }, pictures)).settle.costNano).toBe(
      340_000_000n,
    );
    const made = { usage: { images: 2 }, quality: "low" };
    expect((await billed(asked, made, pictures)).settle.costNano).toBe(80_000_000n);
  });

  it("by the day of its reserve, however late it is settled", async () => {
    const today = new Date().toISOString().slice(0, 10);
    const dated: Price = { ...price, until: today, otherwise: { lines: [] } };
    const { settle, reserve } = await billed({}, { usage }, dated);
    expect(settle).toMatchObject({ state: "exact", costNano: 2_000_000n });
    expect(new Date(reserve.at).toISOString().slice(0, 10)).toBe(today);
  });

  it("and reserved with the same terms", async () => {
    const plain = (await billed({ maxOutput: 100 }, { usage })).reserve.holdNano!;
    const fast = { maxOutput: 100, pricingAttributes: { speed: "fast" } };
    expect((await billed(fast, { usage })).reserve.holdNano).toBe(plain * 6n);
    const other = { maxOutput: 100, tier: "lightning" };
    expect((await billed(other, { usage })).reserve.holdNano).toBe(plain);
  });

  it("with what a frontend adds for the client, and the maximum that an earlier response may contain", async () => {
    const heldOf = async (survey: object, read?: object) => {
      const told = speaking({ maxOutput: 1, ...survey }, { usage });
      told.providers.p.facts = new Map([["m", { price, limits: { context: 50_000 } }]]) as never;
      await using s = await startTestServices({ ...told, ...read });
      await (await s.ask({ model: "p/m", text: "hi" })).text();
      return (s.journal.find((c) => c.do === "reserve") as Reserve).holdNano!;
    };
    const plain = await heldOf({});
    const edits = { text: "x".repeat(30_000) };
    const grown = await heldOf({}, { read: async () => ({ model: "p/m", edits }) });
    expect(grown - plain).toBeGreaterThanOrEqual(10_000_000n);
    const continued = await heldOf({ features: ["state.previous_response_id"] });
    expect(continued).toBe(50_000_000n + 10_000n);
  });

  it("with the model's full input reserved for non-text, and an expected count per item", async () => {
    const heldOf = async (survey: object, hold: "hard" | "expected") => {
      const told = speaking({ maxOutput: 1, ...survey }, { usage });
      told.providers.p.facts = new Map([["m", { price, limits: { context: 50_000 } }]]) as never;
      const limit = { scope: "key", unit: "nano_usd", max: 10n ** 15n, per: "day" } as const;
      const hooks = [{ charge: () => ({ hold, limits: [limit] }) }];
      await using s = await startTestServices({ ...told, hooks });
      await (await s.ask({ model: "p/m", text: "hi" })).text();
      return (s.journal.find((c) => c.do === "reserve") as Reserve).claims[0]!.take;
    };
    const media = { media: { count: 1, bytes: 40 } };
    expect(await heldOf(media, "hard")).toBe(50_000_000n + 10_000n);
    const expected = (await heldOf(media, "expected")) - (await heldOf({}, "expected"));
    // 1,600 tokens for the image, whose bytes are no text.
    expect(expected).toBeGreaterThan(1_580_000n);
    expect(expected).toBeLessThan(1_600_000n);
  });

  it("and by its text without a usage report", async () => {
    const { settle } = await billed({}, {});
    expect(settle).toMatchObject({ state: "estimated", usage: { output: 2 } });
  });
});

it("an expected reservation learns a key's usual usage", async () => {
  await using s = await startTestServices({
    ...speaking({}, { usage: { input: 10, output: 5_000 } }),
    hooks: [
      {
        charge: () => ({
          hold: "expected",
          limits: [{ scope: "key", unit: "nano_usd", max: 10n ** 12n, per: "day" }],
        }),
      },
    ],
  });
  for (let i = 0; i < 10; i++) await (await s.ask({ model: "p/m", text: "hi" })).text();
  const taken = s.journal
    .filter((c) => c.do === "reserve")
    .map((c) => (c as Reserve).claims.find(({ unit }) => unit === "nano_usd")!.take);
  // At first the minimum, and then the actual size.
  expect(taken[0]).toBeLessThan(11_000_000n);
  expect(taken.at(-1)).toBeGreaterThan(50_000_000n);
});

describe("an image of unknown size", () => {
  it("is reserved at the highest price, and estimated at it if the upstream reports none", async () => {
    const { reserve, settle } = await billed({ n: 2 }, { usage: { images: 2 } }, pictures, "image");
    expect(reserve.holdNano).toBe(340_000_000n);
    expect(settle).toMatchObject({ state: "estimated", costNano: 340_000_000n });
  });

  it("is billed by its actual size", async () => {
    const made = { usage: { images: 2 }, quality: "low" };
    const { settle } = await billed({}, made, pictures, "image");
    expect(settle).toMatchObject({ state: "exact", costNano: 80_000_000n });
  });
});

describe("a bill in parts", () => {
  const dear: Price = {
    lines: [
      { unit: "input", usd: "15.01", per: 1_000_000 },
      { unit: "output", usd: "75.003", per: 1_000_000 },
    ],
    tiers: { flex: [{ unit: "output", usd: "37.5", per: 1_000_000 }] },
  };
  const parted = async (seen: readonly Partial<UsageReport>[]) => {
    const { frontend, providers } = speaking({}, {});
    providers.p.facts = new Map<string, object>([
      ["m", { price }],
      ["other", { price: dear }],
      ["nameless", {}],
    ]) as never;
    providers.p.endpoints[0]!.run = async function* () {
      yield { type: "start", id: "u1" };
      for (const one of seen) yield { usage: {}, ...one, type: "usage" };
      yield { type: "finish", reason: "stop" };
    };
    await using s = await startTestServices({ frontend, providers });
    await (await s.ask({ model: "p/m", text: "hi" })).text();
    return s.journal.find((c) => c.do === "settle") as Settle;
  };
  const usage = { input: 1_001, output: 101 };

  it("charges each model's part at that model's price, to the nano-dollar", async () => {
    const settle = await parted([
      { usage, model: "m" },
      { usage, model: "other" },
    ]);
    // 1,001 × 1 + 101 × 10 micro-dollars, and 1,001 × 15.01 + 101 × 75.003.
    expect(settle).toMatchObject({ state: "exact", costNano: 2_011_000n + 22_600_313n });
    expect(settle.parts).toEqual([
      expect.objectContaining({ model: "m", price: priceHash(price), costNano: 2_011_000n }),
      expect.objectContaining({ model: "other", price: priceHash(dear), costNano: 22_600_313n }),
    ]);
  });

  it("and at that part's tier", async () => {
    const settle = await parted([
      { usage, model: "m", tier: "flex" },
      { usage, model: "other-20260528", tier: "flex" },
    ]);
    expect(settle.costNano).toBe(1_001_000n + 505_000n + 15_025_010n + 3_787_500n);
  });

  it("reports the part whose model has no price, and estimates it at the price of the others", async () => {
    for (const model of ["nameless", "unheard-of"]) {
      const settle = await parted([
        { usage, model: "other" },
        { usage, model },
      ]);
      expect(settle).toMatchObject({ state: "estimated", costNano: 2n * 22_600_313n });
      expect(settle.parts?.[1]).toMatchObject({ model, price: null, costNano: 22_600_313n });
    }
  });
});

describe("the unseen part of a truncated response", () => {
  /** The client disconnects after the first word. */
  async function left(of: {
    can?: object;
    stream?: boolean;
    max?: number;
    priced?: Price;
    reports?: UsageReport["usage"];
  }) {
    const { frontend, providers } = speaking({ maxOutput: of.max }, {});
    const said = Promise.withResolvers<void>();
    providers.p.facts = new Map([["m", { price: of.priced ?? price, can: of.can }]]) as never;
    providers.p.endpoints[0]!.run = async function* (_r?: unknown, call?: { signal: AbortSignal }) {
      yield { type: "start", id: "u1" };
      if (of.reports) yield { type: "usage", usage: of.reports };
      yield { type: "open", index: 0, block: { type: "text" } };
      yield { type: "delta", index: 0, text: "Hel" };
      said.resolve();
      await new Promise((_, reject) => call!.signal.addEventListener("abort", reject));
    } as never;
    await using s = await startTestServices({ frontend, providers });
    const away = new AbortController();
    const asked = s
      .ask({ model: "p/m", text: "hi", stream: of.stream ?? true }, { signal: away.signal })
      .then((res) => res.text())
      .catch(() => {});
    await said.promise;
    away.abort();
    await asked;
    const find = <D extends "settle" | "reserve">(kind: D) => s.journal.find((c) => c.do === kind);
    await until(() => find("settle") !== undefined);
    return {
      reserve: find("reserve") as Reserve,
      settle: find("settle") as Settle,
    };
  }

  it("is nothing for a model without reasoning: what was sent is billed", async () => {
    const { settle } = await left({ can: { reasoning: false }, max: 50 });
    expect(settle).toMatchObject({ state: "estimated", usage: { output: 1 } });
    expect(settle.costNano).toBe(BigInt(settle.usage.input!) * 1_000n + 10_000n);
  });

  it.each([
    ["thought, where the model may think", { max: 50 }],
    ["thought, where it is known to", { max: 50, can: { reasoning: true } }],
    [
      "all of it, where it was to come whole",
      { max: 50, stream: false, can: { reasoning: false } },
    ],
  ])("is %s: up to the request's limit", async (_what, of) => {
    const { settle, reserve } = await left(of);
    expect(settle).toMatchObject({ state: "estimated", usage: { output: 1 } });
    expect(settle.costNano).toBe(reserve.holdNano);
  });

  it("is at most what the model can produce in that time", async () => {
    const { settle, reserve } = await left({ max: 1_000_000 });
    expect(settle.costNano).toBeGreaterThan(2_000n * 10_000n);
    expect(settle.costNano).toBeLessThan(reserve.holdNano! / 10n);
  });

  it("is priced as reasoning if that is more expensive", async () => {
    const reasoning = { unit: "reasoning", usd: "20", per: 1_000_000 } as const;
    const priced: Price = { lines: [...price.lines, reasoning] };
    const { settle } = await left({ max: 50, priced, reports: { input: 1_000 } });
    // 1,000 read, the received word, and 49 of reasoning.
    expect(settle.costNano).toBe(1_000_000n + 10_000n + 49n * 20_000n);
  });

  it("is the maximum that may follow, if the provider bills the rest anyway", async () => {
    const { frontend, providers } = speaking({ maxOutput: 50 }, {});
    Object.assign(providers.p, { onDisconnect: "drain" });
    providers.p.facts = new Map([["m", { price, can: { reasoning: false } }]]) as never;
    providers.p.endpoints[0]!.run = async function* () {
      yield { type: "start", id: "u1" };
      yield { type: "open", index: 0, block: { type: "text" } };
      yield { type: "delta", index: 0, text: "Hel" };
      throw new Error("cut");
    } as never;
    await using s = await startTestServices({ frontend, providers });
    await (await s.ask({ model: "p/m", text: "hi", stream: true })).text();
    const reserve = s.journal.find((c) => c.do === "reserve") as Reserve;
    const settle = s.journal.find((c) => c.do === "settle") as Settle;
    expect(settle.costNano).toBe(reserve.holdNano);
  });
});

describe("a hook's change of a response does not change the upstream bill", () => {
  const spoken = '{"id":"u1"}\n{"say":"Hello"}\n{"usage":{"input":9,"output":2},"end":"stop"}\n';
  const settledAs = async (status: number, attempt: NonNullable<Hooks["attempt"]>) => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(status, { "content-type": "text/event-stream" });
      res.end(spoken);
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: {
          endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" }],
          facts: new Map([["m", { price }]]) as never,
        },
      },
      hooks: [{ attempt }],
    });
    await (await s.ask({ model: "p/m", text: "hi", stream: true })).text();
    return s.journal.filter((c) => c.do === "settle");
  };
  const recorded = {
    operation: "chat",
    protocol: "toy",
    stream: true,
    contentType: "text/event-stream; charset=utf-8",
    body: Buffer.from(spoken),
    usage: {},
    model: "m",
  } as const;
  const HOOKS: readonly [string, NonNullable<Hooks["attempt"]>][] = [
    ...(Object.keys(ERRORS) as ErrorKind[]).map((kind): [string, NonNullable<Hooks["attempt"]>] => [
      `fails with ${kind}`,
      async (_call, next) => (await next(), fail(kind, "no")),
    ]),
    ["throws", async (_call, next) => (await next(), Promise.reject(new Error("no")))],
    ["gives a recording", async (_call, next) => (await next(), recorded)],
    [
      "answers itself",
      async (_call, next) => (
        await next(),
        { response: { blocks: [], finish: { type: "finish", reason: "stop" } } }
      ),
    ],
  ];

  it.each(HOOKS)("if it %s after the upstream accepted the work", async (_how, attempt) => {
    const settles = await settledAs(200, attempt);
    expect(settles).toHaveLength(1);
    expect(settles[0]).toMatchObject({ state: "estimated" });
    expect(settles[0]!.costNano).toBeGreaterThan(0n);
  });

  it.each(HOOKS)(
    "and nothing is billed if it %s and the upstream had rejected",
    async (_how, attempt) => {
      expect(await settledAs(503, attempt)).toMatchObject([{ state: "void", costNano: 0n }]);
    },
  );
});

it("a cost that the request alone determines is reserved and billed exactly, and a report of the same unit has priority", async () => {
  const searched = async (seen: Partial<UsageReport>) => {
    const price: Price = { lines: [{ unit: "searches", usd: "0.002", per: 1 }] };
    const told = speaking({ exactUsage: { searches: 3, characters: 9 } }, seen, price);
    const work: OperationSpec<"chat"> = {
      ...chatOperation,
      generatesTokens: false,
      completeUnitSets: [["searches"]],
      estimateUsage: ({ exactUsage }) => [
        [{ units: ["searches"], count: exactUsage.searches ?? 1 }],
      ],
    };
    Object.assign(told.frontend, { operationSpec: work });
    await using s = await startTestServices(told);
    await (await s.ask({ model: "p/m", text: "hi" })).text();
    const reserve = s.journal.find((c) => c.do === "reserve") as Reserve;
    return { held: reserve.holdNano, settle: s.journal.find((c) => c.do === "settle") as Settle };
  };
  expect(await searched({})).toMatchObject({
    held: 6_000_000n,
    settle: { state: "exact", usage: { searches: 3 }, costNano: 6_000_000n },
  });
  expect(await searched({ usage: { searches: 1 } })).toMatchObject({
    settle: { state: "exact", usage: { searches: 1 }, costNano: 2_000_000n },
  });
});

// Each strategy in the gateway: the order of requests, the effect of a cooldown, the final order of
// a route hook, and free models.
import { createCallFacts } from "../../kit/call-facts.ts";
import { describe, expect, it } from "vitest";
import type { Hooks } from "tollgate/plugin";
import { explainRoute } from "../../../src/pipeline/explain.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const perMillion = (usd: string) => ({
  price: {
    lines: [
      { unit: "input", usd, per: 1_000_000 },
      { unit: "output", usd, per: 1_000_000 },
    ],
  },
});

async function stage(of: {
  readonly pick: NonNullable<TestServicesOptions["pick"]>;
  readonly weights?: Record<string, number>;
  readonly prices?: Record<string, string | undefined>;
  /** Current state of each. */
  readonly slow?: { [provider: string]: number };
  readonly hooks?: Hooks[];
}) {
  const up = await startBackend((req, res) => {
    const name = req.url!.split("/")[1]!;
    setTimeout(() => {
      res.writeHead(200, { "content-type": "application/json" });
      res.end(`{"say":"${name}","end":"stop","usage":{"input":1,"output":1}}`);
    }, of.slow?.[name] ?? 0);
  });
  const provider = (name: string) => ({
    endpoints: [
      { protocol: createToyProtocol(), base: `${up.base}/${name}`, auth: "none" as const },
    ],
    ...(of.prices?.[name] !== undefined && {
      facts: new Map([["m", perMillion(of.prices[name])]]) as never,
    }),
  });
  const s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { a: provider("a"), b: provider("b"), c: provider("c") },
    models: { any: ["a/m", "b/m", "c/m"] },
    pick: of.pick,
    ...(of.weights && { weights: of.weights }),
    ...(of.hooks && { hooks: of.hooks }),
  });
  const ask = async () =>
    ((await (await s.ask({ model: "any", text: "hi" })).json()) as { say: string }).say;
  const limit = (name: string) => {
    const [one] = s.built.gen.resolver
      .resolve(s.built.frontends[0]!, `${name}/m`, false)
      .candidates.values();
    s.house.targetHealth.recordFailure(
      one!,
      { kind: "rate_limited", message: "Busy.", retryAfterMs: 60_000 },
      createCallFacts(),
    );
  };
  return {
    s,
    ask,
    limit,
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

describe("a routing strategy", () => {
  it("cheapest: the lowest price first, then the next healthy candidate", async () => {
    await using of = await stage({ pick: "cheapest", prices: { a: "3", c: "1" } });
    expect(await of.ask()).toBe("c");
    of.limit("c");
    expect(await of.ask()).toBe("a");
    of.limit("a");
    // Its price is unknown.
    expect(await of.ask()).toBe("b");
  });

  it("fastest: tries all, then calls the fastest until another one is faster", async () => {
    const slow: { [name: string]: number } = { a: 60, b: 0, c: 60 };
    await using of = await stage({ pick: "fastest", slow });
    expect([await of.ask(), await of.ask(), await of.ask()]).toEqual(["a", "b", "c"]);
    expect(new Set([await of.ask(), await of.ask(), await of.ask()])).toEqual(new Set(["b"]));
    slow["b"] = 300;
    slow["c"] = 0;
    const later: string[] = [];
    for (let i = 0; i < 12; i++) later.push(await of.ask());
    expect(later.at(-1)).not.toBe("b");
    const speeds = of.s.house.targetHealth.latencies();
    expect(speeds.map(({ target }) => target)).toEqual([
      "a default m",
      "b default m",
      "c default m",
    ]);
    for (const { averageMs, estimateMs } of speeds)
      expect(estimateMs).toBeLessThanOrEqual(averageMs);
  });

  it("weighted: calls none with weight zero while another one is healthy", async () => {
    await using of = await stage({ pick: "weighted", weights: { "a/m": 0, "b/m": 5, "c/m": 0 } });
    for (let i = 0; i < 8; i++) expect(await of.ask()).toBe("b");
    of.limit("b");
    expect(await of.ask()).toBe("a");
  });

  it.each(["ordered", "weighted", "fastest", "cheapest", "sticky"] as const)(
    "%s: a route hook has the last word, except for cooldowns",
    async (pick) => {
      const route: Hooks["route"] = (list) => list.toSorted((a, b) => (a.id > b.id ? -1 : 1));
      await using of = await stage({ pick, hooks: [{ route }] });
      for (let i = 0; i < 4; i++) expect(await of.ask()).toBe("c");
      of.limit("c");
      expect(await of.ask()).toBe("b");
    },
  );

  it("ordered: is computed with the name, without measuring requests", async () => {
    await using of = await stage({ pick: "ordered" });
    await of.ask();
    const { gen, frontends } = of.s.built;
    expect(gen.resolver.resolve(frontends[0]!, "any", false).routingRule).toBeUndefined();
    expect(of.s.house.targetHealth.latencies()).toEqual([]);
  });

  it("reports its criteria in explain, in the most likely order, and calls nothing", async () => {
    const told = async (of: Parameters<typeof stage>[0], reckoned: Record<string, number> = {}) => {
      await using one = await stage(of);
      const { gen, frontends } = one.s.built;
      const { strategy, candidates } = await explainRoute(
        gen,
        frontends[0]!,
        "any",
        ({ provider }) => reckoned[provider] ?? 0,
      );
      expect(strategy).toBe(of.pick);
      expect(one.s.journal).toEqual([]);
      return candidates.map(
        ({ candidate, orderReason }) => `${candidate.provider}: ${orderReason}`,
      );
    };
    const weights = { "a/m": 1, "b/m": 2, "c/m": 1 };
    const calls = (of: string) => [`b: 50 % ${of}`, `a: 25 % ${of}`, `c: 25 % ${of}`];
    expect(await told({ pick: "ordered" })).toEqual(["a", "b", "c"].map((a) => `${a}: undefined`));
    expect(await told({ pick: "weighted", weights })).toEqual(calls("of the calls"));
    expect(await told({ pick: "sticky", weights })).toEqual(calls("of the conversations"));
    expect(await told({ pick: "fastest" }, { a: 90, b: 20 })).toEqual([
      "c: not measured yet",
      "b: first token after 20 ms",
      "a: first token after 90 ms",
    ]);
    const plain = "for 10,000 tokens in, 1,000 out";
    expect(await told({ pick: "cheapest", prices: { a: "3", c: "1" } })).toEqual([
      `c: $0.011 ${plain}`,
      `a: $0.033 ${plain}`,
      "b: price unknown",
    ]);
  });
});

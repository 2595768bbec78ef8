// Which candidate is tried first: credentials by weight, candidates by weight where the route says so, and what a route hook says is last.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HostCandidate } from "../../src/walk/mounted.ts";
import { spread } from "../../src/walk/candidates/spread.ts";
import { backend, scene } from "../kit/scene.ts";
import { toy } from "./toy.ts";

const seat = (id: string, credential: string, weight: number, protocol = "chat"): HostCandidate =>
  ({ id, credential, protocol, "~": { credential: { name: credential, weight } } }) as never;

/** How often each comes first. */
function firsts(seats: readonly HostCandidate[], pick: "ordered" | "weighted", runs = 4_000) {
  const counts: Record<string, number> = {};
  for (let i = 0; i < runs; i++) {
    const [one] = spread(seats, pick);
    const name = `${one!.id}[${one!.credential}]`;
    counts[name] = (counts[name] ?? 0) + 1 / runs;
  }
  return counts;
}

describe("candidates", () => {
  it("ordered: the order of models stays, credentials of one share by weight", () => {
    const shares = firsts(
      [seat("a/m", "x", 3), seat("a/m", "y", 1), seat("b/m", "z", 9)],
      "ordered",
    );
    expect(shares["a/m[x]"]).toBeCloseTo(0.75, 1);
    expect(shares["a/m[y]"]).toBeCloseTo(0.25, 1);
    expect(shares["b/m[z]"]).toBeUndefined();
  });

  it("weighted: all of them share by weight", () => {
    const seats = [seat("a/m", "x", 1), seat("b/m", "y", 2), seat("c/m", "z", 7)];
    const shares = firsts(seats, "weighted");
    expect(shares["a/m[x]"]).toBeCloseTo(0.1, 1);
    expect(shares["b/m[y]"]).toBeCloseTo(0.2, 1);
    expect(shares["c/m[z]"]).toBeCloseTo(0.7, 1);
  });

  it("are all there once, each with its endpoints in their order", () => {
    const some = fc.array(
      fc.record({
        id: fc.constantFrom("a/m", "b/m", "c/m"),
        credential: fc.constantFrom("x", "y"),
        weight: fc.constantFrom(0, 1, 5),
      }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(some, fc.constantFrom("ordered", "weighted"), (of, pick) => {
        const seats = of.map(({ id, credential, weight }, i) =>
          seat(id, credential, weight, `${i}`),
        );
        const out = spread(seats, pick);
        expect(new Set(out)).toEqual(new Set(seats));
        expect(out).toHaveLength(seats.length);
        const nth = new Map(seats.map((one, i) => [one, i]));
        for (const way of Map.groupBy(out, (s) => `${s.id} ${s.credential}`).values())
          expect(way.map((s) => nth.get(s)!)).toEqual(
            way.map((s) => nth.get(s)!).toSorted((a, b) => a - b),
          );
        if (pick === "ordered")
          expect([...new Set(out.map((s) => s.id))]).toEqual([...new Set(seats.map((s) => s.id))]);
      }),
    );
  });
});

it.each([
  [
    "turned",
    "b",
    (list: readonly any[]) => list.toSorted((a, b) => (a.credential < b.credential ? 1 : -1)),
  ],
  [
    "sorted",
    "a",
    (list: readonly any[]) => list.toSorted((a, b) => (a.credential < b.credential ? -1 : 1)),
  ],
])("a route hook's order of credentials stays: %s", async (_how, first, route) => {
  await using up = await backend((_req, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end('{"say":"x","end":"stop","usage":{"input":1,"output":1}}');
  });
  const credentials = ["a", "b"].map((name) => ({
    name,
    fields: { api_key: name },
    weight: 1,
    models: undefined,
    zdr: undefined,
  }));
  await using s = await scene({
    frontend: toy(),
    providers: {
      p: {
        endpoints: [
          { protocol: toy(), base: up.base, auth: { header: "x-key", field: "api_key" } },
        ],
        credentials,
      } as never,
    },
    hooks: [{ route }],
  });
  for (let i = 0; i < 12; i++) await (await s.ask({ model: "p/m", text: "x" })).text();
  expect(up.asked.map(({ headers }) => headers["x-key"])).toEqual(Array(12).fill(first));
});

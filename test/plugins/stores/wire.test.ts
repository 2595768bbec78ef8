// What goes between the threads arrives as it left, whatever it holds.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Command, Verdict } from "tollgate/plugin";
import { heard, pack, told, unpack } from "../../../plugins/stores/sqlite/wire.ts";

const amount = fc.option(fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }), { nil: null });
const word = fc.string({ unit: "binary", maxLength: 12 });
const limit = fc.record({
  scope: word,
  unit: fc.constantFrom("requests" as const, "nano_usd" as const),
  max: fc.oneof(fc.nat(), fc.bigInt({ min: 0n, max: 2n ** 70n })),
  per: fc.constantFrom("minute" as const, "open" as const),
  take: fc.bigInt({ min: 0n, max: 2n ** 70n }),
});
const usage = fc.record({ input: fc.nat(), output: fc.nat() }, { requiredKeys: [] });
const part = fc.record({
  model: word,
  usage,
  price: fc.option(word, { nil: null }),
  costNano: amount,
});

const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({
    do: fc.constant("reserve" as const),
    at: fc.nat(),
    attempt: word,
    request: word,
    n: fc.nat(),
    key: word,
    target: fc.record({
      provider: word,
      model: word,
      protocol: fc.option(word, { nil: null }),
      credential: word,
    }),
    privacy: fc.constantFrom("off" as const, "strict" as const),
    labels: fc.dictionary(fc.constantFrom("team", "rare", "holdNano"), word),
    claims: fc.array(limit, { maxLength: 2 }),
    holdNano: amount,
    price: fc.option(word, { nil: null }),
  }),
  fc.record(
    {
      do: fc.constant("settle" as const),
      at: fc.nat(),
      attempt: word,
      state: fc.constantFrom("exact" as const, "void" as const),
      usage,
      costNano: amount,
      outcome: word,
      upstreamId: word,
      upstreamCostNano: fc.bigInt({ min: 0n, max: 2n ** 70n }),
      parts: fc.array(part, { maxLength: 2 }),
      ms: fc.record({ total: fc.nat() }),
    },
    { requiredKeys: ["do", "at", "attempt", "state", "usage", "costNano", "outcome"] },
  ),
  fc.record({
    do: fc.constant("progress" as const),
    at: fc.nat(),
    attempt: word,
    usage,
    costNano: amount,
  }),
  fc.record({
    do: fc.constant("adjust" as const),
    at: fc.nat(),
    attempt: word,
    costNano: fc.bigInt(),
    reason: word,
    actor: word,
  }),
  fc.record({ do: fc.constant("alive" as const), at: fc.nat() }),
);

test("commands", () => {
  fc.assert(
    fc.property(fc.array(command), (batch) => {
      expect(unpack(pack(batch))).toEqual(batch);
    }),
  );
});

test("verdicts", () => {
  const verdict: fc.Arbitrary<Verdict> = fc.oneof(
    fc.constant({ ok: true as const }),
    limit.map(({ take: left, ...rest }) => ({
      ok: true as const,
      limits: [{ ...rest, left, resetsAt: 1 }],
    })),
    limit.map(({ take: left, ...rest }) => ({
      ok: false as const,
      denied: { ...rest, left, resetsAt: 1 },
      retryAfterMs: 1,
    })),
  );
  fc.assert(
    fc.property(fc.array(verdict), (all) => {
      expect(heard(structuredClone(told(all)))).toEqual(all);
    }),
  );
});

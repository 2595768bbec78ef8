import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  unpackResults,
  packBatch,
  packResults,
  unpackBatch,
} from "../../../../src/runtime/workers/remote-store.ts";
import type { Limit } from "../../../../src/plugin/store/limit.ts";
import type { StoreCommand, CommandResult } from "../../../../src/plugin/store/store.ts";
import { NOON } from "../../../../src/testing/store.ts";
import { codePoint } from "../../../kit/code-points.ts";

const text = fc.string({ unit: codePoint, maxLength: 5 });
const nano = fc.bigInt(0n, 2n ** 63n - 1n);
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });
const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of);
const at = fc.integer({ min: NOON, max: NOON + 9 });
const usage = fc.dictionary(fc.constantFrom("input", "output", "cache_read"), fc.nat());
const labels = fc.dictionary(text, text);

const limit = fc.record({
  scope: text,
  unit: fc.constantFrom<Limit["unit"]>("requests", "nano_usd"),
  max: fc.oneof(fc.nat(), nano),
  per: fc.constantFrom<Limit["per"]>("minute", "open"),
});
const target = fc.record({ provider: text, model: text, protocol: orNull(text), credential: text });
const asked = fc.record({
  model: text,
  frontend: text,
  protocol: text,
  mode: fc.constantFrom("passthrough", "translated"),
  stream: fc.boolean(),
  policyBasis: maybe(text),
});
const reserve = fc.record({
  do: fc.constant("reserve"),
  at,
  attempt: text,
  request: text,
  number: fc.nat(),
  key: text,
  target,
  privacy: fc.constantFrom("off", "required", "strict"),
  labels,
  claims: fc.array(fc.tuple(limit, nano).map(([each, take]) => ({ ...each, take }))),
  holdNano: orNull(nano),
  price: orNull(text),
  clientRequest: maybe(asked),
  job: maybe(
    fc.record({
      attempt: text,
      take: maybe(fc.record({ nano_usd: nano, requests: nano }, { requiredKeys: [] })),
    }),
  ),
});
const settle = fc.record({
  do: fc.constant("settle"),
  at,
  attempt: text,
  state: fc.constantFrom("exact", "estimated", "unpriced", "void"),
  usage,
  costNano: orNull(nano),
  outcome: text,
  upstreamId: maybe(text),
  upstreamCostNano: maybe(nano),
  parts: maybe(
    fc.array(
      fc.record({
        model: text,
        tier: maybe(text),
        usage,
        price: orNull(text),
        costNano: orNull(nano),
      }),
      { maxLength: 2 },
    ),
  ),
  finish: maybe(text),
  ms: maybe(fc.record({ headers: maybe(fc.nat()), firstToken: maybe(fc.nat()), total: fc.nat() })),
});
const other = fc.oneof(
  fc.record({
    do: fc.constant("progress"),
    at,
    attempt: text,
    usage,
    costNano: maybe(orNull(nano)),
  }),
  fc.record({ do: fc.constant("heartbeat"), at }),
);
const batches = fc.array(fc.oneof(reserve, settle, other)) as fc.Arbitrary<StoreCommand[]>;

it("messages arrive unchanged and in order", () => {
  fc.assert(
    fc.property(batches, (batch) => {
      expect(unpackBatch(structuredClone(packBatch(batch)))).toEqual(batch);
    }),
  );
});

it("so do results, however many contain a value", () => {
  const fine: CommandResult = { ok: true };
  const some = fc.constantFrom<CommandResult>(
    fine,
    { ok: true, limits: [] },
    {
      ok: false,
      denied: { scope: "k", unit: "requests", max: 1, per: "day", remaining: 0, resetsAt: NOON },
      retryAfterMs: 1,
    },
  );
  fc.assert(
    fc.property(fc.array(some), (verdicts) => {
      expect(unpackResults(structuredClone(packResults(verdicts)))).toEqual(verdicts);
    }),
  );
});

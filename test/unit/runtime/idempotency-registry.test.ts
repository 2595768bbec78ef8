// State of Idempotency-Keys, and its limits.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InMemoryIdempotencyRegistry } from "../../../src/runtime/services/idempotency-registry.ts";
import type { IdempotencyOutcome } from "../../../src/pipeline/generation.ts";

const OUTCOME: IdempotencyOutcome = {
  requestId: "r",
  status: 200,
  usage: { input: 1 },
  costNano: "5",
};
const claim = (who: string, name: string, body = "b") => ({
  keyId: who,
  idempotencyKeyHash: name,
  bodyHash: body,
  requestId: "r",
});

describe("idempotency keys", () => {
  it("are new, then in progress, then done; another body is another request", () => {
    const table = new InMemoryIdempotencyRegistry();
    expect(table.claim(claim("k", "n"))).toEqual({ state: "new" });
    expect(table.claim(claim("k", "n"))).toEqual({ state: "running" });
    expect(table.claim(claim("k", "n", "c"))).toEqual({ state: "mismatch" });
    expect(table.claim(claim("other", "n", "c"))).toEqual({ state: "new" });
    table.complete(claim("k", "n"), OUTCOME);
    expect(table.claim(claim("k", "n"))).toEqual({ state: "completed", outcome: OUTCOME });
    expect(table.claim(claim("k", "n", "c"))).toEqual({ state: "mismatch" });
  });

  it("are free again if nothing was billed, and after a day", () => {
    let now = 0;
    const table = new InMemoryIdempotencyRegistry(() => now);
    table.claim(claim("k", "n"));
    table.complete(claim("k", "n"), undefined);
    expect(table.size).toBe(0);
    expect(table.claim(claim("k", "n"))).toEqual({ state: "new" });
    table.complete(claim("k", "n"), OUTCOME);
    now = 86_399_999;
    expect(table.claim(claim("k", "n")).state).toBe("completed");
    now = 86_400_000;
    expect(table.claim(claim("k", "n")).state).toBe("new");
    // An open one is not evicted, however long it takes.
    now *= 3;
    expect(table.claim(claim("k", "n")).state).toBe("running");
  });

  it("of an exited process are done, with an unknown result", () => {
    const table = new InMemoryIdempotencyRegistry();
    const [dead, alive] = [{}, {}];
    table.claim(claim("k", "a"), dead);
    table.claim(claim("k", "b"), alive);
    table.ownerExited(dead);
    expect(table.claim(claim("k", "a"))).toMatchObject({
      state: "completed",
      outcome: { status: 500 },
    });
    expect(table.claim(claim("k", "b"))).toEqual({ state: "running" });
  });

  it("are evicted, the oldest first, for a key with too many, and not for others", () => {
    const table = new InMemoryIdempotencyRegistry();
    table.claim(claim("modest", "n"));
    for (let i = 0; i < 10_001; i++) table.claim(claim("greedy", String(i)));
    expect(table.size).toBe(10_001);
    expect(table.claim(claim("greedy", "0")).state).toBe("new");
    expect(table.claim(claim("greedy", "5000")).state).toBe("running");
    expect(table.claim(claim("modest", "n")).state).toBe("running");
  });

  it("in progress are not evicted before later ones that are done", () => {
    const table = new InMemoryIdempotencyRegistry();
    table.claim(claim("k", "long"));
    for (let i = 0; i < 10_050; i++) {
      table.claim(claim("k", String(i)));
      table.complete(claim("k", String(i)), OUTCOME);
    }
    expect(table.size).toBe(10_000);
    expect(table.claim(claim("k", "long"))).toEqual({ state: "running" });
    expect(table.claim(claim("k", "0")).state).toBe("new");
  });

  it("are released only by the request that holds them", () => {
    const table = new InMemoryIdempotencyRegistry();
    const other = { ...claim("k", "n"), requestId: "other" };
    table.claim(claim("k", "n"));
    for (let i = 0; i < 10_000; i++) table.claim(claim("k", String(i)));
    // So many are open that the first was evicted.
    expect(table.claim(other)).toEqual({ state: "new" });
    table.complete(claim("k", "n"), undefined);
    expect(table.claim(other)).toEqual({ state: "running" });
    table.complete(claim("k", "n"), OUTCOME);
    expect(table.claim(other)).toEqual({ state: "running" });
    table.complete(other, OUTCOME);
    expect(table.claim(other).state).toBe("completed");
  });

  it("have a total limit across all keys", () => {
    const table = new InMemoryIdempotencyRegistry();
    for (let i = 0; i < 100_100; i++) table.claim(claim(`k${i}`, "n"));
    expect(table.size).toBe(100_000);
  });

  it("one key and body run once at a time, for any order of events", () => {
    const step = fc.record({
      name: fc.constantFrom("a", "b"),
      body: fc.constantFrom("x", "y"),
      end: fc.constantFrom("billed", "free", "later"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const table = new InMemoryIdempotencyRegistry();
        const known = new Map<string, { body: string; state: "running" | "completed" }>();
        for (const { name, body, end } of steps) {
          const found = known.get(name);
          const expected = !found ? "new" : found.body !== body ? "mismatch" : found.state;
          expect(table.claim(claim("k", name, body)).state).toBe(expected);
          if (!found) known.set(name, { body, state: "running" });
          if (end === "later" || known.get(name)!.state === "completed") continue;
          table.complete(claim("k", name), end === "billed" ? OUTCOME : undefined);
          if (end === "billed") known.get(name)!.state = "completed";
          else known.delete(name);
        }
        expect(table.size).toBe(known.size);
      }),
    );
  });
});

// What is known of Idempotency-Keys, and how much of it is kept.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ClaimTable } from "../../../src/gateway/services/claims.ts";
import type { ClaimOutcome } from "../../../src/walk/claims.ts";

const OUTCOME: ClaimOutcome = { request: "r", status: 200, usage: { input: 1 }, costNano: "5" };
const claim = (who: string, name: string, body = "b") => ({ who, name, body, request: "r" });

describe("names", () => {
  it("are new once, then under way, then over; another body is another request", () => {
    const table = new ClaimTable();
    expect(table.begin(claim("k", "n"))).toEqual({ state: "new" });
    expect(table.begin(claim("k", "n"))).toEqual({ state: "running" });
    expect(table.begin(claim("k", "n", "c"))).toEqual({ state: "other" });
    expect(table.begin(claim("other", "n", "c"))).toEqual({ state: "new" });
    table.end(claim("k", "n"), OUTCOME);
    expect(table.begin(claim("k", "n"))).toEqual({ state: "over", outcome: OUTCOME });
    expect(table.begin(claim("k", "n", "c"))).toEqual({ state: "other" });
  });

  it("are free again where nothing was billed, and after a day", () => {
    let now = 0;
    const table = new ClaimTable(() => now);
    table.begin(claim("k", "n"));
    table.end(claim("k", "n"), undefined);
    expect(table.size).toBe(0);
    expect(table.begin(claim("k", "n"))).toEqual({ state: "new" });
    table.end(claim("k", "n"), OUTCOME);
    now = 86_399_999;
    expect(table.begin(claim("k", "n")).state).toBe("over");
    now = 86_400_000;
    expect(table.begin(claim("k", "n")).state).toBe("new");
    // One that is under way is not forgotten, however long it takes.
    now *= 3;
    expect(table.begin(claim("k", "n")).state).toBe("running");
  });

  it("of a process that has ended are over, and how is not known", () => {
    const table = new ClaimTable();
    const [dead, alive] = [{}, {}];
    table.begin(claim("k", "a"), dead);
    table.begin(claim("k", "b"), alive);
    table.gone(dead);
    expect(table.begin(claim("k", "a"))).toMatchObject({ state: "over", outcome: { status: 500 } });
    expect(table.begin(claim("k", "b"))).toEqual({ state: "running" });
  });

  it("a key with too many forgets its own oldest, and no other key's", () => {
    const table = new ClaimTable();
    table.begin(claim("modest", "n"));
    for (let i = 0; i < 10_001; i++) table.begin(claim("greedy", String(i)));
    expect(table.size).toBe(10_001);
    expect(table.begin(claim("greedy", "0")).state).toBe("new");
    expect(table.begin(claim("greedy", "5000")).state).toBe("running");
    expect(table.begin(claim("modest", "n")).state).toBe("running");
  });

  it("one that is under way is not forgotten for those that came after it and are over", () => {
    const table = new ClaimTable();
    table.begin(claim("k", "long"));
    for (let i = 0; i < 10_050; i++) {
      table.begin(claim("k", String(i)));
      table.end(claim("k", String(i)), OUTCOME);
    }
    expect(table.size).toBe(10_000);
    expect(table.begin(claim("k", "long"))).toEqual({ state: "running" });
    expect(table.begin(claim("k", "0")).state).toBe("new");
  });

  it("only the request that has a name ends it", () => {
    const table = new ClaimTable();
    const other = { ...claim("k", "n"), request: "other" };
    table.begin(claim("k", "n"));
    for (let i = 0; i < 10_000; i++) table.begin(claim("k", String(i)));
    // So many are under way that the first has been forgotten.
    expect(table.begin(other)).toEqual({ state: "new" });
    table.end(claim("k", "n"), undefined);
    expect(table.begin(other)).toEqual({ state: "running" });
    table.end(claim("k", "n"), OUTCOME);
    expect(table.begin(other)).toEqual({ state: "running" });
    table.end(other, OUTCOME);
    expect(table.begin(other).state).toBe("over");
  });

  it("of however many keys are bounded together", () => {
    const table = new ClaimTable();
    for (let i = 0; i < 100_100; i++) table.begin(claim(`k${i}`, "n"));
    expect(table.size).toBe(100_000);
  });

  it("one name and one body run once at a time, whatever comes in whatever order", () => {
    const step = fc.record({
      name: fc.constantFrom("a", "b"),
      body: fc.constantFrom("x", "y"),
      end: fc.constantFrom("billed", "free", "later"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const table = new ClaimTable();
        const known = new Map<string, { body: string; state: "running" | "over" }>();
        for (const { name, body, end } of steps) {
          const found = known.get(name);
          const expected = !found ? "new" : found.body !== body ? "other" : found.state;
          expect(table.begin(claim("k", name, body)).state).toBe(expected);
          if (!found) known.set(name, { body, state: "running" });
          if (end === "later" || known.get(name)!.state === "over") continue;
          table.end(claim("k", name), end === "billed" ? OUTCOME : undefined);
          if (end === "billed") known.get(name)!.state = "over";
          else known.delete(name);
        }
        expect(table.size).toBe(known.size);
      }),
    );
  });
});

// Cooldowns, circuit breakers, and their evidence, with a test clock.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ErrorKind, Fault } from "tollgate/plugin";
import { CircuitBreaker, OutcomeWindow } from "../../../src/pipeline/targets/circuit-breaker.ts";
import { ClientEvidence } from "../../../src/pipeline/targets/client-evidence.ts";
import {
  ConcurrencyLimit,
  type ConcurrencySlot,
} from "../../../src/pipeline/targets/concurrency-limit.ts";
import { ProviderCooldown } from "../../../src/pipeline/targets/provider-cooldown.ts";
import { RetryBudget } from "../../../src/pipeline/targets/retry-budget.ts";
import { UpstreamTarget } from "../../../src/pipeline/targets/upstream-target.ts";

const NAME = { provider: "p", credential: "c", model: "m", base: "http://p.test" };
const CLOCK = { now: () => 0, schedule: () => {} };
const target = () =>
  new UpstreamTarget(NAME, new ProviderCooldown(), new ProviderCooldown(), CLOCK);
let n = 0;
interface More {
  who: string;
  request: string;
  probe: boolean;
  unsent: boolean;
  repeated: boolean;
  started: number;
  retryAfterMs: number;
  scope: "request" | "account" | undefined;
}
const RESTS: { readonly [K in ErrorKind]?: "credential+model" | "credential" } = {
  rate_limited: "credential+model",
  upstream_auth: "credential",
};
const fail = (
  of: UpstreamTarget,
  now: number,
  kind: ErrorKind = "overloaded",
  more: Partial<More> = {},
) => {
  const { retryAfterMs, probe, who = "a", request = `r${n++}`, started = now, scope } = more;
  const fault: Fault = { kind, message: "No.", retryAfterMs };
  const { repeated = false, unsent = false } = more;
  const pass = probe ? "probe" : "plain";
  const call = {
    reason: pass,
    startedAt: started,
    client: who,
    requestId: request,
    isClientRetry: repeated,
    isUnsent: unsent,
    limitScope: scope,
  } as const;
  return of.recordFailure(now, fault, RESTS[kind] ?? "target", call);
};

it("a window counts the last ten seconds and nothing older, whatever the clock does", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("good", "bad"), fc.nat(25_000)), {
    maxLength: 40,
  }) as fc.Arbitrary<["good" | "bad", number][]>;
  fc.assert(
    fc.property(steps, (all) => {
      const window = new OutcomeWindow();
      const seen: { kind: string; second: number }[] = [];
      let now = 0;
      for (const [kind, passed] of all) {
        now += passed;
        window.record(kind, now);
        const second = Math.floor(now / 1_000);
        seen.push({ kind, second });
        for (const one of ["good", "bad"] as const)
          expect(window.count(one, now)).toBe(
            seen.filter((each) => each.kind === one && each.second > second - 10).length,
          );
      }
    }),
  );
});

describe("failures of one client", () => {
  it("open a circuit breaker for that client after five distinct requests in a row, and for no other client", () => {
    const one = target();
    for (let i = 0; i < 4; i++) expect(fail(one, i)).toBeUndefined();
    expect(fail(one, 4)).toBe("open");
    expect(one.statusFor(5, "a")).toMatchObject({
      state: "open",
      reason: "overloaded",
      until: 5_004,
    });
    expect(one.statusFor(5, "b")).toBeUndefined();
    expect(one.tryEnter(5, "b")).toBe("plain");
  });

  it("count a repeated request once, whether the gateway or the client repeats it", () => {
    const one = target();
    for (let i = 0; i < 20; i++) {
      fail(one, i, "overloaded", { request: "same" });
      fail(one, i, "upstream", { repeated: true });
    }
    expect(one.statusFor(30, "a")).toBeUndefined();
  });

  it("open it if more than a tenth of at least twenty fail, and not below that", () => {
    const after = (good: number) => {
      const one = target();
      fail(one, 0);
      for (let i = 0; i < 6; i++) {
        for (let k = 0; k < good; k++) one.recordSuccess(1, 1, "a");
        fail(one, 2);
      }
      return one.statusFor(3, "a")?.state;
    };
    expect([after(4), after(20)]).toEqual(["open", undefined]);
  });

  it("of one client do not change the routing of another client", () => {
    const step = fc.record({
      kind: fc.constantFrom("overloaded", "upstream", "timeout", "rate_limited") as fc.Arbitrary<
        "overloaded" | "upstream" | "timeout" | "rate_limited"
      >,
      ms: fc.nat(4_000),
      good: fc.nat(3),
      told: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const one = target();
        let now = 0;
        for (const { kind, ms, good, told } of steps) {
          now += ms;
          for (let i = 0; i < good; i++) one.recordSuccess(now, now, "a");
          // A rate limit for this request only.
          const scope = kind === "rate_limited" && told ? "request" : undefined;
          fail(one, now, kind, { scope, ...(scope && { retryAfterMs: 60_000 }) });
          expect([one.statusFor(now, "b"), one.tryEnter(now, "b"), one.isFull("b")]).toEqual([
            undefined,
            "plain",
            false,
          ]);
        }
      }),
    );
  });
});

describe("failures of several clients", () => {
  it("open the breaker for all, if they suffice without the client that fails most", () => {
    const one = target();
    for (let i = 0; i < 50; i++) fail(one, i, "overloaded", { who: "a" });
    for (let i = 0; i < 4; i++) fail(one, 60, "overloaded", { who: "b" });
    expect(one.statusFor(61, "z")).toBeUndefined();
    fail(one, 61, "overloaded", { who: "c" });
    expect(one.statusFor(62, "z")?.state).toBe("open");
  });

  it("do not open it if the others succeed", () => {
    const one = target();
    for (let i = 0; i < 200; i++) one.recordSuccess(1, 1, "z");
    for (const who of ["a", "b", "c", "d"])
      for (let i = 0; i < 5; i++) fail(one, 2, "overloaded", { who });
    expect(one.statusFor(3, "z")).toBeUndefined();
  });

  it("are not needed if there is no connection", () => {
    const one = target();
    for (let i = 0; i < 3; i++) fail(one, i, "upstream", { unsent: true });
    expect(one.statusFor(4, "z")?.state).toBe("open");
  });
});

describe("a circuit breaker", () => {
  it("allows one call after its time, and opens for twice as long if it fails, up to a minute", () => {
    const one = target();
    let now = 0;
    for (let i = 0; i < 5; i++) fail(one, now);
    for (const seconds of [5, 10, 20, 40, 60, 60]) {
      expect(one.tryEnter(now + seconds * 1_000 - 1, "a")).toBeUndefined();
      now += seconds * 1_000;
      expect(one.tryEnter(now, "a")).toBe("probe");
      expect(one.tryEnter(now, "a")).toBeUndefined();
      expect(one.statusFor(now, "a")?.state).toBe("half_open");
      // Calls that were open when it opened are no new evidence.
      fail(one, now);
      expect(one.statusFor(now, "a")?.state).toBe("half_open");
      fail(one, now, "overloaded", { probe: true });
    }
    now += 60_000;
    expect(one.tryEnter(now, "a")).toBe("probe");
    one.releaseProbe("a");
    expect(one.tryEnter(now, "a")).toBe("probe");
    expect(one.recordSuccess(now + 5, now, "a")).toBe(true);
    expect(one.hasNoCooldown).toBe(true);
  });

  it("that was never open is not closed by a success", () => {
    const one = target();
    expect(one.recordSuccess(5, 1, "a")).toBe(false);
    fail(one, 10);
    expect(one.recordSuccess(20, 15, "a")).toBe(false);
  });

  it("is closed by a call that started after it opened, and by no older one", () => {
    const one = target();
    for (let i = 0; i < 5; i++) fail(one, 1_000);
    expect(one.recordSuccess(1_100, 900, "a")).toBe(false);
    expect(one.hasNoCooldown).toBe(false);
    expect(one.recordSuccess(1_200, 1_001, "a")).toBe(true);
  });

  it("never has two probes, whatever happens", () => {
    const step = fc.constantFrom("ask", "fail", "answer", "release", "stray") as fc.Arbitrary<
      "ask" | "fail" | "answer" | "release" | "stray"
    >;
    fc.assert(
      fc.property(fc.array(fc.tuple(step, fc.nat(8_000)), { maxLength: 60 }), (steps) => {
        const one = new CircuitBreaker();
        one.recordFailure(0, { hasEnoughEvidence: true, isProbe: false });
        let [now, probes] = [0, 0];
        for (const [what, passed] of steps) {
          now += passed;
          if (what === "ask" && one.tryProbe(now)) probes++;
          else if (what === "stray")
            one.recordFailure(now, { hasEnoughEvidence: true, isProbe: false });
          else if (probes > 0) {
            probes--;
            if (what === "fail") one.recordFailure(now, { hasEnoughEvidence: true, isProbe: true });
            else if (what === "answer") one.recordSuccess(now);
            else one.releaseProbe();
          }
          expect(probes).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

describe("a provider's rate limit", () => {
  it("reorders candidates for exactly that time, up to five minutes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), (ms) => {
        const rest = new ProviderCooldown();
        rest.start(1_000, "rate_limited", { ms, refuses: false, started: 1_000 });
        expect(rest.until - 1_000).toBe(Math.min(ms, 300_000));
        expect(rest.rejectsRequests(1_000)).toBe(false);
      }),
    );
  });

  it("rejects requests only for the account as a whole, and not in the last second, which may be rounded up", () => {
    const one = target();
    fail(one, 1_000, "rate_limited", { retryAfterMs: 30_000 });
    expect(one.statusFor(2_000, "z")).toMatchObject({
      state: "retry_after",
      until: 31_000,
      rejectsRequests: false,
    });
    fail(one, 1_000, "rate_limited", { retryAfterMs: 30_000, scope: "account" });
    expect(one.statusFor(29_999, "z")).toMatchObject({
      state: "retry_after",
      until: 31_000,
      rejectsRequests: true,
    });
    expect(one.statusFor(30_000, "z")).toMatchObject({ rejectsRequests: false });
  });

  it("is ignored from a call that started before the one that ended it", () => {
    const one = target();
    const late = (started: number) =>
      fail(one, 1_400, "rate_limited", { retryAfterMs: 500, started });
    fail(one, 1_000, "rate_limited", { retryAfterMs: 500 });
    expect(one.recordSuccess(1_300, 1_200, "a")).toBe(true);
    expect(late(1_100)).toBeUndefined();
    expect(one.statusFor(1_401, "a")).toBeUndefined();
    expect(late(1_200)).toBe("retry_after");
  });

  it("opens no breaker, however often it is reported", () => {
    const one = target();
    for (let i = 0; i < 100; i++) fail(one, i, "rate_limited", { retryAfterMs: 10 });
    expect(one.statusFor(1_000, "a")).toBeUndefined();
    expect(one.tryEnter(1_000, "a")).toBe("plain");
  });
});

describe("a retry budget", () => {
  it("earns a retry in 30 s for a client with few requests, and saves no more than it began with", () => {
    const budget = new RetryBudget(0);
    while (budget.takeRetry(false));
    budget.addRequest(29_000);
    budget.addRequest(30_000);
    expect([budget.takeRetry(false), budget.takeRetry(false)]).toEqual([true, false]);
    budget.addRequest(1e9);
    let count = 0;
    while (budget.takeRetry(false)) count++;
    expect(count).toBe(10);
  });

  it("is less than a tenth of a client's requests, in any order", () => {
    const step = fc.constantFrom("add", "take", "halved", "elsewhere") as fc.Arbitrary<
      "add" | "take" | "halved" | "elsewhere"
    >;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 2_000 }), (steps) => {
        const budget = new RetryBudget(0);
        let [requests, more] = [0, 0];
        for (const what of steps) {
          if (what === "add") {
            budget.addRequest(0);
            requests++;
          } else if (
            what === "elsewhere" ? budget.takeFallback() : budget.takeRetry(what === "halved")
          )
            more++;
          expect(more).toBeLessThanOrEqual(0.1 * requests + 101);
        }
      }),
    );
  });
});

describe("a concurrency limit while nothing succeeds", () => {
  function stage() {
    let now = 0;
    const due: { at: number; run(): void }[] = [];
    const limit = new ConcurrencyLimit(
      (ms, run) => void due.push({ at: now + ms, run }),
      () => now,
    );
    const pass = (ms: number) => {
      const until = now + ms;
      for (;;) {
        const next = due.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
        if (!next) break;
        due.splice(due.indexOf(next), 1);
        now = next.at;
        next.run();
      }
      now = until;
    };
    return { limit, pass };
  }
  const enter = (limit: ConcurrencyLimit) => limit.acquire(250, "p/m");

  it("is never below one, holds a slot for 25 ms after a failure, and is lifted by the first success", async () => {
    const { limit, pass } = stage();
    for (let i = 0; i < 9; i++) limit.decrease();
    expect(limit.limit).toBe(1);
    (enter(limit) as ConcurrencySlot).release(true);
    const waits = enter(limit) as Promise<ConcurrencySlot>;
    expect(limit.waiting).toBe(1);
    pass(25);
    (await waits).release(false);
    const [first, second] = [enter(limit), enter(limit) as Promise<ConcurrencySlot>];
    limit.lift();
    (await second).release(false);
    (first as ConcurrencySlot).release(false);
    expect(limit.isFull).toBe(false);
  });

  it("rejects with 503 and a retry time, after the wait and not before it", async () => {
    const { limit, pass } = stage();
    for (let i = 0; i < 9; i++) limit.decrease();
    void enter(limit);
    // It lasts longer than failures do: the limit grows by one.
    pass(24);
    const [one, other] = [
      enter(limit) as Promise<ConcurrencySlot>,
      enter(limit) as Promise<ConcurrencySlot>,
    ];
    pass(1);
    await one;
    const refused = expect(other).rejects.toThrow(/All recent requests to p\/m failed/);
    pass(300);
    (await other.catch(() => undefined))?.release(true);
    await refused.catch(() => {});
    expect(limit.limit).toBeGreaterThan(1);
  });

  it("starts after fifty failures in a row", () => {
    const client = new ClientEvidence(0);
    for (let i = 0; i < 50; i++) {
      expect(client.concurrencyLimit).toBeUndefined();
      client.recordFailure(
        { now: i, requestId: `${i}`, isClientRetry: false, hasRetryAfter: false },
        CLOCK,
      );
    }
    expect(client.concurrencyLimit).toBeDefined();
    client.recordSuccess(60, 60);
    expect(client.concurrencyLimit).toBeUndefined();
  });
});

describe("the recovery", () => {
  /** A number of responses per second for ten seconds, then a failure of all. */
  const ailing = (pace: number, awayMs: number) => {
    const one = target();
    for (let second = 0; second < 10; second++)
      for (let i = 0; i < pace; i++) one.recordSuccess(second * 1_000, second * 1_000, "a");
    for (let i = 0; i < 5; i++) fail(one, 10_000, "upstream", { unsent: true });
    const back = 10_000 + awayMs;
    one.recordSuccess(back, back, "a");
    return { one, back };
  };
  const passed = (of: UpstreamTarget, from: number, ms: number) => {
    let count = 0;
    // Ten times its capacity, evenly.
    for (let t = from; t < from + ms; t++)
      for (let i = 0; i < 5; i++)
        if (of.tryEnter(t, "a")) {
          count++;
          of.recordSuccess(t, t, "a");
        }
    return count;
  };

  it("allows little more than the earlier rate, for half a minute, in each second of it", () => {
    for (const pace of [10, 100]) {
      const { one, back } = ailing(pace, 20_000);
      for (let second = 0; second < 30; second++)
        expect(passed(one, back + second * 1_000, 1_000)).toBeLessThanOrEqual(pace * 1.5);
      expect(passed(one, back + 31_000, 100)).toBe(500);
    }
  });

  it("is immediate after a short absence", () => {
    const { one, back } = ailing(100, 3_000);
    expect(passed(one, back, 100)).toBe(500);
  });
});

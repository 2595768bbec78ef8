// What may be asked after failures: breakers, rests, budgets and the way back, with a clock of the test's own.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ErrorKind, Fault } from "tollgate/plugin";
import { Breaker } from "../../../src/walk/targets/breaker.ts";
import { Pause } from "../../../src/walk/targets/pause.ts";
import { UpstreamTarget } from "../../../src/walk/targets/upstream-target.ts";
import { Window } from "../../../src/walk/targets/window.ts";

const NAME = { provider: "p", credential: "c", model: "m", base: "http://p.test" };
const target = () => new UpstreamTarget(NAME, new Pause(), new Pause());
const even = () => 0.5;
const fail = (
  of: UpstreamTarget,
  now: number,
  kind: ErrorKind = "overloaded",
  more: Partial<Fault> & { probe?: boolean } = {},
) => {
  const { probe = false, ...said } = more;
  const rests =
    kind === "rate_limited"
      ? "credential+model"
      : kind === "upstream_auth"
        ? "credential"
        : "target";
  return of.failed(now, { kind, message: "No.", ...said }, { rests, probe, started: now }, even);
};

it("a window counts the last ten seconds and nothing older, whatever the clock does in between", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("good", "bad", "again"), fc.nat(25_000)), {
    maxLength: 40,
  }) as fc.Arbitrary<["good" | "bad" | "again", number][]>;
  fc.assert(
    fc.property(steps, (all) => {
      const window = new Window();
      const seen: { kind: string; second: number }[] = [];
      let now = 0;
      for (const [kind, passed] of all) {
        now += passed;
        window.add(kind, now);
        const second = Math.floor(now / 1_000);
        seen.push({ kind, second });
        for (const one of ["good", "bad", "again"] as const)
          expect(window.sum(one, now)).toBe(
            seen.filter((each) => each.kind === one && each.second > second - 10).length,
          );
      }
    }),
  );
});

describe("a breaker", () => {
  it("opens after five failures in a row, and an answer between them begins the row anew", () => {
    const one = target();
    for (let i = 0; i < 4; i++) expect(fail(one, i)).toBeUndefined();
    one.answered(4, 4);
    for (let i = 5; i < 9; i++) expect(fail(one, i)).toBeUndefined();
    expect(one.well).toBe(true);
    expect(fail(one, 9)).toBe("open");
    expect(one.rest(9)).toMatchObject({ state: "open", why: "overloaded", until: 5_009 });
  });

  it("opens when half of twenty fail within ten seconds, and not when half of nineteen do", () => {
    const one = target();
    for (let i = 0; i < 9; i++) {
      one.answered(i, i);
      expect(fail(one, i)).toBeUndefined();
    }
    one.answered(20, 20);
    expect(fail(one, 21)).toBe("open");
    const other = target();
    for (let i = 0; i < 40; i++) {
      const now = i * 2_000;
      other.answered(now, now);
      expect(fail(other, now)).toBeUndefined();
    }
  });

  it("lets one call through when its time is over, and is open for twice as long when that fails, up to a minute", () => {
    const one = target();
    let now = 0;
    for (let i = 0; i < 5; i++) fail(one, now);
    for (const seconds of [5, 10, 20, 40, 60, 60]) {
      expect(one.enter(now + seconds * 1_000 - 1)).toBeUndefined();
      now += seconds * 1_000;
      expect(one.enter(now)).toBe("probe");
      expect(one.enter(now)).toBeUndefined();
      expect(one.rest(now)?.state).toBe("half_open");
      // What was under way when it opened says nothing new.
      fail(one, now);
      expect(one.rest(now)?.state).toBe("half_open");
      fail(one, now, "overloaded", { probe: true });
    }
    now += 60_000;
    expect(one.enter(now)).toBe("probe");
    one.release();
    expect(one.enter(now)).toBe("probe");
    expect(one.answered(now + 5, now)).toBe(true);
    expect(one.calm).toBe(true);
  });

  it("is closed by what was asked after it had opened, and by nothing older", () => {
    const one = target();
    for (let i = 0; i < 5; i++) fail(one, 1_000);
    expect(one.answered(1_100, 900)).toBe(false);
    expect(one.calm).toBe(false);
    expect(one.answered(1_200, 1_001)).toBe(true);
  });

  it("never has two probes, whatever happens", () => {
    const step = fc.constantFrom("ask", "fail", "answer", "release", "stray") as fc.Arbitrary<
      "ask" | "fail" | "answer" | "release" | "stray"
    >;
    fc.assert(
      fc.property(fc.array(fc.tuple(step, fc.nat(8_000)), { maxLength: 60 }), (steps) => {
        const one = new Breaker();
        for (let i = 0; i < 5; i++) one.failed(0, { good: 0, bad: i, probe: false });
        let [now, probes] = [0, 0];
        for (const [what, passed] of steps) {
          now += passed;
          if (what === "ask" && one.probe(now)) probes++;
          else if (what === "stray") one.failed(now, { good: 0, bad: 1, probe: false });
          else if (probes > 0) {
            probes--;
            if (what === "fail") one.failed(now, { good: 0, bad: 1, probe: true });
            else if (what === "answer") one.answered(now);
            else one.release();
          }
          expect(probes).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

describe("what a provider says of its limits", () => {
  it("is believed, up to five minutes, and never comes too early", () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.double({ min: 0, max: 1, noNaN: true }), (told, chance) => {
        const rest = new Pause();
        rest.begin(1_000, "rate_limited", { told, started: 1_000 }, () => chance);
        const asked = Math.min(told, 300_000);
        expect(rest.until - 1_000).toBeGreaterThanOrEqual(asked);
        expect(rest.until - 1_000).toBeLessThanOrEqual(asked * 1.1 + 0.001);
      }),
    );
  });

  it("is a second where it says nothing, twice as long each time, and failures together are one", () => {
    const rest = new Pause();
    let now = 0;
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      const told = undefined;
      expect(rest.begin(now, "rate_limited", { told, started: now }, () => 0)).toBe(true);
      for (let i = 1; i < 9; i++)
        expect(rest.begin(now + i, "rate_limited", { told, started: now }, () => 0)).toBe(false);
      expect(rest.until).toBe(now + seconds * 1_000);
      now = rest.until;
    }
    rest.end(now);
    rest.begin(now, "rate_limited", { told: undefined, started: now }, () => 0);
    expect(rest.until).toBe(now + 1_000);
  });

  it("is no news of a call that was asked before the one that ended it", () => {
    const one = target();
    fail(one, 1_000, "rate_limited", { retryAfterMs: 500 });
    const [before, after] = [1_100, 1_200];
    expect(one.answered(1_300, after)).toBe(true);
    const late = (started: number) =>
      one.failed(
        1_400,
        { kind: "rate_limited", message: "No.", retryAfterMs: 500 },
        { rests: "credential+model", probe: false, started },
        even,
      );
    expect(late(before)).toBeUndefined();
    expect(one.well).toBe(true);
    expect(late(after)).toBe("told");
  });

  it("trips no breaker, however often", () => {
    const one = target();
    for (let i = 0; i < 100; i++) fail(one, i, "rate_limited", { retryAfterMs: 10 });
    expect(one.rest(1_000)).toBeUndefined();
    expect(one.enter(1_000)).toBe("plain");
  });
});

describe("a budget of retries", () => {
  const spent = (of: UpstreamTarget, now: number, halved = false) => {
    let count = 0;
    while (of.again(now, halved)) count++;
    return count;
  };

  it("is three in ten seconds, or a tenth of what was answered; half of that for a client that tries again itself", () => {
    fc.assert(
      fc.property(fc.nat(2_000), fc.boolean(), (answers, halved) => {
        const one = target();
        for (let i = 0; i < answers; i++) one.answered(500, 500);
        const most = Math.floor(Math.max(3, answers / 10) * (halved ? 0.5 : 1));
        expect(spent(one, 900, halved)).toBe(most);
        expect(spent(one, 9_900, halved)).toBe(0);
        expect(spent(one, 11_000)).toBe(3);
      }),
    );
  });
});

describe("the way back", () => {
  /** So many answers a second for ten seconds, then a failure that lasts. */
  const ailing = (pace: number, awayMs: number) => {
    const one = target();
    for (let second = 0; second < 10; second++)
      for (let i = 0; i < pace; i++) one.answered(second * 1_000, second * 1_000);
    for (let i = 0; i < 5; i++) fail(one, 10_000);
    const back = 10_000 + awayMs;
    one.answered(back, back);
    return { one, back };
  };
  const passed = (of: UpstreamTarget, from: number, ms: number) => {
    let count = 0;
    // Ten times what it can take, evenly.
    for (let t = from; t < from + ms; t++)
      for (let i = 0; i < 5; i++)
        if (of.enter(t)) {
          count++;
          of.answered(t, t);
        }
    return count;
  };

  it("is little more than there was before, for half a minute, in each second of it", () => {
    for (const pace of [10, 100]) {
      const { one, back } = ailing(pace, 20_000);
      for (let second = 0; second < 30; second++)
        expect(passed(one, back + second * 1_000, 1_000)).toBeLessThanOrEqual(pace * 1.5);
      expect(passed(one, back + 31_000, 100)).toBe(500);
      expect(one.well).toBe(true);
    }
  });

  it("is open at once after a short absence", () => {
    const { one, back } = ailing(100, 3_000);
    expect(one.well).toBe(true);
    expect(passed(one, back, 100)).toBe(500);
  });

  it("doubles by the second where nothing was asked before", () => {
    const one = target();
    for (let i = 0; i < 5; i++) fail(one, 0);
    one.answered(20_000, 20_000);
    const each = [0, 1, 2, 3].map((second) => passed(one, 20_000 + second * 1_000, 1_000));
    for (const [i, count] of each.entries())
      expect(Math.abs(count - 5 * 2 ** i)).toBeLessThan(2 + i);
  });
});

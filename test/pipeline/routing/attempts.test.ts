// The candidate that is called after a failure, for each stage of a call and each kind of error:
// the combination of both tables. The pipeline does not even check after content was sent; that the
// table would forbid it is tested here.
import { createCallFacts } from "../../kit/call-facts.ts";
import { describe, expect, it } from "vitest";
import { ERRORS, createFault, type ErrorKind } from "tollgate/plugin";
import { getFault } from "../../../src/model/error.ts";
import { FAILURE_POINTS, type FailurePoint } from "../../../src/model/call-retry.ts";
import { AttemptScheduler } from "../../../src/pipeline/routing/attempt-scheduler.ts";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { TargetHealth } from "../../../src/pipeline/routing/target-health.ts";
import { attributeFault } from "../../../src/pipeline/faults/fault-source.ts";

const KINDS = Object.keys(ERRORS) as ErrorKind[];

/** Attempts read the clock themselves, and no result here depends on elapsed time. */
const clock = () => performance.now();

const TIMES = { totalMs: 60_000, classes: new Map() };

let rests = new TargetHealth();

function candidate(provider: string): HostCandidate {
  const name = { provider, credential: "c", model: "m", base: "" };
  const target = rests.target(name);
  return {
    id: `${provider}/m`,
    provider,
    credential: "c",
    info: { operation: "chat" },
    mounted: { target, endpoint: { protocol: null }, provider: { timeouts: TIMES } },
  } as never;
}

function attemptsOf(
  candidates: readonly HostCandidate[],
  on: readonly ErrorKind[],
  most = { perTarget: 1, total: 5 },
): AttemptScheduler {
  const gen = { retries: most, targetHealth: rests, timeouts: {} };
  const x = { state: { gen, connection: { req: { headers: {} } }, routing: {}, billing: {} } };
  const plan = {
    candidates,
    otherEndpoints: [],
    failoverOn: new Set(on),
    excluded: [],
    resolution: {},
  };
  return new AttemptScheduler(x as never, plan as never);
}

function next(stage: FailurePoint, kind: ErrorKind, on: readonly ErrorKind[]) {
  rests = new TargetHealth();
  const attempts = attemptsOf([candidate("a"), candidate("b")], on);
  const first = attempts.first()!.candidate;
  const failure = getFault(attributeFault(createFault(kind, "No."), "target", "a"))!;
  return attempts.nextAfter({ candidate: first, requestFirstCallAt: 0 } as never, stage, failure)
    ?.candidate.id;
}

it.each(Object.keys(FAILURE_POINTS) as FailurePoint[])("%s: only if it is configured", (stage) => {
  for (const kind of KINDS)
    for (const on of [KINDS, KINDS.filter((each) => each !== kind)]) {
      const named = on.includes(kind) || kind === "unsupported";
      const may = FAILURE_POINTS[stage].allowsFailover && ERRORS[kind][1] !== "never" && named;
      expect([kind, named, next(stage, kind, on)]).toEqual([kind, named, may ? "b/m" : undefined]);
    }
});

/** A call of the only client here. */
const of = (request: string) =>
  createCallFacts({ startedAt: clock(), client: "", requestId: request });

describe("candidates a and b, where a states a retry time and b is in cooldown", () => {
  const TOLD = createFault("rate_limited", "Slow down.", { retryAfterMs: 1_000 });
  /** `spent`: the retry budget is used up. */
  function story({ spent }: { spent: boolean }) {
    rests = new TargetHealth();
    const [a, b] = [candidate("a"), candidate("b")];
    for (let i = 0; i < 5; i++)
      rests.recordFailure(b, { kind: "overloaded", message: "No." }, of(`r${i}`));
    if (spent) while (rests.retryBudget("").takeRetry(false));
    const attempts = attemptsOf([a, b], KINDS, { perTarget: 2, total: 3 });
    expect(attempts.first()!.candidate).toBe(a);
    const failure = getFault(attributeFault(TOLD, "target", "a"))!;
    rests.recordFailure(a, failure, of("own"));
    const call = { candidate: a, requestFirstCallAt: clock() } as never;
    return { a, b, attempts, turn: attempts.nextAfter(call, "rejected", failure) };
  }

  it("b is called before a is called again", () => {
    const { b, turn } = story({ spent: false });
    expect(turn).toMatchObject({ candidate: b, reason: "spare" });
  });

  it("without a budget neither is called", () => {
    const { attempts, turn } = story({ spent: true });
    expect([turn, attempts.recheck()]).toEqual([undefined, undefined]);
  });
});

describe("if every candidate is in cooldown", () => {
  it("the one with the highest success rate is called, without a retry budget", () => {
    rests = new TargetHealth();
    const [a, b] = [candidate("a"), candidate("b")];
    for (let i = 0; i < 20; i++) {
      for (const one of [a, b])
        rests.recordFailure(one, { kind: "overloaded", message: "No." }, of(`r${i}`));
      // Before the cooldown, so that it ends none.
      if (i % 2 === 0) rests.recordSuccess(b, 0, "");
    }
    while (rests.retryBudget("").takeRetry(false));
    expect(attemptsOf([a, b], KINDS).first()).toMatchObject({ candidate: b, reason: "spare" });
  });

  it("none is called while each provider rejects its whole account", () => {
    rests = new TargetHealth();
    const a = candidate("a");
    const limited = { kind: "rate_limited", message: "No.", retryAfterMs: 30_000 } as const;
    rests.recordFailure(a, limited, of("r"));
    expect(attemptsOf([a], KINDS).first()?.candidate).toBe(a);
    rests.recordFailure(
      a,
      { ...limited, retryAfterMs: 40_000 },
      { ...of("r"), limitScope: "account" },
    );
    expect(attemptsOf([a], KINDS).first()).toBeUndefined();
  });
});

// Which other candidate is asked after a failure, for each stage of a call and each kind: what the two tables say together. The walk does
// not even ask once content has left; that the table would forbid it is seen here.
import { callFacts } from "../kit/call-facts.ts";
import { describe, expect, it } from "vitest";
import { ERRORS, fault, type ErrorKind } from "tollgate/plugin";
import { faultOf } from "../../src/model/error.ts";
import { STAGES, type CallStage } from "../../src/model/retry.ts";
import { Attempts } from "../../src/walk/candidates/attempts.ts";
import type { HostCandidate } from "../../src/walk/mounted.ts";
import { RestingTargets } from "../../src/walk/candidates/resting.ts";
import { blame } from "../../src/walk/upstream/blame.ts";

const KINDS = Object.keys(ERRORS) as ErrorKind[];

/** Attempts read it themselves, and no result here depends on how much time passes. */
const clock = () => performance.now();

const TIMES = { totalMs: 60_000, classes: new Map() };

let rests = new RestingTargets();

function candidate(provider: string): HostCandidate {
  const name = { provider, credential: "c", model: "m", base: "" };
  const target = rests.target(name);
  return {
    id: `${provider}/m`,
    provider,
    credential: "c",
    info: { kind: "chat" },
    "~": { target, endpoint: { protocol: null }, provider: { timeouts: TIMES } },
  } as never;
}

function attemptsOf(
  candidates: readonly HostCandidate[],
  on: readonly ErrorKind[],
  most = { target: 1, all: 5 },
): Attempts {
  const gen = { attempts: most, rests, timeouts: {} };
  const x = { "~": { gen, req: { headers: {} } } };
  const plan = { candidates, others: [], on: new Set(on), out: [], resolution: {} };
  return new Attempts(x as never, plan as never);
}

function next(stage: CallStage, kind: ErrorKind, on: readonly ErrorKind[]) {
  rests = new RestingTargets();
  const attempts = attemptsOf([candidate("a"), candidate("b")], on);
  const first = attempts.first()!.candidate;
  const failure = faultOf(blame(fault(kind, "No."), "target", "a"))!;
  return attempts.after({ candidate: first, began: 0 } as never, stage, failure)?.candidate.id;
}

it.each(Object.keys(STAGES) as CallStage[])("%s: where it says so, and nowhere else", (stage) => {
  for (const kind of KINDS)
    for (const on of [KINDS, KINDS.filter((each) => each !== kind)]) {
      const named = on.includes(kind) || kind === "unsupported";
      const may = STAGES[stage].next && ERRORS[kind][1] !== "never" && named;
      expect([kind, named, next(stage, kind, on)]).toEqual([kind, named, may ? "b/m" : undefined]);
    }
});

/** A call of the only client that there is here. */
const of = (request: string) => callFacts({ started: clock(), who: "", request });

describe("of a and b, where a says how long it refuses and b is in cooldown", () => {
  const TOLD = fault("rate_limited", "Slow down.", { retryAfterMs: 1_000 });
  /** `spent`: the budget of retries is used up. */
  function story({ spent }: { spent: boolean }) {
    rests = new RestingTargets();
    const [a, b] = [candidate("a"), candidate("b")];
    for (let i = 0; i < 5; i++)
      rests.failed(b, { kind: "overloaded", message: "No." }, of(`r${i}`));
    if (spent) while (rests.budget("").take(false));
    const attempts = attemptsOf([a, b], KINDS, { target: 2, all: 3 });
    expect(attempts.first()!.candidate).toBe(a);
    const failure = faultOf(blame(TOLD, "target", "a"))!;
    rests.failed(a, failure, of("own"));
    const call = { candidate: a, began: clock() } as never;
    return { a, b, attempts, turn: attempts.after(call, "refused", failure) };
  }

  it("b is called before a is called again", () => {
    const { b, turn } = story({ spent: false });
    expect(turn).toMatchObject({ candidate: b, pass: "spare" });
  });

  it("without a budget neither is called", () => {
    const { attempts, turn } = story({ spent: true });
    expect([turn, attempts.lastLook()]).toEqual([undefined, undefined]);
  });
});

describe("where every candidate is in cooldown", () => {
  it("the one that succeeds most often is called, without a budget", () => {
    rests = new RestingTargets();
    const [a, b] = [candidate("a"), candidate("b")];
    for (let i = 0; i < 20; i++) {
      for (const one of [a, b])
        rests.failed(one, { kind: "overloaded", message: "No." }, of(`r${i}`));
      // Older than the cooldown, so that it ends none.
      if (i % 2 === 0) rests.answered(b, 0, "");
    }
    while (rests.budget("").take(false));
    expect(attemptsOf([a, b], KINDS).first()).toMatchObject({ candidate: b, pass: "spare" });
  });

  it("nothing is called while each provider refuses its whole account", () => {
    rests = new RestingTargets();
    const a = candidate("a");
    const limited = { kind: "rate_limited", message: "No.", retryAfterMs: 30_000 } as const;
    rests.failed(a, limited, of("r"));
    expect(attemptsOf([a], KINDS).first()?.candidate).toBe(a);
    rests.failed(a, { ...limited, retryAfterMs: 40_000 }, { ...of("r"), scope: "account" });
    expect(attemptsOf([a], KINDS).first()).toBeUndefined();
  });
});

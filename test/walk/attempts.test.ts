// Which other candidate is asked after a failure, for each stage of a call and each kind: what the two tables say together. The walk does
// not even ask once content has left; that the table would forbid it is seen here.
import { describe, expect, it } from "vitest";
import { ERRORS, fault, type ErrorKind } from "tollgate/plugin";
import { faultOf } from "../../src/model/error.ts";
import { STAGES, type CallStage } from "../../src/model/retry.ts";
import { Attempts } from "../../src/walk/candidates/attempts.ts";
import type { HostCandidate } from "../../src/walk/mounted.ts";
import { Pause } from "../../src/walk/targets/pause.ts";
import { UpstreamTarget } from "../../src/walk/targets/upstream-target.ts";
import { blame } from "../../src/walk/upstream/blame.ts";

const KINDS = Object.keys(ERRORS) as ErrorKind[];

// By the clock: attempts read it themselves, and no result here hangs on how much of it passes.
const clock = () => performance.now();

const TIMES = { totalMs: 60_000, classes: new Map() };

function candidate(provider: string): HostCandidate {
  const name = { provider, credential: "c", model: "m", base: "" };
  const target = new UpstreamTarget(name, new Pause(), new Pause());
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
  const rest = ({ "~": { target } }: HostCandidate) => target.rest(clock());
  const gen = { attempts: most, rests: { rest }, timeouts: {} };
  const x = { "~": { gen, req: { headers: {} } } };
  const plan = { candidates, others: [], on: new Set(on), out: [], resolution: {} };
  return new Attempts(x as never, plan as never);
}

function next(stage: CallStage, kind: ErrorKind, on: readonly ErrorKind[]) {
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

describe("of a and b, where a says how long it refuses and b rests", () => {
  const TOLD = fault("rate_limited", "Slow down.", { retryAfterMs: 1_000 });
  /** `spent`: b has been tried as often as it may be while it rests. */
  function story({ spent }: { spent: boolean }) {
    const [a, b] = [candidate("a"), candidate("b")];
    const now = clock();
    const bad = { kind: "overloaded", message: "No." } as const;
    for (let i = 0; i < 5; i++)
      b["~"].target.failed(now, bad, { rests: "target", probe: false, started: now }, () => 0.5);
    if (spent) while (b["~"].target.again(now, false));
    const attempts = attemptsOf([a, b], KINDS, { target: 2, all: 3 });
    expect(attempts.first()!.candidate).toBe(a);
    const failure = faultOf(blame(TOLD, "target", "a"))!;
    const of = { rests: "credential+model", probe: false, started: now } as const;
    a["~"].target.failed(clock(), failure, of, () => 0.5);
    const turn = attempts.after({ candidate: a, began: now } as never, "refused", failure);
    return { a, b, attempts, turn };
  }

  it("b is asked before a is asked again", () => {
    const { b, turn } = story({ spent: false });
    expect(turn).toMatchObject({ candidate: b, pass: "spare" });
  });

  it("where b may not be asked it is waited for a moment, and then a is asked again", () => {
    const { a, attempts, turn } = story({ spent: true });
    expect(turn).toBeUndefined();
    expect(attempts.patience).toBeGreaterThan(0);
    expect(attempts.lastLook()).toMatchObject({ candidate: a, fresh: true });
  });

  it("b is asked where it has come back by then", () => {
    const { b, attempts } = story({ spent: true });
    b["~"].target.wake(clock());
    expect(attempts.lastLook()).toMatchObject({ candidate: b, pass: "plain" });
  });
});

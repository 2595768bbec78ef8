// Which other candidate is asked after a failure, for each stage of a call and each kind: what the two tables say together. The walk does
// not even ask once content has left; that the table would forbid it is seen here.
import { expect, it } from "vitest";
import { ERRORS, fault, type ErrorKind } from "tollgate/plugin";
import { faultOf } from "../../src/model/error.ts";
import { STAGES, type CallStage } from "../../src/model/retry.ts";
import { Attempts } from "../../src/walk/candidates/attempts.ts";
import type { HostCandidate } from "../../src/walk/mounted.ts";
import { Pause } from "../../src/walk/targets/pause.ts";
import { UpstreamTarget } from "../../src/walk/targets/upstream-target.ts";
import { blame } from "../../src/walk/upstream/blame.ts";

const KINDS = Object.keys(ERRORS) as ErrorKind[];

function candidate(provider: string): HostCandidate {
  const name = { provider, credential: "c", model: "m", base: "" };
  const target = new UpstreamTarget(name, new Pause(), new Pause());
  return {
    id: `${provider}/m`,
    provider,
    credential: "c",
    "~": { target, endpoint: { protocol: null } },
  } as never;
}

function next(stage: CallStage, kind: ErrorKind, on: readonly ErrorKind[]) {
  const candidates = [candidate("a"), candidate("b")];
  const gen = { attempts: { target: 1, all: 5 }, rests: { rest: () => undefined } };
  const x = { "~": { gen, req: { headers: {} } } };
  const attempts = new Attempts(
    x as never,
    { candidates, others: [], on: new Set(on), out: [], resolution: {} } as never,
  );
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

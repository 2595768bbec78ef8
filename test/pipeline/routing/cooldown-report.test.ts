// `tollgate explain`, the Routing page, and `tollgate status` use one cooldown report. The reported
// order equals the next request's, and its record lists the candidates that it did not call.
import fc from "fast-check";
import { expect, it } from "vitest";
import { createFault } from "tollgate/plugin";
import { getFault } from "../../../src/model/error.ts";
import { orderCandidates } from "../../../src/admin/commands/explanation.ts";
import { AttemptScheduler } from "../../../src/pipeline/routing/attempt-scheduler.ts";
import { TargetHealth } from "../../../src/pipeline/routing/target-health.ts";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { COOLDOWN_STATES } from "../../../src/pipeline/targets/target-status.ts";
import { attributeFault } from "../../../src/pipeline/faults/fault-source.ts";
import { createCallFacts } from "../../kit/call-facts.ts";
import { trialCount } from "../../kit/law-effort.ts";

const NAMES = ["a", "b", "c"] as const;
const KEYS = ["anna", "ben"] as const;
const OTHERS = { anna: ["ben"], ben: ["anna"] } as const;
const TIMES = { totalMs: 60_000, classes: new Map() };

const event = fc.record({
  at: fc.constantFrom(...NAMES),
  key: fc.constantFrom(...KEYS),
  does: fc.constantFrom("fails", "fails", "is limited", "account", "rejects", "answers", "waits"),
  times: fc.integer({ min: 1, max: 7 }),
});

function stage() {
  let now = 1_000_000;
  const rests = new TargetHealth(undefined, { now: () => now, schedule() {} });
  const candidates = NAMES.map((provider) => {
    const target = rests.target({ provider, credential: "c", model: "m", base: "" });
    return {
      id: `${provider}/m`,
      provider,
      credential: "c",
      model: "m",
      info: { operation: "chat" },
      mounted: { target, endpoint: { protocol: null }, provider: { timeouts: TIMES } },
    } as unknown as HostCandidate;
  });
  let n = 0;
  const happens = ({
    at,
    key,
    does,
    times,
  }: typeof event extends fc.Arbitrary<infer E> ? E : never) => {
    const candidate = candidates.find(({ provider }) => provider === at)!;
    for (let i = 0; i < times; i++) {
      now += 10;
      if (does === "waits") now += 3_000;
      else if (does === "answers") rests.recordSuccess(candidate, now - 1, key);
      else {
        const kind =
          does === "rejects" ? "upstream_auth" : does === "fails" ? "overloaded" : "rate_limited";
        const told = does === "is limited" || does === "account" ? { retryAfterMs: 20_000 } : {};
        const failure = getFault(attributeFault(createFault(kind, "No.", told), "target", at))!;
        rests.recordFailure(
          candidate,
          failure,
          createCallFacts({
            startedAt: now - 1,
            client: key,
            requestId: `r${n++}`,
            ...(does === "account" && { limitScope: "account" as const }),
          }),
        );
      }
    }
  };
  const asks = (key: string) => {
    const gen = { retries: { perTarget: 1, total: 5 }, targetHealth: rests, timeouts: {} };
    const routing = { coolingDown: undefined as never };
    const connection = { req: { headers: {} } };
    const x = { identity: { id: key }, state: { gen, connection, routing, billing: {} } };
    const plan = {
      candidates: rests.inOrder(candidates, key).candidates,
      others: [],
      on: new Set(),
      out: [],
    };
    const turn = new AttemptScheduler(x as never, { ...plan, resolution: {} } as never).first();
    if (turn?.reason === "probe") turn.candidate.mounted.target.releaseProbe(key);
    const recorded = (routing.coolingDown ?? []) as readonly { candidate: HostCandidate }[];
    return {
      first: turn?.candidate.provider,
      recorded: recorded.map((one) => one.candidate.provider),
    };
  };
  return { rests, candidates, happens, asks };
}

it("the reported order is the order of the next request, for each key", () => {
  let cooled = 0;
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), fc.constantFrom(...KEYS), (events, key) => {
      const { rests, candidates, happens, asks } = stage();
      for (const each of events) happens(each);
      const all = rests.cooldowns();
      const turns = orderCandidates(
        candidates,
        (one) => all.filter((rest) => rest.provider === one.provider),
        { key },
      );
      const { first, recorded } = asks(key);
      const [head] = turns;
      const told = head!.callOrder === "not_called" ? undefined : head!.candidate.provider;
      // A recovering target gets a share of the requests, so either is right.
      if (!all.every(({ state }) => COOLDOWN_STATES.has(state))) return;
      // A target with recent failures but no cooldown has no report, so its lower success rate is
      // unknown here.
      const unreported = candidates.some(
        ({ provider, mounted: { target } }) =>
          !target.isHealthy && !all.some((rest) => rest.provider === provider),
      );
      if (unreported) return;
      if (turns.some(({ isCoolingDown }) => isCoolingDown)) cooled++;
      expect(told).toBe(first);
      // Each candidate that is skipped before the first call is recorded. The report shows its
      // cooldown or that of other keys, or it fails more often than one in cooldown.
      for (const provider of recorded) {
        const { callOrder, cooldown } = turns.find(
          ({ candidate }) => candidate.provider === provider,
        )!;
        if (callOrder === "next")
          expect([provider, cooldown?.keys]).toEqual([provider, OTHERS[key]]);
        else expect(callOrder).toMatch(/^(first|last|not_called)$/);
      }
      if (told === undefined) {
        expect(recorded.toSorted()).toEqual([...NAMES]);
      }
    }),
    { numRuns: trialCount(600) },
  );
  expect(cooled).toBeGreaterThan(5);
});

it.each([
  [
    "a limit of the account refuses until it is over, also where a longer cooldown comes after it",
    "account",
    "not_called",
  ],
  ["a limit decides the order, also where a longer cooldown comes after it", "is limited", "last"],
] as const)("%s", (_, does, turn) => {
  const { rests, candidates, happens, asks } = stage();
  const [first] = candidates;
  for (const at of ["a", "b"] as const) happens({ at, key: "anna", does, times: 1 });
  happens({ at: "a", key: "ben", does: "waits", times: 5 });
  happens({ at: "a", key: "anna", does: "fails", times: 5 });
  const state = { state: "retry_after", rejectsRequests: does === "account" };
  expect(rests.statusOf(first!, "anna")).toMatchObject(state);
  const all = rests.cooldowns();
  expect(all.find(({ provider }) => provider === "a")).toMatchObject(state);
  const turns = orderCandidates(
    candidates,
    (one) => all.filter((rest) => rest.provider === one.provider),
    {
      key: "anna",
    },
  );
  expect(turns.find(({ candidate }) => candidate === first)).toMatchObject({ callOrder: turn });
  expect(asks("anna").first).toBe("c");
});

it("a candidate that fails far more often than one in cooldown is called after it, wherever the config lists it", () => {
  const { rests, candidates, happens, asks } = stage();
  happens({ at: "a", key: "ben", does: "fails", times: 7 });
  happens({ at: "a", key: "anna", does: "fails", times: 4 });
  happens({ at: "b", key: "anna", does: "fails", times: 5 });
  happens({ at: "c", key: "anna", does: "fails", times: 5 });
  expect(rests.statusOf(candidates[0]!, "anna")).toBeUndefined();
  expect(asks("anna").first).toBe("b");
});

it("if every provider rejects, none is called and all are recorded", () => {
  const { rests, candidates, happens, asks } = stage();
  for (const at of NAMES) happens({ at, key: "ben", does: "account", times: 1 });
  const all = rests.cooldowns();
  const turns = orderCandidates(
    candidates,
    (one) => all.filter((rest) => rest.provider === one.provider),
    {
      key: "anna",
    },
  );
  expect(turns.map(({ callOrder }) => callOrder)).toEqual(NAMES.map(() => "not_called"));
  expect(asks("anna")).toEqual({ first: undefined, recorded: [...NAMES] });
});

it("a cooldown of one key is reported with the key, and changes the order for that key only", () => {
  const { rests, candidates, happens, asks } = stage();
  happens({ at: "a", key: "anna", does: "fails", times: 5 });
  const all = rests.cooldowns();
  expect(all).toMatchObject([{ provider: "a", state: "open", keys: ["anna"] }]);
  const first = (key: string | undefined) =>
    orderCandidates(candidates, (one) => all.filter((rest) => rest.provider === one.provider), {
      key,
    })[0]!.candidate.provider;
  expect([first("anna"), first("ben"), first(undefined)]).toEqual(["b", "a", "a"]);
  expect([asks("anna").first, asks("ben").first]).toEqual(["b", "a"]);
});

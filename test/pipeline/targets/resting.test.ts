// Effects of one response, its reports, and how a client indicates its own retries.
import { createCallFacts } from "../../kit/call-facts.ts";
import fc from "fast-check";
import { expect, it } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import { createAccountLimitedError } from "../../../src/pipeline/stages/dispatch.ts";
import { TargetHealth } from "../../../src/pipeline/routing/target-health.ts";
import { hasRetryHeader } from "../../../src/pipeline/exchange/client-retries.ts";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { UpstreamHttpResponse } from "../../../src/pipeline/upstream/upstream-http-response.ts";
import { TimerWheel } from "../../../src/pipeline/admission/timer-wheel.ts";
import { TIMEOUTS } from "../../kit/test-services.ts";

function stage() {
  let now = 1_000;
  const told: string[] = [];
  const rests = new TargetHealth(
    {
      onCooldown: ({ model, reason }, first) => void told.push(`${model} ${reason} ${first}`),
      onRecovery: ({ model }) => void told.push(`${model} again`),
    },
    { now: () => now, schedule: () => {} },
  );
  const candidate = (model: string): HostCandidate => {
    const name = { provider: "p", credential: "c", model, base: "http://p.test" };
    return { ...name, mounted: { target: rests.target(name) } } as unknown as HostCandidate;
  };
  const refused = (one: HostCandidate, started = now) =>
    rests.recordFailure(
      one,
      { kind: "upstream_auth", message: "No." },
      createCallFacts({ startedAt: started }),
    );
  return { rests, told, candidate, refused, later: (ms: number) => (now += ms) };
}

it("a response of any model ends the cooldown of its credential, and is reported once", () => {
  const { rests, told, candidate, refused, later } = stage();
  const [one, other] = [candidate("m"), candidate("n")];
  refused(one);
  expect([rests.cooldownOf(one, "k1")?.reason, rests.cooldownOf(other, "k1")?.reason]).toEqual([
    "upstream_auth",
    "upstream_auth",
  ]);
  rests.recordSuccess(other, later(10), "k1");
  expect([
    rests.cooldownOf(one, "k1"),
    rests.cooldownOf(other, "k1"),
    rests.describeCooldowns(),
  ]).toEqual([undefined, undefined, []]);
  rests.recordSuccess(one, later(10), "k1");
  expect(told).toEqual(["null upstream_auth true", "null again"]);
});

it("a response to a call before the failure ends nothing", () => {
  const { rests, candidate, refused, later } = stage();
  const one = candidate("m");
  const before = later(0);
  later(5);
  refused(one);
  rests.recordSuccess(one, before, "k1");
  expect(rests.cooldownOf(one, "k1")?.reason).toBe("upstream_auth");
});

it("a client whose account is limited receives its provider's message, and nothing more", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1_001, max: 300_000 }), fc.nat(400_000), (told, later) => {
      let now = 1_000;
      const rests = new TargetHealth(undefined, { now: () => now, schedule: () => {} });
      const target = rests.target({ provider: "p", credential: "c", model: "m", base: "" });
      const one = { id: "p/m", provider: "p", credential: "c", mounted: { target } } as never;
      const limited = { kind: "rate_limited", message: "No.", retryAfterMs: told } as const;
      rests.recordFailure(one, limited, createCallFacts({ startedAt: now, limitScope: "account" }));
      now += later;
      const refuses = rests.statusOf(one, "k2")?.rejectsRequests ?? false;
      expect(refuses).toBe(later < told - 1_000);
      if (!refuses) return;
      const problem = getFault(createAccountLimitedError(rests, [one], "k2"))!;
      expect(problem).toMatchObject({ kind: "rate_limited", retryAfterMs: told - later });
    }),
  );
});

it("a client's own retry count is trusted, and nothing else is", () => {
  const headers = fc.dictionary(
    fc.constantFrom("x-stainless-retry-count", "x-retry-count", "amz-sdk-request", "x-other"),
    fc.constantFrom("0", "1", "2", "", "x", "attempt=1; max=3", "attempt=2; max=3", "attempt=12"),
  );
  fc.assert(
    fc.property(headers, (of) => {
      const counts = ["x-stainless-retry-count", "x-retry-count"].some((name) =>
        ["1", "2"].includes(of[name] ?? ""),
      );
      expect(hasRetryHeader(of)).toBe(counts || /attempt=(2|12)/.test(of["amz-sdk-request"] ?? ""));
    }),
  );
});

it.each([
  ["EPIPE", "send_interrupted"],
  ["ECONNRESET", "no_response"],
])("%s before the headers is %s", async (code, stage) => {
  using dog = new TimerWheel();
  const response = new UpstreamHttpResponse(dog, TIMEOUTS as never);
  const pool = {
    dispatch(_options: unknown, handler: UpstreamHttpResponse) {
      handler.onRequestStart({} as never);
      handler.onResponseError(undefined, Object.assign(new Error(code), { code }));
    },
  };
  const of = { method: "POST", path: "/", headers: [], body: null };
  const call = { failurePoint: "unsent", usesNewConnection: false } as const;
  await expect(response.dispatch(call, { pool } as never, of)).rejects.toThrow();
  expect(call.failurePoint).toBe(stage);
});

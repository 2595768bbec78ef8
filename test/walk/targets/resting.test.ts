// What one answer ends, what is told of it, and how a client says that it tries again by itself.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Fault } from "../../../src/model/error.ts";
import { comingBack } from "../../../src/walk/candidates/given-up.ts";
import { RestingTargets } from "../../../src/walk/candidates/resting.ts";
import { saysSo } from "../../../src/walk/candidates/client-retries.ts";
import type { HostCandidate } from "../../../src/walk/mounted.ts";
import { UpstreamResponse } from "../../../src/walk/upstream/response.ts";
import { Watchdog } from "../../../src/walk/bounds/watchdog.ts";
import { TIMEOUTS } from "../../kit/scene.ts";

function stage() {
  let now = 1_000;
  const told: string[] = [];
  const rests = new RestingTargets(
    {
      rests: ({ model, kind }, first) => void told.push(`${model} ${kind} ${first}`),
      recovered: ({ model }) => void told.push(`${model} again`),
    },
    () => now,
    () => 0,
  );
  const candidate = (model: string): HostCandidate => {
    const name = { provider: "p", credential: "c", model, base: "http://p.test" };
    return { ...name, "~": { target: rests.target(name) } } as unknown as HostCandidate;
  };
  const refused = (one: HostCandidate, started = now) =>
    rests.failed(one, { kind: "upstream_auth", message: "No." }, { pass: "plain", started });
  return { rests, told, candidate, refused, later: (ms: number) => (now += ms) };
}

it("an answer of any model ends the rest of its credential, and is told once", () => {
  const { rests, told, candidate, refused, later } = stage();
  const [one, other] = [candidate("m"), candidate("n")];
  refused(one);
  expect([rests.resting(one)?.why, rests.resting(other)?.why]).toEqual([
    "upstream_auth",
    "upstream_auth",
  ]);
  rests.answered(other, later(10));
  expect([rests.resting(one), rests.resting(other), rests.list()]).toEqual([
    undefined,
    undefined,
    [],
  ]);
  rests.answered(one, later(10));
  expect(told).toEqual(["null upstream_auth true", "null again"]);
});

it("an answer that was asked for before the failure ends nothing", () => {
  const { rests, candidate, refused, later } = stage();
  const one = candidate("m");
  const before = later(0);
  later(5);
  refused(one);
  rests.answered(one, before);
  expect(rests.resting(one)?.why).toBe("upstream_auth");
});

it("a client is told to wait for as long as a provider has said, and not for as long as is only supposed", () => {
  const rests = new RestingTargets();
  const candidate = (model: string, told?: number): HostCandidate => {
    const target = rests.target({ provider: "p", credential: "c", model, base: "" });
    // By the clock: what a client is told is counted from it.
    let now = performance.now();
    // Each time that it fails anew, twice as much is supposed.
    for (let i = 0; i < 8; i++) {
      const failure = {
        kind: "rate_limited",
        message: "No.",
        ...(told && { retryAfterMs: told }),
      } as const;
      const of = { rests: "credential+model", probe: false, started: now } as const;
      target.failed(now, failure, of, () => 0);
      now = target.limit.until;
    }
    return { id: `p/${model}`, provider: "p", "~": { target } } as unknown as HostCandidate;
  };
  const told = (one: HostCandidate) => {
    const failure: Fault = { kind: "rate_limited", message: "No." };
    comingBack(failure, rests, [one]);
    return failure.retryAfterMs;
  };
  expect(told(candidate("supposed"))).toBeLessThanOrEqual(15_000);
  expect(told(candidate("said", 59_000))).toBe(60_000);
});

it("a client that counts its own retries is believed, and nothing else is", () => {
  const headers = fc.dictionary(
    fc.constantFrom("x-stainless-retry-count", "x-retry-count", "amz-sdk-request", "x-other"),
    fc.constantFrom("0", "1", "2", "", "x", "attempt=1; max=3", "attempt=2; max=3", "attempt=12"),
  );
  fc.assert(
    fc.property(headers, (of) => {
      const counts = ["x-stainless-retry-count", "x-retry-count"].some((name) =>
        ["1", "2"].includes(of[name] ?? ""),
      );
      expect(saysSo(of)).toBe(counts || /attempt=(2|12)/.test(of["amz-sdk-request"] ?? ""));
    }),
  );
});

it.each([
  ["EPIPE", "cut"],
  ["ECONNRESET", "unanswered"],
])("%s before a head is %s", async (code, stage) => {
  using dog = new Watchdog();
  const response = new UpstreamResponse(dog, TIMEOUTS as never);
  const pool = {
    dispatch(_options: unknown, handler: UpstreamResponse) {
      handler.onRequestStart({} as never);
      handler.onResponseError(undefined, Object.assign(new Error(code), { code }));
    },
  };
  const of = { method: "POST", path: "/", headers: [], body: null };
  const call = { stage: "unsent", fresh: false } as const;
  await expect(response.go(call, { pool } as never, of)).rejects.toThrow();
  expect(call.stage).toBe(stage);
});

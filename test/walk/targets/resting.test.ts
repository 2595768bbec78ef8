// What one answer ends, what is told of it, and how a client says that it tries again by itself.
import { callFacts } from "../../kit/call-facts.ts";
import fc from "fast-check";
import { expect, it } from "vitest";
import { faultOf } from "../../../src/model/error.ts";
import { accountLimited } from "../../../src/walk/candidates/given-up.ts";
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
    { now: () => now, later: () => {} },
  );
  const candidate = (model: string): HostCandidate => {
    const name = { provider: "p", credential: "c", model, base: "http://p.test" };
    return { ...name, "~": { target: rests.target(name) } } as unknown as HostCandidate;
  };
  const refused = (one: HostCandidate, started = now) =>
    rests.failed(one, { kind: "upstream_auth", message: "No." }, callFacts({ started }));
  return { rests, told, candidate, refused, later: (ms: number) => (now += ms) };
}

it("an answer of any model ends the rest of its credential, and is told once", () => {
  const { rests, told, candidate, refused, later } = stage();
  const [one, other] = [candidate("m"), candidate("n")];
  refused(one);
  expect([rests.resting(one, "k1")?.why, rests.resting(other, "k1")?.why]).toEqual([
    "upstream_auth",
    "upstream_auth",
  ]);
  rests.answered(other, later(10), "k1");
  expect([rests.resting(one, "k1"), rests.resting(other, "k1"), rests.list()]).toEqual([
    undefined,
    undefined,
    [],
  ]);
  rests.answered(one, later(10), "k1");
  expect(told).toEqual(["null upstream_auth true", "null again"]);
});

it("an answer that was asked for before the failure ends nothing", () => {
  const { rests, candidate, refused, later } = stage();
  const one = candidate("m");
  const before = later(0);
  later(5);
  refused(one);
  rests.answered(one, before, "k1");
  expect(rests.resting(one, "k1")?.why).toBe("upstream_auth");
});

it("a client whose account is limited is told what its provider said, and never more", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1_001, max: 300_000 }), fc.nat(400_000), (told, later) => {
      let now = 1_000;
      const rests = new RestingTargets(undefined, { now: () => now, later: () => {} });
      const target = rests.target({ provider: "p", credential: "c", model: "m", base: "" });
      const one = { id: "p/m", provider: "p", credential: "c", "~": { target } } as never;
      const limited = { kind: "rate_limited", message: "No.", retryAfterMs: told } as const;
      rests.failed(one, limited, callFacts({ started: now, scope: "account" }));
      now += later;
      const refuses = rests.rest(one, "k2")?.refuses ?? false;
      expect(refuses).toBe(later < told - 1_000);
      if (!refuses) return;
      const problem = faultOf(accountLimited(rests, [one], "k2"))!;
      expect(problem).toMatchObject({ kind: "rate_limited", retryAfterMs: told - later });
    }),
  );
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

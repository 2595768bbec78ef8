import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DataPolicy, Privacy, Retention } from "tollgate/plugin";
import { effectivePolicy, satisfies, type PolicyInputs } from "../../../src/catalog/data-policy.ts";
import { trialCount } from "../../kit/law-effort.ts";

const NOW = Date.parse("2026-11-21");
const EVIDENCE = ["https://example.com/policy"];

const retention: fc.Arbitrary<Retention> = fc.oneof(
  fc.constantFrom<Retention>(
    { kind: "zero" },
    { kind: "memory" },
    { kind: "until_deleted" },
    { kind: "unknown" },
  ),
  fc.integer({ min: 1, max: 60 }).map((days): Retention => ({ kind: "days", days })),
);
const level: fc.Arbitrary<DataPolicy> = fc.record({
  retention,
  trains: fc.constantFrom("no", "yes", "opt_out", "unknown"),
  requires: fc.constantFrom(undefined, "none", "console", "contract", "unavailable", "unknown"),
  zeroWhen: fc.constantFrom(undefined, "credential", "control"),
  controls: fc.constantFrom(
    undefined,
    [{ set: { store: false } }],
    [{ protocol: "responses", set: { store: false } }],
    [{ protocol: "messages", set: { store: false } }],
  ),
  stateful: fc.constantFrom(undefined, ["state.store" as const]),
  evidence: fc.constantFrom(undefined, EVIDENCE, ["somewhere"]),
  expires: fc.constantFrom(undefined, "2026-01-01", "2027-01-01", "rubbish"),
});
const facts: fc.Arbitrary<PolicyInputs> = fc.record({
  provider: fc.option(level, { nil: undefined }),
  endpoint: fc.option(level, { nil: undefined }),
  model: fc.option(level, { nil: undefined }),
  exceptions: fc.array(level, { maxLength: 2 }),
  protocol: fc.constantFrom(undefined, null, "responses"),
  credential: fc.option(
    fc.record({
      declared: fc.boolean(),
      until: fc.constantFrom("2026-01-01", "2027-01-01", "rubbish"),
    }),
    { nil: undefined },
  ),
  features: fc.constantFrom(undefined, [], ["state.store" as const]),
  trusted: fc.boolean(),
  now: fc.constant(NOW),
});
const wanted: fc.Arbitrary<Privacy> = fc.constantFrom("required", "strict");

const RANK: Record<Retention["kind"], number> = {
  zero: 0,
  memory: 1,
  days: 2,
  until_deleted: 3,
  unknown: 4,
};
const worseRetention = (r: Retention): Retention[] =>
  r.kind === "days"
    ? [{ kind: "days", days: r.days + 1 }, { kind: "until_deleted" }, { kind: "unknown" }]
    : (Object.keys(RANK) as Retention["kind"][])
        .filter((k) => RANK[k] > RANK[r.kind])
        .map((k) => (k === "days" ? { kind: "days", days: 30 } : { kind: k }) as Retention);

/** Every way in which a level could be known to be worse. */
function worsened(l: DataPolicy): DataPolicy[] {
  const trains = ["no", "opt_out", "unknown", "yes"] as const;
  return [
    ...worseRetention(l.retention).map((r) => ({ ...l, retention: r })),
    ...trains.slice(trains.indexOf(l.trains) + 1).map((t) => ({ ...l, trains: t })),
    { ...l, evidence: undefined },
    { ...l, expires: "2026-01-01" },
    { ...l, requires: "unavailable" as const },
    { ...l, stateful: ["state.store" as const] },
  ];
}

describe("effective policy", () => {
  it("worse information never turns a rejection into an acceptance", () => {
    fc.assert(
      fc.property(facts, wanted, (f, privacy) => {
        if (satisfies(privacy, effectivePolicy(f))) return;
        for (const at of ["provider", "endpoint", "model"] as const)
          for (const worse of f[at] ? worsened(f[at] as DataPolicy) : [])
            expect(satisfies(privacy, effectivePolicy({ ...f, [at]: worse }))).toBe(false);
        for (const [i, one] of (f.exceptions ?? []).entries())
          for (const worse of worsened(one as DataPolicy))
            expect(
              satisfies(
                privacy,
                effectivePolicy({ ...f, exceptions: f.exceptions!.with(i, worse) }),
              ),
            ).toBe(false);
        expect(satisfies(privacy, effectivePolicy({ ...f, trusted: false }))).toBe(false);
        expect(satisfies(privacy, effectivePolicy({ ...f, features: ["state.store"] }))).toBe(
          false,
        );
        expect(satisfies(privacy, effectivePolicy({ ...f, credential: { declared: false } }))).toBe(
          false,
        );
      }),
      { numRuns: trialCount(3000) },
    );
  });

  it("unknown never qualifies, and strict requires at least as much as required", () => {
    fc.assert(
      fc.property(facts, (f) => {
        const policy = effectivePolicy(f);
        if (policy.retention.kind === "unknown" || policy.trains !== "no")
          expect(satisfies("required", policy)).toBe(false);
        if (satisfies("strict", policy)) expect(satisfies("required", policy)).toBe(true);
      }),
      { numRuns: trialCount(3000) },
    );
  });

  it("without facts the policy is unknown, with a reason", () => {
    const policy = effectivePolicy({ provider: undefined, trusted: true, now: NOW });
    expect(policy).toMatchObject({
      retention: { kind: "unknown" },
      trains: "unknown",
      basis: "unknown",
    });
    expect(policy.reasons).toContain("retention_unknown");
  });

  const zero: DataPolicy = { retention: { kind: "zero" }, trains: "no", evidence: EVIDENCE };
  const days: DataPolicy = {
    retention: { kind: "days", days: 30 },
    trains: "no",
    zeroWhen: "credential",
    evidence: EVIDENCE,
  };
  it.each<[string, Partial<PolicyInputs>, boolean, string]>([
    ["evidence of zero", { provider: zero }, true, "published"],
    ["zero without evidence", { provider: { ...zero, evidence: [] } }, false, "published"],
    ["a third party's zero", { provider: zero, trusted: false }, false, "published"],
    ["expired", { provider: { ...zero, expires: "2026-11-20" } }, false, "published"],
    ["thirty days", { provider: days }, false, "published"],
    [
      "thirty days, declared",
      { provider: days, credential: { declared: true, until: "2027-01-01" } },
      true,
      "declared",
    ],
    [
      "a declaration that has ended",
      { provider: days, credential: { declared: true, until: "2026-11-20" } },
      false,
      "published",
    ],
    [
      "a declaration that cannot be read",
      { provider: days, credential: { declared: true, until: "soon" } },
      false,
      "published",
    ],
    [
      "unknown, declared",
      { provider: undefined, credential: { declared: true } },
      true,
      "declared",
    ],
    [
      "a model that cannot have it",
      { provider: days, model: { requires: "unavailable" }, credential: { declared: true } },
      false,
      "published",
    ],
    [
      "excluded by the operator",
      { provider: zero, credential: { declared: false } },
      false,
      "excluded",
    ],
    [
      "by control",
      { provider: { ...days, zeroWhen: "control", controls: [{ set: { store: false } }] } },
      true,
      "control",
    ],
    [
      "by control that is not sent there",
      {
        provider: {
          ...days,
          zeroWhen: "control",
          controls: [{ protocol: "responses", set: { store: false } }],
        },
        protocol: "chat-completions",
      },
      false,
      "published",
    ],
    [
      "by control, of a native endpoint",
      {
        provider: { ...days, zeroWhen: "control", controls: [{ set: { store: false } }] },
        protocol: null,
      },
      false,
      "published",
    ],
    [
      "an exception that keeps, beside a control",
      {
        provider: { ...days, zeroWhen: "control", controls: [{ set: { store: false } }] },
        exceptions: [{ retention: { kind: "days", days: 30 } }],
      },
      false,
      "control",
    ],
    [
      "an exception that its own control lifts",
      {
        provider: zero,
        exceptions: [{ ...days, zeroWhen: "control", controls: [{ set: { store: false } }] }],
      },
      true,
      "control",
    ],
    [
      "a tool that runs elsewhere, and nobody says what it keeps",
      { provider: zero, features: ["hosted.file_search"] },
      false,
      "published",
    ],
    [
      "a tool that is known to keep nothing",
      { provider: { ...zero, stateful: [] }, features: ["hosted.web_search"] },
      true,
      "published",
    ],
    [
      "a worse endpoint",
      { provider: zero, endpoint: { retention: { kind: "days", days: 1 } } },
      false,
      "published",
    ],
    [
      "a stateful feature",
      { provider: { ...zero, stateful: ["state.store"] }, features: ["state.store"] },
      false,
      "published",
    ],
  ])("%s", (_name, f, passes, basis) => {
    const policy = effectivePolicy({ provider: undefined, trusted: true, now: NOW, ...f });
    expect(satisfies("required", policy)).toBe(passes);
    expect(policy.basis).toBe(basis);
  });
});

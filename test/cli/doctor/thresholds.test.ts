// Thresholds of doctor: each slightly below and slightly above. An invalid date is never near.
import { expect, it } from "vitest";
import { checkPolicies } from "../../../src/cli/doctor/gateway.ts";
import { checkClock, checkFsync, checkFreeSpace } from "../../../src/cli/doctor/system.ts";
import { checkLookup, checkServedCertificate } from "../../../src/cli/doctor/network.ts";
import {
  CERTIFICATE_DAYS,
  expiryState,
  FREE_BYTES,
  FSYNC_MS,
  LOOKUP_MS,
  POLICY_DAYS,
  SKEW_MS,
  type DoctorFinding,
} from "../../../src/cli/doctor/finding.ts";

const DAY_MS = 86_400_000;
const after = (days: number) => new Date(Date.now() + days * DAY_MS).toUTCString();
const level = ([one]: readonly DoctorFinding[]) => one!.level;

it.each([undefined, "", "soon", "2027-13-45", "Invalid Date"])(
  "rejects %j as an expiry date",
  (at) => {
    for (const days of [0, 1, Infinity]) expect(expiryState(at, days)).toBe("unreadable");
    expect(checkServedCertificate("id", "said", at)).toMatchObject({
      level: "warning",
      message: expect.stringContaining("has an unreadable expiry date"),
    });
    if (at !== undefined) expect(policy({ expires: at })).toEqual("warning");
  },
);

it("a provider's certificate that expires soon", () => {
  const of = (days: number) => checkServedCertificate("id", "said", after(days)).level;
  expect([of(CERTIFICATE_DAYS + 0.1), of(CERTIFICATE_DAYS - 0.1), of(-1)]).toEqual([
    "ok",
    "warning",
    "warning",
  ]);
});

function policy(of: { readonly expires?: string; readonly until?: string }): string {
  const credentials = [{ name: "a", zdr: { declared: true, until: of.until } }];
  return level(
    checkPolicies(
      { providers: new Map([["p", { name: "p", credentials }]]) } as never,
      { providers: new Map([["p", { name: "p", dataPolicy: { expires: of.expires } }]]) } as never,
    ),
  );
}

it("a data policy that expires soon, known or declared; its last day counts", () => {
  expect(policy({ expires: after(POLICY_DAYS + 0.1) })).toBe("ok");
  expect(policy({ expires: after(POLICY_DAYS - 0.1) })).toBe("warning");
  const day = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
  expect([
    policy({ until: day(POLICY_DAYS + 1) }),
    policy({ until: day(POLICY_DAYS - 2) }),
  ]).toEqual(["ok", "warning"]);
  const said = (until: string) =>
    checkPolicies(
      {
        providers: new Map([["p", { name: "p", credentials: [{ name: "a", zdr: { until } }] }]]),
      } as never,
      { providers: new Map() } as never,
    )[0]!.message;
  expect(said(day(0))).toContain(" expires on ");
  expect(said(day(-1))).toContain(" expired on ");
});

it("clock offset", () => {
  const of = (skew: number) => level(checkClock([skew]));
  for (const sign of [1, -1]) {
    expect([of(sign * (SKEW_MS.warning - 1)), of(sign * (SKEW_MS.warning + 1))]).toEqual([
      "ok",
      "warning",
    ]);
    expect([of(sign * (SKEW_MS.error - 1)), of(sign * (SKEW_MS.error + 1))]).toEqual([
      "warning",
      "error",
    ]);
  }
});

it("free disk space", () => {
  const of = (free: number) => checkFreeSpace(free, "there").level;
  expect(
    [FREE_BYTES.warning, FREE_BYTES.warning - 1, FREE_BYTES.error, FREE_BYTES.error - 1].map(of),
  ).toEqual(["ok", "warning", "warning", "error"]);
});

it("latency of a durable write", () => {
  const of = (ms: number) => checkFsync(ms).level;
  const { warning, error } = FSYNC_MS;
  expect([warning, warning + 1, error, error + 1].map(of)).toEqual([
    "ok",
    "warning",
    "warning",
    "error",
  ]);
});

it("slow DNS lookup", () => {
  const of = (ms: number) => checkLookup("p", "p.example", { address: "192.0.2.1", ms }).level;
  expect([of(LOOKUP_MS), of(LOOKUP_MS + 1)]).toEqual(["ok", "warning"]);
});

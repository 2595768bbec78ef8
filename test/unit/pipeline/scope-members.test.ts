// Members of scopes are the same after the table has forgotten them. What one scope adds to a call
// does not depend on the others.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { ScopeConfig, ScopeSource } from "../../../src/config/gateway-config.ts";
import type { HostCall } from "../../../src/pipeline/exchange/call.ts";
import { chargeScopes } from "../../../src/pipeline/scopes/scope-charges.ts";
import { Scopes } from "../../../src/pipeline/scopes/scope-table.ts";
import type { Limit } from "../../../src/plugin/store/limit.ts";

const header = (name: string): ScopeSource => ({ kind: "header", text: `header:${name}`, name });
const label = (name: string): ScopeSource => ({ kind: "label", text: `label:${name}`, name });

const scope = (name: string, from: readonly ScopeSource[], more: Partial<ScopeConfig> = {}) =>
  ({
    name,
    from,
    within: "key",
    models: undefined,
    providers: undefined,
    credentials: undefined,
    labels: {},
    accounts: undefined,
    limits: [
      { unit: "requests", max: 5, per: "day" },
      { unit: "nano_usd", max: 5n, per: "day" },
    ],
    idleMs: 3_600_000,
    maxMembers: 10,
    overflow: "refuse",
    downgrade: undefined,
    missing: "skip",
    label: "text",
    hold: undefined,
    ...more,
  }) satisfies ScopeConfig;

const SECRET = Buffer.alloc(32);

/** Charges a call with these headers. */
function charge(scopes: Scopes, headers: Record<string, string>, n = 1, privacy = "off") {
  const limits: Limit[] = [];
  const labels: Record<string, string | undefined> = { team: "blue" };
  const call = {
    n,
    exchange: {
      headers,
      privacy,
      identity: { id: "alice" },
      state: {
        gen: { scopes },
        billing: {},
        admission: {},
        connection: { req: {} },
      },
    },
  };
  const holds = chargeScopes(call as unknown as HostCall, limits, labels);
  return { limits, labels, holds };
}

it("gives a member the same limits and hash after it was forgotten", () => {
  const config = scope("session", [header("x-session")]);
  const scopes = new Scopes([config], SECRET);
  const member = fc.record({
    owner: fc.constantFrom("", "key:a", "key:a+", "account:a"),
    value: fc.string(),
  });
  const members = fc.sample(
    fc.uniqueArray(member, {
      minLength: 50,
      maxLength: 100,
      selector: ({ owner, value }) => `${owner}\0${value}`,
    }),
    1,
  )[0]!;
  const read = () => members.map(({ owner, value }) => scopes.memberOf(config, owner, value));
  const before = read();
  expect(new Set(before.map(({ scope }) => scope)).size).toBe(members.length);
  expect(read().every((one, i) => one === before[i])).toBe(true);
  for (let i = 0; i < 10_000; i++) scopes.memberOf(config, "key:b", String(i));
  const options = { of: config.limits, countsOnly: false, isFirst: true };
  for (const [i, one] of read().entries()) {
    expect(one).not.toBe(before[i]);
    expect(one.scope).toBe(before[i]!.scope);
    expect(one.hash).toBe(before[i]!.hash);
    expect(one.limits(options)).toEqual(before[i]!.limits(options));
  }
});

it("counts a request once, and its money with each attempt", () => {
  const scopes = new Scopes([scope("session", [header("x-session")])], SECRET);
  const units = (n: number) => charge(scopes, { "x-session": "s" }, n).limits.map((l) => l.unit);
  expect(units(1)).toEqual(["requests", "nano_usd"]);
  expect(units(2)).toEqual(["nano_usd"]);
  expect(units(1)).toEqual(["requests", "nano_usd"]);
});

it("reads no label that another scope adds, in any order", () => {
  const own = scope("session", [header("x-session")]);
  const other = scope("copy", [label("session")]);
  const byTeam = scope("by_team", [label("team")]);
  for (const order of [
    [own, other, byTeam],
    [byTeam, other, own],
  ]) {
    const { labels, limits } = charge(new Scopes(order, SECRET), { "x-session": "s" });
    expect(labels).toEqual({ team: "blue", session: "s", by_team: "blue" });
    expect(limits).toHaveLength(4);
  }
});

it("labels a private request with a hash", () => {
  const scopes = new Scopes([scope("session", [header("x-session")], { hold: "hard" })], SECRET);
  const plain = charge(scopes, { "x-session": "s" });
  const hidden = charge(scopes, { "x-session": "s" }, 1, "strict");
  expect(plain.labels["session"]).toBe("s");
  expect(hidden.labels["session"]).toMatch(/^[\w-]{22}$/);
  expect(hidden.holds).toEqual(["hard"]);
});

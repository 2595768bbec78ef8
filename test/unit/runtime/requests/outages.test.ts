// Cooldowns of providers: one outage from the first failure to the first response, whatever several
// workers report.
import { expect, it } from "vitest";
import type { GatewayEvent } from "tollgate/plugin";
import { Outages } from "../../../../src/runtime/requests/outages.ts";

const of = { provider: "acme", credential: "main", model: null };
const fails = (at: number, more: object = {}) =>
  ({
    type: "cooldown_started",
    at,
    ...of,
    reason: "overloaded",
    until: at + 10,
    ...more,
  }) as GatewayEvent;
const answers = (at: number, more: object = {}) =>
  ({ type: "cooldown_ended", at, ...of, ...more }) as GatewayEvent;
const told = (...notices: readonly GatewayEvent[]): Outages => {
  const outages = new Outages();
  for (const notice of notices) outages.onEvent(notice);
  return outages;
};

it("lasts from the first failure to the first response", () => {
  const outages = told(fails(1), fails(5, { kind: "timeout" }), answers(9), answers(11), fails(20));
  expect(outages.listOf("acme")).toEqual([
    { ...of, errorKind: "overloaded", startedAt: 20, cooldownEndsAt: 30 },
    { ...of, errorKind: "overloaded", startedAt: 1, cooldownEndsAt: 15, recoveredAt: 9 },
  ]);
  expect(outages.listOf("other")).toEqual([]);
});

it("belongs to one credential and one model", () => {
  const outages = told(fails(1), fails(2, { model: "a" }), answers(3, { model: "a" }));
  expect(outages.listOf("acme")).toMatchObject([{ model: "a", recoveredAt: 3 }, { model: null }]);
  expect(outages.listOf("acme")[1]).not.toHaveProperty("to");
});

it("exists after a restart, and the number is limited", () => {
  const outages = told(
    ...Array.from({ length: 2_000 }, (_, i) => [fails(i), answers(i)]).flat(),
    fails(5_000),
  );
  const after = new Outages();
  after.restore(outages.serialize());
  expect(after.listOf("acme")).toEqual(outages.listOf("acme"));
  expect(outages.listOf("acme")).toHaveLength(20);
  expect((JSON.parse(outages.serialize().toString()) as unknown[]).length).toBe(500);
  // It continues the outage of the previous process.
  after.onEvent(answers(6_000));
  expect(after.listOf("acme")[0]).toMatchObject({ startedAt: 5_000, recoveredAt: 6_000 });
  for (const wrong of ["", "{}", "[{}]", '[{"provider":"a","credential":"b","model":1}]'])
    expect(() => after.restore(Buffer.from(wrong))).toThrow();
});

it("changes are counted, so that a file is written only after changes", () => {
  const outages = told(answers(1));
  expect(outages.version).toBe(0);
  outages.onEvent(fails(2));
  expect(outages.version).toBe(1);
});

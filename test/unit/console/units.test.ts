// The console's pages are a separate program for browsers: values that they repeat are compared
// with the gateway's here.
import { expect, it } from "vitest";
import { UNITS as SHOWN } from "../../../plugins/observers/console/web/pages/usage/usage-units.ts";
import { OUTCOME_STATUS } from "../../../plugins/observers/console/web/pages/requests-outcomes.ts";
import { ERRORS } from "../../../src/model/error.ts";
import { UNITS } from "../../../src/model/usage.ts";

it("the units of a page are the gateway's, in the same order", () => {
  expect(SHOWN).toEqual(UNITS);
});

it("the outcomes of a page are the gateway's error kinds, with their statuses", () => {
  const { ok, recovered, ...errors } = OUTCOME_STATUS;
  expect([ok, recovered]).toEqual([200, undefined]);
  expect(errors).toEqual(
    Object.fromEntries(Object.entries(ERRORS).map(([kind, [status]]) => [kind, status])),
  );
});

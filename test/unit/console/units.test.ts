// The console's pages are a program of their own, for browsers: what they repeat of the gateway is held to it here.
import { expect, it } from "vitest";
import { UNITS as SHOWN } from "../../../plugins/observers/console/web/pages/usage-units.ts";
import { UNITS } from "../../../src/model/usage.ts";

it("the units of a page are those of the gateway, in its order", () => {
  expect(SHOWN).toEqual(UNITS);
});

// Quantities of FOCUS lines.
import { expect, it } from "vitest";
import { FOCUS_COLUMNS, focusLine } from "../../src/cli/format/reports/focus-export.ts";
import { DOLLAR_VIEW } from "../../src/cli/support/currency-view.ts";

it.each([
  [{ images: 2 }, ["2", "Images"]],
  [{ images: 2, input: 5 }, ["5", "Tokens"]],
  [{ input: 5, output: 6 }, ["11", "Tokens"]],
  [{}, ["0", "Tokens"]],
])("%j is consumed as %j", (usage, quantity) => {
  const sum = { by: { day: "2026-11-01" }, usage, calls: 1, costNano: "1" } as never;
  const line = focusLine(sum, {}, { zone: undefined, view: DOLLAR_VIEW });
  const at = (name: string) => line[FOCUS_COLUMNS.indexOf(name)];
  expect([at("ConsumedQuantity"), at("ConsumedUnit")]).toEqual(quantity);
});

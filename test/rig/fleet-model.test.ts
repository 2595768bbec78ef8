import { expect, it } from "vitest";
import { broken, fleetModel, MEASURED } from "./fleet-model.ts";

it("what the table is shown for holds, and hangs on what was measured", () => {
  const table = fleetModel(MEASURED, 1, 30);
  expect(table.size).toBe(4);
  expect(broken(table)).toEqual([]);
  const dear = fleetModel({ ...MEASURED, statement: 300, meter: 30 }, 1, 10);
  expect(broken(dear)).toEqual(["10 nodes are carried by one core, exact"]);
});

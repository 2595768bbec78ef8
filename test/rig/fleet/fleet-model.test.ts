import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { broken, fleetModel, line, MEASURED } from "./fleet-model.ts";

it("the table's claims hold, and depend on measurements", () => {
  const table = fleetModel(MEASURED, 1, 30);
  expect(table.size).toBe(4);
  expect(broken(table)).toEqual([]);
  const dear = fleetModel({ ...MEASURED, statement: 300, meter: 30 }, 1, 10);
  expect(broken(dear)).toEqual(["10 nodes are carried by one core, exact"]);
});

it("docs/guides/fleet.md has the table that the command prints", async () => {
  const page = await readFile(new URL("../../../docs/guides/fleet.md", import.meta.url), "utf8");
  // Large fleets take longer.
  for (const [name, of] of fleetModel(MEASURED, 1, 30)) expect(page).toContain(line(name, of));
});

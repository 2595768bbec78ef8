import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { broken, fleetModel, line, MEASURED } from "./fleet-model.ts";

// Larger fleets take longer.
const table = fleetModel(MEASURED, 1, 30);

it("the table's claims hold, and depend on measurements", () => {
  expect(table.size).toBe(4);
  expect(broken(table)).toEqual([]);
  const dear = fleetModel({ ...MEASURED, statement: 300, meter: 30 }, 1, 10);
  expect(broken(dear)).toEqual(["10 nodes are carried by one core, exact"]);
});

it("docs/guides/fleet.md has the table that the command prints", async () => {
  const page = await readFile(new URL("../../../docs/guides/fleet.md", import.meta.url), "utf8");
  for (const [name, of] of table) expect(page).toContain(line(name, of));
});

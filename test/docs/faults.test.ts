import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PAGE, written } from "../../.build/faults.ts";

it("the page's table of faults is what the rig holds the gateway to; `.build/faults.ts` writes it", () => {
  const page = readFileSync(PAGE, "utf8");
  expect(page).toBe(written(page));
});

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PAGE, written } from "../../.build/retries.ts";

it("the table of retries on the page equals the data that the pipeline uses; `.build/retries.ts` writes it", () => {
  const page = readFileSync(PAGE, "utf8");
  expect(page).toBe(written(page));
});

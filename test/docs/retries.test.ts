import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PAGE, written } from "../../.build/retries.ts";

it("the page's table of retries is the data that the pipeline uses; `.build/retries.ts` writes it", () => {
  const page = readFileSync(PAGE, "utf8");
  expect(page).toBe(written(page));
});

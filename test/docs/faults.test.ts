import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PAGE, providerFailuresPage } from "../../.build/faults.ts";

it("the page of provider failures is the list that the rig tests the gateway with; `.build/faults.ts` writes it", () =>
  expect(readFileSync(PAGE, "utf8")).toBe(providerFailuresPage()));

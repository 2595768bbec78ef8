import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DEADLY, HELD } from "./failure-modes.ts";

it("the page for authors lists each of them", () => {
  const page = readFileSync(new URL("../../../docs/plugins/failures.md", import.meta.url), "utf8");
  const ways = [...Object.values(HELD), ...Object.values(DEADLY).map(({ what }) => what)];
  for (const what of ways) expect(page).toContain(`| ${what} |`);
});

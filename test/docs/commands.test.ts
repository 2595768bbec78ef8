import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PAGE, written } from "../../.build/commands.ts";

it("the page has every command with every option, as `--help` says them; `.build/commands.ts` writes it", async () => {
  const page = readFileSync(PAGE, "utf8");
  expect(page).toBe(await written(page));
  for (const option of ["--by", "--focus", "--csv", "--tz", "--outcome", "--failed"])
    expect(page).toContain(`${option}`);
});

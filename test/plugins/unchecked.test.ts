// Unverified claims of a provider are shown wherever it can be chosen.
import { expect, it } from "vitest";
import { ALL_ROWS } from "../../plugins/providers/provider-rows.ts";
import { createTestFolder } from "../kit/process/command-line.ts";

it("list shows unverified claims, for people and for programs", async () => {
  await using dir = await createTestFolder();
  const { out } = await dir.tollgate(["list", "providers"]);
  expect(out).toMatch(/\bhyperbolic\b.*experimental.*\(unverified: base, models, .*\)/);
  expect(out).toMatch(/\bgroq\b.*beta.*Groq$/m);
  const { plugins } = JSON.parse((await dir.tollgate(["list", "providers", "--json"])).out) as {
    plugins: readonly { name: string; unverified: readonly string[] }[];
  };
  const told = new Map(plugins.map(({ name, unverified }) => [name, unverified]));
  for (const { name, unverified = [] } of ALL_ROWS)
    expect(told.get(name), name).toEqual(unverified);
});

// What a provider claims of others without having checked it stands beside it wherever it is chosen from.
import { expect, it } from "vitest";
import { all } from "../../plugins/providers/rows.ts";
import { folder } from "../cli/cli.ts";

it("list shows what nobody has checked, for people and for programs", async () => {
  await using dir = await folder();
  const { stdout } = await dir.tollgate(["list", "providers"]);
  expect(stdout).toMatch(/\bhyperbolic\b.*experimental.*\(not checked: base, models, .*\)/);
  expect(stdout).toMatch(/\bgroq\b.*beta.*Groq$/m);
  const { plugins } = JSON.parse((await dir.tollgate(["list", "providers", "--json"])).stdout) as {
    plugins: readonly { name: string; unchecked: readonly string[] }[];
  };
  const told = new Map(plugins.map(({ name, unchecked }) => [name, unchecked]));
  for (const { name, unchecked = [] } of all) expect(told.get(name), name).toEqual(unchecked);
});

// A whole gateway, with a fake upstream behind it.
import { defineMiddleware } from "tollgate/plugin";
import { startGateway } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

/** Takes every key for its own name: two keys are two tenants. */
const door = defineMiddleware({
  api: 1,
  name: "acme-door",
  summary: "Lets every key in",
  sends: "nowhere",
  setup: () => ({ admit: (x, secret) => x.identify({ id: secret ?? "none" }) }),
});

test("the second answer is the first one, and only for the same key", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin, "acme-door": door },
    config: { middleware: ["acme-door", "acme"], providers: { demo: { use: "demo" } } },
  });
  const told = [];
  for (const [key, words] of [
    ["ann", "Hi"],
    ["ann", "Hi"],
    ["bob", "Hi"],
    ["ann", "Ho"],
  ] as const) {
    const { headers, text } = await at.ask("demo/echo", words, { key });
    told.push(`${headers["x-acme"]} ${text}`);
  }
  expect(told).toEqual(["miss Hi", "hit Hi", "miss Hi", "miss Ho"]);
  expect(at.calls).toHaveLength(3);
});

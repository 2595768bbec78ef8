// Runs the plugin in a gateway with a fake upstream.
import { defineMiddleware } from "tollgate/plugin";
import { startGateway } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

/** Uses the secret as the ID of the key, so two secrets are two keys. */
const anyKey = defineMiddleware({
  api: 1,
  name: "any-key",
  summary: "Accepts every key",
  sends: "nowhere",
  setup: () => ({ admit: (x, secret) => x.identify({ id: secret ?? "none" }) }),
});

test("repeats a response for the same key only", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin, "any-key": anyKey },
    config: { middleware: ["any-key", "acme"], providers: { demo: { use: "demo" } } },
  });
  const results = [];
  for (const [key, words] of [
    ["ann", "Hi"],
    ["ann", "Hi"],
    ["bob", "Hi"],
    ["ann", "Ho"],
  ] as const) {
    const { headers, text } = await at.ask("demo/echo", words, { key });
    results.push(`${headers["x-acme"]} ${text}`);
  }
  expect(results).toEqual(["miss Hi", "hit Hi", "miss Hi", "miss Ho"]);
  expect(at.calls).toHaveLength(3);
});

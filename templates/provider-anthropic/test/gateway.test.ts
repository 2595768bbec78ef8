// Runs the plugin in a gateway with a fake upstream.
import { startGateway } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

test("responds streaming and non-streaming, and the ledger has the usage", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin },
    config: {
      providers: {
        acme: {
          use: "acme",
          with: { base_url: "${env:UPSTREAM}/v1", api_key: "${env:KEY}" },
        },
      },
    },
    env: { KEY: "canary-acme-7f3a91" },
  });
  for (const stream of [false, true]) {
    const { status, text } = await at.ask("acme/model", "Good morning", { stream });
    expect([status, text]).toEqual([200, "Hello"]);
  }
  expect(at.calls).toMatchObject([
    { provider: "acme", model: "model", usage: { input: 10, output: 5 }, outcome: "ok" },
    { provider: "acme", model: "model", usage: { input: 10, output: 5 }, outcome: "ok" },
  ]);
  expect(at.upstream.bills).toHaveLength(2);
});

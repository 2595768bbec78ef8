// Runs the plugin in a gateway with a fake upstream that returns the recordings.
import { readRecordings, replayResponse, startGateway } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

const hello = readRecordings("test/recordings/native").find(({ name }) => name === "hello");

test("responds streaming and non-streaming, and the ledger has the usage", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin },
    upstream: { "POST /v1/say": replayResponse(hello!) },
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
    expect([status, text]).toEqual([200, "Hello ☕"]);
  }
  const call = { provider: "acme", model: "model", usage: { input: 12, output: 2 }, outcome: "ok" };
  expect(at.calls).toMatchObject([call, call]);
  const [asked] = at.upstream.requests.filter(({ path }) => path === "/v1/say");
  expect(asked!.json()).toEqual({ model: "model", prompt: "Good morning" });
});

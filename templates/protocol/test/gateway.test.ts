// Runs both plugins in a gateway with a fake upstream that returns the recordings.
import { readRecordings, replayResponse, startGateway } from "tollgate/testing";
import { expect, test } from "vitest";
import frontend from "../src/frontend.ts";
import provider from "../src/provider.ts";

const [streamed, whole] = readRecordings("test/recordings");

test("Acme's clients and OpenAI clients receive responses from a provider with Acme's protocol", async () => {
  await using at = await startGateway({
    plugins: { front: frontend, back: provider },
    upstream: {
      "POST /v1/say": (asked) => replayResponse(asked.json().stream ? streamed! : whole!),
    },
    config: {
      frontends: ["front", "chat-completions"],
      providers: {
        acme: { use: "back", with: { base_url: "${env:UPSTREAM}/v1", api_key: "${env:KEY}" } },
      },
    },
    env: { KEY: "canary-acme-7f3a91" },
  });
  for (const stream of [false, true])
    expect((await at.ask("acme/model", "Good morning", { stream })).text).toBe("Hello ☕");
  const own = await fetch(`${at.url}/acme/say`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "acme/model", prompt: "Good morning" }),
  });
  expect(await own.json()).toEqual({ say: "Hello ☕", end: "stop", read: 12, written: 2 });
  expect(at.calls.map(({ usage }) => usage)).toEqual(
    Array.from({ length: 3 }, () => ({ input: 12, output: 2 })),
  );
});

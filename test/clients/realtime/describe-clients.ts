// Official clients of Realtime and of the Live API: each speaks with the fake provider directly, and
// through the gateway. It must hear the same, and the ledger must have what it counted.
import { describe, expect, it } from "vitest";
import { inputTokens, outputTokens } from "tollgate/plugin";
import { startGateway } from "tollgate/testing";
import { startGeminiLiveUpstream } from "../../kit/sockets/gemini-live-upstream.ts";
import { startRealtimeUpstream } from "../../kit/sockets/realtime-upstream.ts";
import { scriptOf, type SocketClient } from "./drivers.ts";

const PROVIDERS = {
  realtime: {
    start: startRealtimeUpstream,
    config: (url: string) => ({
      frontends: ["realtime"],
      providers: {
        vendor: {
          use: "openai",
          with: { base_url: `${url}/v1`, api_key: "sk-up" },
          models: { "gpt-realtime": { operation: "realtime" } },
        },
      },
    }),
    model: "gpt-realtime",
  },
  "gemini-live": {
    start: startGeminiLiveUpstream,
    config: (url: string) => ({
      frontends: ["gemini"],
      providers: {
        vendor: {
          use: "google",
          with: { base_url: url, api_key: "sk-up" },
          models: { "gemini-2.5-flash-native-audio-latest": { operation: "realtime" } },
        },
      },
    }),
    model: "gemini-2.5-flash-native-audio-latest",
  },
};

async function directly(client: SocketClient, script: string) {
  const { start, model } = PROVIDERS[client.protocol];
  const upstream = await start();
  try {
    return await client.talk({ url: upstream.url, key: "sk-up", model }, script);
  } finally {
    await upstream.stop();
  }
}

/** Describes how each of the clients speaks with the fake provider, and through the gateway. */
export function describeClients(clients: readonly SocketClient[]): void {
  describe.each(clients.map((client) => [client.name, client] as const))("%s", (_name, client) => {
    it("is satisfied by the fake provider", async () => {
      const heard = await directly(client, await scriptOf(client));
      expect(heard).toMatchObject({ errors: [] });
      expect(heard.audioBytes).toHaveLength(2);
      expect(Math.min(...heard.audioBytes, heard.input, heard.output)).toBeGreaterThan(0);
    });

    it("hears the same through the gateway, and the ledger has what it counted", async () => {
      const script = await scriptOf(client);
      const { start, config, model } = PROVIDERS[client.protocol];
      const upstream = await start();
      try {
        await using gateway = await startGateway({ config: config(upstream.url) });
        const at = { url: gateway.url, key: "tester", model: `vendor/${model}` };
        const heard = await client.talk(at, script);
        expect(heard).toEqual(await directly(client, script));
        // Some clients also have the user's speech transcribed, by another model.
        const calls = () => gateway.calls.filter((call) => call.model === model && call.state);
        await expect.poll(() => calls().length).toBe(2);
        expect(calls().map(({ state, outcome }) => [state, outcome])).toEqual([
          ["exact", "ok"],
          ["exact", "ok"],
        ]);
        const sum = (count: typeof inputTokens) =>
          calls().reduce((total, { usage }) => total + count(usage ?? {}), 0);
        expect([sum(inputTokens), sum(outputTokens)]).toEqual([heard.input, heard.output]);
      } finally {
        await upstream.stop();
      }
    });
  });
}

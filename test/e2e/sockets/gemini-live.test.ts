// The Live API through a gateway: what is billed, and what the ledger has after a cut.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inputTokens, outputTokens, type StoreCommand } from "tollgate/plugin";
import { startGateway, type StartedGateway } from "tollgate/testing";
import { everyNth } from "../../kit/law-effort.ts";
import {
  LIVE_PATH,
  startGeminiLiveUpstream,
  type GeminiLiveUpstream,
} from "../../kit/sockets/gemini-live-upstream.ts";
import { openSocket, type SocketClient } from "../../kit/sockets/socket-client.ts";
import { until } from "../../kit/wait.ts";

const MODEL = "gemini-2.5-flash-native-audio-latest";
let upstream: GeminiLiveUpstream;
let gateway: StartedGateway;
beforeEach(async () => {
  upstream = await startGeminiLiveUpstream();
  gateway = await startGateway({
    config: {
      frontends: ["gemini"],
      providers: {
        vendor: {
          use: "google",
          with: { base_url: upstream.url, api_key: "sk-up" },
          models: { [MODEL]: { operation: "realtime" } },
        },
      },
    },
  });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop();
});

const open = (key = "tester") => openSocket(`${gateway.url}${LIVE_PATH}?key=${key}`);
const setup = (model = `models/vendor/${MODEL}`) => ({
  setup: { model, generationConfig: { responseModalities: ["AUDIO"] } },
});
const say = (text: string) => ({
  clientContent: { turns: [{ role: "user", parts: [{ text }] }], turnComplete: true },
});
const turns = (client: SocketClient) =>
  client.messages.filter((one) => one["serverContent"]?.turnComplete === true).length;

async function talk(client: SocketClient): Promise<void> {
  let isOver = false;
  void client.closed.then(() => (isOver = true));
  const step = (isReady: () => boolean) =>
    until(
      () => isOver || isReady(),
      () => JSON.stringify(client.messages),
    );
  client.send(setup());
  await step(() => client.count("setupComplete") === 1);
  if (!isOver) client.send(say("Hello"));
  await step(() => turns(client) === 1);
  if (!isOver) client.send(say("And again"));
  await step(() => turns(client) === 2);
}

const settles = () =>
  gateway.storeCommands.filter(
    (row): row is Extract<StoreCommand, { do: "settle" }> => row.do === "settle",
  );
const allSettled = () =>
  until(
    () => gateway.storeCommands.filter((row) => row.do === "reserve").length === settles().length,
    () => JSON.stringify(gateway.calls),
  );

describe("a connection of the Live API", () => {
  it("is billed by the turn, with the counts of each report", async () => {
    const client = await open();
    await talk(client);
    client.close();
    await allSettled();
    expect(
      settles().map(({ state, usage }) => [state, inputTokens(usage), outputTokens(usage)]),
    ).toEqual(upstream.usages.map((u) => ["exact", u.promptTokenCount, u.responseTokenCount]));
    // 11 text tokens in, 3 audio tokens out.
    expect(settles()[0]!.costNano).toBe(BigInt(11 * 500 + 3 * 12_000));
  });

  it("opens the provider's socket with the operator's key, and names its model", async () => {
    const client = await open();
    await talk(client);
    const [socket] = upstream.sockets;
    expect(socket!.url.pathname).toBe(LIVE_PATH);
    expect(socket!.headers["x-goog-api-key"]).toBe("sk-up");
    expect(socket!.url.search + JSON.stringify(socket!.headers)).not.toContain("tester");
    expect(JSON.parse(socket!.received[0]!).setup.model).toBe(`models/${MODEL}`);
    client.close();
  });

  it("is closed with a reason if its first message is not a setup, or its model is unknown", async () => {
    const silent = await open();
    silent.send(say("Hello"));
    expect(await silent.closed).toMatchObject({
      code: 1007,
      reason: expect.stringContaining("setup"),
    });
    const unknown = await open();
    unknown.send(setup("models/nobody/nothing"));
    expect(await unknown.closed).toMatchObject({ code: 1008 });
    expect(upstream.sockets).toEqual([]);
  });

  it("passes on why the provider closed it", async () => {
    upstream.options = { cut: { after: 1, how: 1008 } };
    const client = await open();
    client.send(setup());
    expect(await client.closed).toEqual({ code: 1008, reason: "cut" });
  });

  it("is billed once and completely, wherever the provider cuts it", async () => {
    const cuts = Array.from({ length: 11 }, (_, at) => at + 1);
    for (const after of everyNth(2, cuts, 0)) {
      const before = settles().length;
      upstream.options = { cut: { after, how: after % 2 === 0 ? "reset" : 1011 } };
      const client = await open();
      await talk(client);
      await client.closed;
      await allSettled();
      const seen = client.messages.flatMap((one) => one["usageMetadata"] ?? []);
      const exact = settles()
        .slice(before)
        .filter(({ state }) => state === "exact");
      expect(exact.map(({ usage }) => [inputTokens(usage), outputTokens(usage)])).toEqual(
        seen.map((u) => [u.promptTokenCount, u.responseTokenCount]),
      );
    }
  });
});

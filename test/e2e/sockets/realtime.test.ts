// Realtime through a gateway: what clients may do, what is billed, and what the ledger has after a cut.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoreCommand } from "tollgate/plugin";
import { startGateway, type StartedGateway } from "tollgate/testing";
import { everyNth } from "../../kit/law-effort.ts";
import { openSocket, Rejected, type SocketClient } from "../../kit/sockets/socket-client.ts";
import {
  silence,
  speech,
  startRealtimeUpstream,
  type RealtimeUpstream,
  type RealtimeUsage,
} from "../../kit/sockets/realtime-upstream.ts";
import { until } from "../../kit/wait.ts";

/** The fake provider has no model list, in which realtime models must otherwise be. */
const MODELS = { "gpt-realtime": { operation: "realtime" } } as const;

let upstream: RealtimeUpstream;
let gateway: StartedGateway;
beforeEach(async () => {
  upstream = await startRealtimeUpstream();
  gateway = await startGateway({
    config: {
      frontends: ["realtime"],
      providers: {
        vendor: {
          use: "openai",
          with: { base_url: `${upstream.url}/v1`, api_key: "sk-up" },
          models: MODELS,
        },
      },
    },
  });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop();
});

const URL_PATH = "/v1/realtime?model=vendor/gpt-realtime";
const open = (path = URL_PATH, more: object = {}) =>
  openSocket(`${gateway.url}${path}`, { key: "tester", ...more });
const say = (text: string) => ({
  type: "conversation.item.create",
  item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
});

/** A turn of text, and a turn of speech with a transcription. Ends early if the connection does. */
async function talk(client: SocketClient): Promise<void> {
  const over = client.closed.then(() => "over");
  const step = async (type: string, count: number) => {
    if ((await Promise.race([client.wait(type, count), over])) === "over") throw new Error("over");
  };
  try {
    await step("session.created", 1);
    client.send({
      type: "session.update",
      session: { type: "realtime", audio: { input: { transcription: { model: "whisper-1" } } } },
    });
    client.send(say("Hello"));
    client.send({ type: "response.create" });
    await step("response.done", 1);
    client.send({ type: "input_audio_buffer.append", audio: speech(10) });
    client.send({ type: "input_audio_buffer.append", audio: silence(3) });
    await step("response.done", 2);
  } catch {}
}

const settles = () =>
  gateway.storeCommands.filter(
    (row): row is Extract<StoreCommand, { do: "settle" }> => row.do === "settle",
  );
const reserves = () => gateway.storeCommands.filter((row) => row.do === "reserve");
/** Waits until every call that was reserved is settled. */
const allSettled = () =>
  until(
    () => reserves().length === settles().length,
    () => JSON.stringify(gateway.calls),
  );

/** The law: what the client saw end is billed once, with the same counts; and nothing is left open. */
async function checkBills(client: SocketClient): Promise<void> {
  await allSettled();
  const rows = settles();
  for (const { response } of client.messages.filter((one) => one.type === "response.done")) {
    const bills = rows.filter((row) => row.upstreamId === response.id);
    expect(bills, response.id).toHaveLength(1);
    const { usage, state } = bills[0]!;
    const reported = response.usage as RealtimeUsage;
    expect(state).toBe("exact");
    expect({
      input: (usage.input ?? 0) + (usage.cache_read ?? 0),
      audio: (usage.audio_in ?? 0) + (usage.cache_read_audio ?? 0),
      output: usage.output,
      spoken: usage.audio_out ?? 0,
    }).toEqual({
      input: reported.input_token_details.text_tokens,
      audio: reported.input_token_details.audio_tokens,
      output: reported.output_token_details.text_tokens,
      spoken: reported.output_token_details.audio_tokens,
    });
  }
  expect(new Set(rows.map((row) => row.attempt)).size).toBe(rows.length);
}

describe("a Realtime connection", () => {
  it("is billed by the response, with each unit at its price", async () => {
    const client = await open();
    await talk(client);
    client.close();
    await checkBills(client);
    const [text, transcription, spoken] = settles();
    // 20 + 1 text tokens in, 3 out, 6 audio tokens out: 21 × $4 + 3 × $16 + 6 × $64 per million.
    expect(text!.costNano).toBe(516_000n);
    expect(transcription).toMatchObject({
      usage: { seconds: 1 },
      costNano: 100_000n,
      state: "exact",
    });
    // 3 new and 21 cached text tokens, 16 new audio tokens; 3 and 6 out.
    expect(spoken!.costNano).toBe(
      BigInt(3 * 4_000 + 21 * 400 + 16 * 32_000 + 3 * 16_000 + 6 * 64_000),
    );
    expect(gateway.calls.map(({ model }) => model)).toEqual([
      "gpt-realtime",
      "whisper-1",
      "gpt-realtime",
    ]);
  });

  it("that only transcribes is billed by the transcription, at the price of its model", async () => {
    const client = await open(`${URL_PATH}&intent=transcription`);
    await client.wait("session.created");
    const [socket] = upstream.sockets;
    expect(socket!.url.search).toBe("?intent=transcription");
    const input = { transcription: { model: "whisper-1" } };
    client.send({ type: "session.update", session: { type: "transcription", audio: { input } } });
    client.send({ type: "input_audio_buffer.append", audio: speech(10) });
    client.send({ type: "input_audio_buffer.append", audio: silence(3) });
    await client.wait("conversation.item.input_audio_transcription.completed");
    client.close();
    await allSettled();
    expect(gateway.calls.map(({ model }) => model)).toEqual(["whisper-1"]);
    expect(settles()).toMatchObject([
      { usage: { seconds: 1 }, costNano: 100_000n, state: "exact" },
    ]);
  });

  it("opens the provider's socket with the operator's key and the provider's name of the model", async () => {
    const client = await open();
    await client.wait("session.created");
    const [socket] = upstream.sockets;
    expect(socket!.url.pathname + socket!.url.search).toBe("/v1/realtime?model=gpt-realtime");
    expect(socket!.headers["authorization"]).toBe("Bearer sk-up");
    expect(JSON.stringify(socket!.headers)).not.toContain("tester");
    client.close();
  });

  it.each(["/v1/realtime", "/realtime", "/openai/v1/realtime", "/openai/realtime"])(
    "is served at %s",
    async (path) => {
      const name = path === "/openai/realtime" ? "deployment" : "model";
      const client = await open(
        `${path}?api-version=2025-04-01-preview&${name}=vendor/gpt-realtime`,
      );
      await client.wait("session.created");
      client.close();
    },
  );

  it("takes the key of a browser, and does not repeat it", async () => {
    const client = await openSocket(`${gateway.url}${URL_PATH}`, {
      subprotocols: ["realtime", "openai-insecure-api-key.tester"],
    });
    expect(client.subprotocol).toBe("realtime");
    await client.wait("session.created");
    expect(JSON.stringify(upstream.sockets[0]!.headers)).not.toContain("tester");
    client.close();
  });

  it("rejects a handshake without a model, and one for a model that does not speak", async () => {
    const missing = await open("/v1/realtime").catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(Rejected);
    expect(missing).toMatchObject({ status: 400, body: expect.stringContaining("missing_model") });
    const chat = await open("/v1/realtime?model=vendor/gpt-4o").catch((error: unknown) => error);
    expect(chat).toBeInstanceOf(Rejected);
    expect(upstream.sockets).toEqual([]);
  });

  it.each(["sessions", "transcription_sessions", "translations/client_secrets"])(
    "has no secrets of %s",
    async (kind) => {
      const answer = await fetch(`${gateway.url}/v1/realtime/${kind}`, {
        method: "POST",
        headers: { authorization: "Bearer tester" },
      });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { code: "client_secrets_unsupported" } });
    },
  );

  it("answers a wrong event with an error event, and stays open", async () => {
    const client = await open();
    await client.wait("session.created");
    client.send("{");
    client.send({ type: "session.destroy", event_id: "mine" });
    client.send({ type: "session.update", session: { type: "realtime", model: "other" } });
    client.send(Buffer.from([1, 2, 3]));
    await client.wait("error", 4);
    const errors = client.messages.filter(({ type }) => type === "error");
    expect(errors.map(({ error }) => [error.code, error.event_id])).toEqual([
      ["invalid_message", null],
      ["unknown_event", "mine"],
      ["model_fixed", null],
      ["invalid_message", null],
    ]);
    client.send({ type: "response.create" });
    await client.wait("response.done");
    expect(upstream.sockets[0]!.received).toHaveLength(1);
    client.close();
  });

  it("bills an answer that the user interrupts", async () => {
    upstream.options = { paceMs: 5 };
    const client = await open();
    await client.wait("session.created");
    client.send({ type: "response.create" });
    await client.wait("response.output_audio.delta");
    client.send({ type: "response.cancel" });
    const { response } = await client.wait("response.done");
    expect(response.status).toBe("cancelled");
    client.close();
    await checkBills(client);
  });

  it("tries another provider if the first one refuses the handshake", async () => {
    const second = await startRealtimeUpstream();
    const both = await startGateway({
      config: {
        frontends: ["realtime"],
        providers: {
          one: {
            use: "openai",
            with: { base_url: `${upstream.url}/v1`, api_key: "k" },
            models: MODELS,
          },
          two: {
            use: "openai",
            with: { base_url: `${second.url}/v1`, api_key: "k" },
            models: MODELS,
          },
        },
        models: { voice: ["one/gpt-realtime", "two/gpt-realtime"] },
      },
    });
    upstream.options = { rejects: 503 };
    const client = await openSocket(`${both.url}/v1/realtime?model=voice`, { key: "tester" });
    await client.wait("session.created");
    expect(second.sockets).toHaveLength(1);
    client.close();
    await both[Symbol.asyncDispose]();
    await second.stop();
  });
});

/** How many messages a whole session has. */
const FRAMES = 44;
const CUTS = Array.from({ length: FRAMES }, (_, at) => at + 1);

describe("a cut Realtime connection", () => {
  it.each(["provider resets", "provider closes"] as const)(
    "is billed once and completely: %s after each message",
    async (how) => {
      for (const after of everyNth(4, CUTS, how.length)) {
        upstream.options = { cut: { after, how: how === "provider resets" ? "reset" : 1011 } };
        const client = await open();
        await talk(client);
        client.close();
        await client.closed;
        await checkBills(client);
      }
      for (const { state, costNano } of settles())
        if (state === "estimated") expect(costNano).toBeGreaterThan(0n);
    },
    120_000,
  );

  it.each(["client resets", "client closes"] as const)(
    "is billed once and completely: %s after each message",
    async (how) => {
      for (const after of everyNth(4, CUTS, how.length)) {
        const client = await open();
        const cut = until(
          () => client.messages.length >= after,
          () => `${after} messages`,
        ).then(
          () => (how === "client resets" ? client.reset() : client.close(1000)),
          () => client.reset(),
        );
        await Promise.race([talk(client), cut]);
        client.close();
        await client.closed;
        await checkBills(client);
      }
    },
    120_000,
  );

  it("has an estimated row from the audio that was relayed", async () => {
    upstream.options = { paceMs: 2 };
    const client = await open();
    await client.wait("session.created");
    client.send(say("Hello"));
    client.send({ type: "response.create" });
    await client.wait("response.output_audio.delta", 2);
    client.reset();
    await allSettled();
    const [row] = settles();
    expect(row).toMatchObject({ state: "estimated" });
    expect(row!.usage.audio_out).toBeGreaterThanOrEqual(4);
    expect(row!.usage.input).toBeGreaterThan(0);
    expect(row!.costNano).toBeGreaterThan(0n);
  });
});

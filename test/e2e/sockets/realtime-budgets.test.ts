// Budgets, revocation, and the drain of Realtime connections.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject, LedgerEntry } from "tollgate/plugin";
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { parseKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { openSocket, Rejected } from "../../kit/sockets/socket-client.ts";
import {
  silence,
  speech,
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../../kit/sockets/realtime-upstream.ts";
import { until } from "../../kit/wait.ts";

let upstream: RealtimeUpstream;
let gateway: InProcessGateway;
const yaml = () => `
frontends: [realtime]
middleware: [auth, { use: limits, with: { hold: hard } }]
store: memory
providers:
  vendor:
    use: openai
    with: { base_url: "${upstream.url}/v1", api_key: k }
    models:
      gpt-realtime: { operation: realtime }
      gpt-realtime-2: { operation: realtime }
`;
beforeAll(async () => {
  upstream = await startRealtimeUpstream();
  gateway = await startInProcess({ yaml: yaml() });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop();
});

async function keyOf(nano: number | undefined, more: object = {}) {
  const limits =
    nano === undefined ? [] : [formatLimit({ unit: "nano_usd", max: nano, per: "total" })];
  const { secret } = (await gateway.ask("keys.create", { limits, ...more } as JsonObject)) as {
    secret: string;
  };
  return { secret, id: parseKey(secret)!.id };
}
const open = (key: string, model = "gpt-realtime") =>
  openSocket(`${gateway.url}/v1/realtime?model=vendor/${model}`, { key });
const rowsOf = async (key: string) =>
  ((await gateway.ask("ledger.entries", { key })) as unknown as { items: LedgerEntry[] }).items;

describe("a key with a budget", () => {
  it("gets an error event for an answer that does not fit, which the provider never learns of", async () => {
    const { secret } = await keyOf(1_000);
    const client = await open(secret);
    await client.wait("session.created");
    client.send({ type: "response.create", event_id: "mine" });
    const { error } = await client.wait("error");
    expect(error).toMatchObject({ type: "insufficient_quota", event_id: "mine" });
    expect(upstream.sockets.at(-1)!.received).toEqual([]);
    client.close();
  });

  it("cancels an answer that the provider began by itself, and pays for it", async () => {
    const { secret, id } = await keyOf(1_000);
    upstream.options = { paceMs: 5 };
    const client = await open(secret);
    await client.wait("session.created");
    client.send({ type: "input_audio_buffer.append", audio: speech(10) });
    client.send({ type: "input_audio_buffer.append", audio: silence(3) });
    await client.wait("error");
    await client.closed;
    upstream.options = {};
    await until(
      async () => (await rowsOf(id)).length > 0,
      () => "a row",
    );
    expect(upstream.sockets.at(-1)!.received.map((one) => JSON.parse(one).type)).toContain(
      "response.cancel",
    );
  });

  it("is not rejected for what fits", async () => {
    const { secret } = await keyOf(2_000_000_000);
    const client = await open(secret);
    await client.wait("session.created");
    client.send({ type: "response.create" });
    await client.wait("response.done");
    client.close();
  });
});

describe("a key", () => {
  it("that is revoked ends its connection", async () => {
    const { secret, id } = await keyOf(undefined);
    const client = await open(secret);
    await client.wait("session.created");
    await gateway.ask("keys.revoke", { id });
    expect(await client.closed).toMatchObject({ code: 1008 });
  });

  it("may not use the model of a connection, or a transcription model, that it is not allowed", async () => {
    const { secret } = await keyOf(undefined, { models: ["vendor/gpt-realtime"] });
    const other = await open(secret, "gpt-realtime-2").catch((error: unknown) => error);
    expect(other).toBeInstanceOf(Rejected);
    const client = await open(secret);
    await client.wait("session.created");
    client.send({
      type: "session.update",
      session: { type: "realtime", audio: { input: { transcription: { model: "whisper-1" } } } },
    });
    const { error } = await client.wait("error");
    expect(error.type).toBe("permission_error");
    client.close();
  });

  it("that does not exist is rejected in OpenAI's format", async () => {
    const error = await open("sk-none").catch((found: unknown) => found);
    expect(error).toMatchObject({ status: 401, body: expect.stringContaining("invalid_api_key") });
  });
});

it("a gateway that drains completes the running response, and then closes the connection", async () => {
  const draining = await startInProcess({ yaml: yaml() });
  upstream.options = { paceMs: 5 };
  const client = await openSocket(`${draining.url}/v1/realtime?model=vendor/gpt-realtime`, {
    key: draining.key,
  });
  await client.wait("session.created");
  client.send({ type: "response.create" });
  await client.wait("response.created");
  const stopped = draining.stop();
  expect(await client.closed).toMatchObject({ code: 1001 });
  expect(client.count("response.done")).toBe(1);
  await stopped;
  upstream.options = {};
  await draining[Symbol.asyncDispose]();
});

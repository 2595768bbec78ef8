// Calls over WebRTC: the audio passes between the browser and the provider, and the gateway observes
// and bills each response.
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject, LedgerEntry } from "tollgate/plugin";
import { parseKey } from "../../../src/lib/api-key.ts";
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  silence,
  speech,
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../../kit/sockets/realtime-upstream.ts";
import { until } from "../../kit/wait.ts";

let upstream: RealtimeUpstream;
let gateway: InProcessGateway;
beforeAll(async () => {
  upstream = await startRealtimeUpstream();
  gateway = await startInProcess({
    yaml: `
frontends: [realtime]
middleware: [auth, limits]
store: memory
providers:
  vendor:
    use: openai
    with: { base_url: "${upstream.url}/v1", api_key: k }
    models: { gpt-realtime: { operation: realtime } }
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop();
});

async function keyOf(nano?: number) {
  const limits =
    nano === undefined ? [] : [formatLimit({ unit: "nano_usd", max: nano, per: "total" })];
  const { secret } = (await gateway.ask("keys.create", { limits } as JsonObject)) as {
    secret: string;
  };
  return { secret, id: parseKey(secret)!.id };
}
const rowsOf = async (key: string) =>
  ((await gateway.ask("ledger.entries", { key })) as unknown as { items: LedgerEntry[] }).items;

async function start(secret: string) {
  const client = new OpenAI({ apiKey: secret, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const answer = await client.realtime.calls.create({
    sdp: "v=0 offer",
    session: { type: "realtime", model: "vendor/gpt-realtime", instructions: "Be kind." },
  });
  const call = upstream.calls.at(-1)!;
  await until(
    () => call.speak !== undefined,
    () => "an observed call",
  );
  return { answer, call };
}
const sayHello = [
  { type: "input_audio_buffer.append", audio: speech(10) },
  { type: "input_audio_buffer.append", audio: silence(3) },
];

describe("a call", () => {
  it("is set up with the operator's key and the provider's name of the model", async () => {
    const { secret } = await keyOf();
    const { answer, call } = await start(secret);
    expect(await answer.text()).toBe("v=0 answer");
    expect(answer.headers.get("location")).toBe(`/v1/realtime/calls/${call.id}`);
    expect(call).toMatchObject({
      authorization: "Bearer k",
      sdp: "v=0 offer",
      session: { model: "gpt-realtime", instructions: "Be kind." },
    });
  });

  it("is billed by the response", async () => {
    const { secret, id } = await keyOf();
    const { call } = await start(secret);
    for (const event of sayHello) await call.speak!(event);
    await until(
      async () => (await rowsOf(id)).some(({ state }) => state === "exact"),
      () => "an exact row",
    );
    const { usage } = upstream.responses.at(-1)!;
    const row = (await rowsOf(id)).find(({ state }) => state === "exact");
    expect(row!.usage).toMatchObject({
      audio_out: usage!.output_token_details.audio_tokens,
      output: usage!.output_token_details.text_tokens,
    });
  });

  it("is ended if its budget does not allow a response", async () => {
    const { secret } = await keyOf(1_000);
    const { call } = await start(secret);
    for (const event of sayHello) await call.speak!(event);
    await until(
      () => call.isHungUp,
      () => "a call that is hung up",
    );
  });

  it("is ended if its key is revoked", async () => {
    const { secret, id } = await keyOf();
    const { call } = await start(secret);
    await gateway.ask("keys.revoke", { id });
    await until(
      () => call.isHungUp,
      () => "a call that is hung up",
    );
  });

  it("is hung up, and not answered, if it cannot be observed", async () => {
    const { secret } = await keyOf();
    upstream.options = { rejects: 503 };
    const client = new OpenAI({ apiKey: secret, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const session = { type: "realtime", model: "vendor/gpt-realtime" } as const;
    await expect(client.realtime.calls.create({ sdp: "v=0 offer", session })).rejects.toMatchObject(
      { status: 503 },
    );
    upstream.options = {};
    expect(upstream.calls.at(-1)).toMatchObject({ isHungUp: true, sdp: "v=0 offer" });
    expect(upstream.calls.at(-1)!.speak).toBeUndefined();
  });

  it("needs a model, and a form", async () => {
    const { secret } = await keyOf();
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/sdp" };
    const answer = await fetch(`${gateway.url}/v1/realtime/calls`, {
      method: "POST",
      headers,
      body: "v=0 offer",
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "missing_model" } });
  });
});

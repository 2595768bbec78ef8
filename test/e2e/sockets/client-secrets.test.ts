// Client secrets of the Realtime API: how they are created, where they are accepted, that they end
// with their key, and which settings a client cannot exceed.
import { randomBytes } from "node:crypto";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject, LedgerEntry } from "tollgate/plugin";
import { digestKey, parseKey } from "../../../src/lib/api-key.ts";
import { installTestClock } from "../../kit/clock.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { openSocket, Rejected, type SocketClient } from "../../kit/sockets/socket-client.ts";
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../../kit/sockets/realtime-upstream.ts";
import { until } from "../../kit/wait.ts";

const FILE_KEY = "file-key";
const MODEL = "vendor/gpt-realtime";
const SESSION = { type: "realtime", model: MODEL, instructions: "Speak like a ferryman." } as const;

let upstream: RealtimeUpstream;
let gateway: InProcessGateway;
beforeAll(async () => {
  upstream = await startRealtimeUpstream();
  gateway = await startInProcess({
    yaml: `
frontends: [realtime, responses]
middleware:
  - use: auth
    with: { keys: [{ id: file, digest: "${digestKey(FILE_KEY)}" }] }
  - zdr
  - limits
store: memory
providers:
  vendor:
    use: openai
    with: { base_url: "${upstream.url}/v1", api_key: sk-up }
    models: { gpt-realtime: { operation: realtime }, gpt-voice: { operation: realtime } }
  private:
    use: openai
    with: { base_url: "${upstream.url}/v1" }
    credentials: [{ name: own, with: { api_key: sk-up }, zdr: { declared: true } }]
    models: { gpt-realtime: { operation: realtime } }
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop();
});

async function keyOf(input: object = {}) {
  const { secret } = (await gateway.ask("keys.create", input as JsonObject)) as { secret: string };
  return { secret, id: parseKey(secret)!.id };
}
const rowsOf = async (key: string) =>
  ((await gateway.ask("ledger.entries", { key })) as unknown as { items: LedgerEntry[] }).items;

interface CreateOptions {
  readonly key?: string;
  readonly session?: object | undefined;
  readonly headers?: Record<string, string>;
  readonly path?: string;
  readonly [field: string]: unknown;
}
const post = (path: string, key: string, body: object, headers: object = {}) =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
async function create({ key = FILE_KEY, headers = {}, path, ...body }: CreateOptions = {}) {
  const fields = { session: SESSION, ...body };
  const answer = await post(path ?? "/v1/realtime/client_secrets", key, fields, headers);
  return { status: answer.status, body: (await answer.json()) as any };
}
const secretOf = async (of?: CreateOptions): Promise<string> => (await create(of)).body.value;

/** Connects as a browser does. */
const connect = (secret: string, path = "/v1/realtime") =>
  openSocket(`${gateway.url}${path}`, {
    subprotocols: ["realtime", `openai-insecure-api-key.${secret}`],
  });
const rejectionOf = async (opening: Promise<unknown>) => {
  const rejected = await opening.catch((error: unknown) => error);
  expect(rejected).toBeInstanceOf(Rejected);
  const { status, body } = rejected as Rejected;
  return { status, ...(JSON.parse(body) as { error: any }) };
};
/** Asks for one response, and waits for its end. */
async function talk(client: SocketClient): Promise<void> {
  await client.wait("session.created");
  client.send({ type: "response.create" });
  await client.wait("response.done");
}
const refused = async (client: SocketClient, event: object) => {
  const before = client.count("error");
  client.send(event);
  return (await client.wait("error", before + 1))["error"];
};

describe("a client secret", () => {
  it("is created by OpenAI's SDK, with its expiry and the session", async () => {
    const client = new OpenAI({ apiKey: FILE_KEY, baseURL: `${gateway.url}/v1` });
    const before = Math.floor(Date.now() / 1_000);
    const { data, response } = await client.realtime.clientSecrets
      .create({ expires_after: { anchor: "created_at", seconds: 7_200 }, session: SESSION })
      .withResponse();
    expect(data.value).toMatch(/^ek_[\w-]+$/);
    expect(data.expires_at).toBeGreaterThanOrEqual(before + 7_200);
    expect(data.session).toMatchObject({ ...SESSION, object: "realtime.session" });
    expect(response.headers.get("cache-control")).toBe("no-store");
    const usual = await client.realtime.clientSecrets.create({ session: SESSION });
    expect(usual.expires_at).toBeLessThan(data.expires_at - 6_000);
    expect(usual.value).not.toBe(data.value);
  });

  it.each(["/realtime/client_secrets", "/openai/v1/realtime/client_secrets"])(
    "is created at %s",
    async (path) => expect((await create({ path })).status).toBe(200),
  );

  it.each([
    [{ session: { type: "realtime" } }, "missing_model", "session.model"],
    [{ session: undefined }, "missing_model", "session.model"],
    [{ session: { ...SESSION, type: "translation" } }, "invalid_value", "session.type"],
    [{ expires_after: { seconds: 9 } }, "invalid_value", "expires_after.seconds"],
    [{ expires_after: { seconds: 7_201 } }, "invalid_value", "expires_after.seconds"],
    [{ expires_after: { seconds: 60.5 } }, "invalid_value", "expires_after.seconds"],
    [{ expires_after: { anchor: "now" } }, "invalid_value", "expires_after.anchor"],
  ])("is not created for %j", async (fields, code, param) => {
    const { status, body } = await create(fields);
    expect([status, body.error]).toEqual([400, expect.objectContaining({ code, param })]);
  });

  it("is not created for a session that does not fit in a header", async () => {
    // Random text cannot be compressed.
    for (const instructions of [randomBytes(7_000).toString("base64"), "Hi ".repeat(100_000)]) {
      const { status, body } = await create({ session: { ...SESSION, instructions } });
      expect([status, body.error.code]).toEqual([413, "client_secret_too_large"]);
    }
  });

  it("opens a connection with its session, and is billed to its key", async () => {
    const { secret, id } = await keyOf();
    const client = await connect(await secretOf({ key: secret }));
    expect(client.subprotocol).toBe("realtime");
    await talk(client);
    const { session } = await client.wait("session.created");
    expect(session.instructions).toBe(SESSION.instructions);
    expect([client.count("session.created"), client.count("session.updated")]).toEqual([1, 0]);
    const socket = upstream.sockets.at(-1)!;
    expect(socket.url.search).toBe("?model=gpt-realtime");
    expect(JSON.parse(socket.received[0]!)).toMatchObject({
      type: "session.update",
      session: { ...SESSION, model: "gpt-realtime" },
    });
    expect(await rowsOf(id)).toMatchObject([
      { kind: "reserve" },
      { kind: "settle", state: "exact" },
    ]);
    client.close();
  });

  it("opens several connections, also with the header of a key", async () => {
    const secret = await secretOf();
    for (let i = 0; i < 2; i++) {
      const path = `/v1/realtime?model=${MODEL}`;
      const client = await openSocket(`${gateway.url}${path}`, { key: secret });
      await client.wait("session.created");
      client.close();
    }
  });

  it("is rejected everywhere else", async () => {
    const secret = await secretOf();
    for (const path of ["/v1/responses", "/v1/realtime/client_secrets"]) {
      const answer = await post(path, secret, { model: MODEL, session: SESSION, input: "Hi" });
      expect(answer.status).toBe(401);
      expect(await answer.json()).toMatchObject({ error: { code: "client_secret_not_accepted" } });
    }
    expect(
      await rejectionOf(openSocket(`${gateway.url}/v1/responses`, { key: secret })),
    ).toMatchObject({ status: 401, error: { code: "client_secret_not_accepted" } });
  });

  it("is rejected if one character is different, or another gateway created it", async () => {
    const secret = await secretOf();
    for (let at = 3; at < secret.length - 1; at += 7) {
      const other = secret[at] === "A" ? "B" : "A";
      const forged = secret.slice(0, at) + other + secret.slice(at + 1);
      expect(await rejectionOf(connect(forged))).toMatchObject({
        status: 401,
        error: { code: "invalid_api_key" },
      });
    }
  });

  it("is rejected after its expiry, which does not end an open connection", async () => {
    const secret = await secretOf({ expires_after: { seconds: 10 } });
    const client = await connect(secret);
    await client.wait("session.created");
    const clock = installTestClock({ wall: true });
    clock.skip(11_000);
    expect(await rejectionOf(connect(secret))).toMatchObject({
      status: 401,
      error: { code: "client_secret_expired" },
    });
    // A change of keys causes a check of all open connections.
    await keyOf();
    await talk(client);
    client.close();
  });

  it("is rejected when its key is revoked, which also ends its connections", async () => {
    const { secret: key, id } = await keyOf();
    const secret = await secretOf({ key });
    const client = await connect(secret);
    await client.wait("session.created");
    await gateway.ask("keys.revoke", { id });
    expect((await client.closed).code).toBe(1008);
    expect(await rejectionOf(connect(secret))).toMatchObject({
      status: 401,
      error: { code: "invalid_api_key" },
    });
  });

  it("has the model permission and the budget of its key", async () => {
    const { secret: narrow } = await keyOf({ models: ["vendor/gpt-voice"] });
    expect(await rejectionOf(connect(await secretOf({ key: narrow })))).toMatchObject({
      status: 403,
    });
    const { secret: poor } = await keyOf({ limits: ["usd=0.000001/total"] });
    const client = await connect(await secretOf({ key: poor }));
    await client.wait("session.created");
    expect(await refused(client, { type: "response.create" })).toMatchObject({
      code: "insufficient_quota",
    });
    client.close();
  });

  it("has the privacy of the request that created it", async () => {
    const headers = { "service-zdr": "required" };
    expect(await rejectionOf(connect(await secretOf({ headers })))).toMatchObject({
      error: { code: "zdr_unavailable" },
    });
    const session = { ...SESSION, model: "private/gpt-realtime" };
    const client = await connect(await secretOf({ headers, session }));
    await client.wait("session.created");
    expect(
      await refused(client, { type: "session.update", session: { tracing: "auto" } }),
    ).toMatchObject({ code: "zdr_field" });
    client.close();
  });

  it("that only transcribes opens a session that only transcribes", async () => {
    const session = {
      type: "transcription",
      model: MODEL,
      audio: { input: { transcription: { model: "whisper-1" } } },
    };
    const secret = await secretOf({ session });
    expect(await rejectionOf(connect(secret))).toMatchObject({ error: { code: "session_fixed" } });
    const client = await connect(secret, "/v1/realtime?intent=transcription");
    await client.wait("session.created");
    const { model: _, ...sent } = session;
    const socket = upstream.sockets.at(-1)!;
    expect(socket.url.search).toBe("?intent=transcription");
    expect(JSON.parse(socket.received[0]!).session).toEqual(sent);
    client.close();
  });

  it("is in no log, and neither are its settings", async () => {
    const secret = await secretOf();
    const client = await connect(secret);
    await talk(client);
    client.close();
    await rejectionOf(connect(secret, "/v1/realtime?model=vendor/gpt-voice"));
    await post("/v1/responses", secret, { model: MODEL, input: "Hi" });
    const shown = `${gateway.output()}${JSON.stringify(await gateway.ask("requests.list"))}`;
    expect(shown).toContain(MODEL);
    for (const part of [secret, secret.slice(3, 40), SESSION.instructions, digestKey(FILE_KEY)])
      expect(shown).not.toContain(part);
    expect(JSON.stringify(upstream.sockets.at(-1)!.headers)).not.toContain(secret.slice(3));
  });
});

describe("a client with a secret", () => {
  const connected = async (session: object = {}) => {
    const client = await connect(await secretOf({ session: { ...SESSION, ...session } }));
    await client.wait("session.created");
    return client;
  };

  it("cannot exceed its settings, and can change others", async () => {
    const tool = { type: "mcp", server_label: "docs", server_url: "https://docs.example/mcp" };
    const transcription = (model: string) => ({ audio: { input: { transcription: { model } } } });
    const client = await connected({
      max_output_tokens: 100,
      tools: [tool],
      ...transcription("whisper-1"),
    });
    const update = (session: object) => ({ type: "session.update", session });
    const attempts: [event: object, code: string, param: string][] = [
      [update({ model: "vendor/gpt-voice" }), "model_fixed", "session.model"],
      [update({ type: "transcription" }), "session_fixed", "session.type"],
      [update({ max_output_tokens: 101 }), "session_fixed", "session.max_output_tokens"],
      [update({ max_output_tokens: "inf" }), "session_fixed", "session.max_output_tokens"],
      [update({ max_output_tokens: null }), "session_fixed", "session.max_output_tokens"],
      [
        update({ max_output_tokens: 50, max_response_output_tokens: "inf" }),
        "session_fixed",
        "session.max_output_tokens",
      ],
      [
        { type: "response.create", response: { max_output_tokens: "inf" } },
        "session_fixed",
        "session.max_output_tokens",
      ],
      [
        update(transcription("gpt-4o-transcribe")),
        "session_fixed",
        "session.audio.input.transcription.model",
      ],
      [
        update({
          ...transcription("whisper-1"),
          input_audio_transcription: { model: "gpt-4o-transcribe" },
        }),
        "session_fixed",
        "session.audio.input.transcription.model",
      ],
      [
        update({ tools: [{ ...tool, server_url: "https://evil.example" }] }),
        "session_fixed",
        "session.tools",
      ],
      [
        { type: "response.create", response: { tools: [{ ...tool, require_approval: "never" }] } },
        "session_fixed",
        "session.tools",
      ],
      [update({ prompt: { id: "pmpt_1" } }), "session_fixed", "session.prompt"],
    ];
    const received = () => upstream.sockets.at(-1)!.received.length;
    const before = received();
    for (const [event, code, param] of attempts)
      expect(await refused(client, event)).toMatchObject({ code, param });
    expect(received()).toBe(before);
    const functions = [{ type: "function", name: "row", parameters: {} }];
    client.send(
      update({ instructions: "Whisper.", max_output_tokens: 50, tools: [...functions, tool] }),
    );
    const { session } = await client.wait("session.updated");
    expect(session).toMatchObject({ instructions: "Whisper.", max_output_tokens: 50 });
    client.close();
  });

  it("cannot connect to another model", async () => {
    const secret = await secretOf();
    expect(await rejectionOf(connect(secret, "/v1/realtime?model=vendor/gpt-voice"))).toMatchObject(
      { status: 403, error: { code: "model_fixed" } },
    );
  });

  it.each([
    ["names the event", "unknown"],
    ["does not name the event", "unnamed"],
  ])("gets no session if the provider rejects the settings and %s", async (_, voice) => {
    const client = await connect(await secretOf({ session: { ...SESSION, voice } }));
    const { error } = await client.wait("error");
    expect(error).toMatchObject({ code: "session_rejected", message: expect.any(String) });
    expect((await client.closed).code).toBe(1008);
    expect(client.count("session.created")).toBe(0);
  });

  it("gets no session with a transcription model that the key may not use", async () => {
    const { secret: key } = await keyOf({ models: ["vendor/gpt-realtime"] });
    const audio = { input: { transcription: { model: "whisper-1" } } };
    const client = await connect(await secretOf({ key, session: { ...SESSION, audio } }));
    expect((await client.wait("error"))["error"]).toMatchObject({ code: "model_not_allowed" });
    expect((await client.closed).code).toBe(1008);
  });
});

describe("a call with a client secret", () => {
  const call = async (secret: string, body: BodyInit = "v=0 offer", type = "application/sdp") =>
    fetch(`${gateway.url}/v1/realtime/calls`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, ...(type && { "content-type": type }) },
      body,
    });
  const started = async (session: object = {}) => {
    const answer = await call(await secretOf({ session: { ...SESSION, ...session } }));
    expect(await answer.text()).toBe("v=0 answer");
    const made = upstream.calls.at(-1)!;
    await until(() => made.speak !== undefined);
    return made;
  };

  it("is set up by the browser's offer alone, with the settings of the secret", async () => {
    const made = await started();
    expect(made).toMatchObject({
      authorization: "Bearer sk-up",
      sdp: "v=0 offer",
      session: { ...SESSION, model: "gpt-realtime" },
    });
  });

  it("that only transcribes has no model", async () => {
    const audio = { input: { transcription: { model: "whisper-1" } } };
    const made = await started({ type: "transcription", audio });
    const { model: _, ...session } = SESSION;
    expect(made.session).toEqual({ ...session, type: "transcription", audio });
  });

  it("gets the settings of the client that do not exceed those of the secret", async () => {
    const secret = await secretOf({ session: { ...SESSION, max_output_tokens: 100 } });
    const form = (session: object) => {
      const data = new FormData();
      data.append("sdp", "v=0 offer");
      data.append("session", JSON.stringify(session));
      return data;
    };
    const good = await call(secret, form({ audio: { output: { voice: "sage" } } }), "");
    expect(good.status).toBe(201);
    expect(upstream.calls.at(-1)!.session).toEqual({
      ...SESSION,
      model: "gpt-realtime",
      max_output_tokens: 100,
      audio: { output: { voice: "sage" } },
    });
    for (const session of [
      { model: "vendor/gpt-voice" },
      { max_output_tokens: "inf" },
      { max_output_tokens: null },
    ]) {
      const bad = await call(secret, form(session), "");
      expect(bad.status).toBe(403);
    }
  });

  it("is ended if the client exceeds the settings over its own channel", async () => {
    const session = { max_output_tokens: 100 };
    for (const event of [
      { type: "session.update", session: { max_output_tokens: "inf" } },
      { type: "session.update", session: { tools: [{ type: "mcp", server_label: "x" }] } },
      { type: "session.update", session: { prompt: { id: "pmpt_1" } } },
      { type: "response.create", response: { max_output_tokens: 4_096 } },
    ]) {
      const made = await started(session);
      await made.speak!({ type: "session.update", session: { instructions: "Whisper." } });
      expect(made.isHungUp).toBe(false);
      await made.speak!(event);
      await until(
        () => made.isHungUp,
        () => "a call that is hung up",
      );
    }
  });

  it("is ended when its key is revoked", async () => {
    const { secret: key, id } = await keyOf();
    const answer = await call(await secretOf({ key }));
    expect(answer.status).toBe(201);
    const made = upstream.calls.at(-1)!;
    await gateway.ask("keys.revoke", { id });
    await until(
      () => made.isHungUp,
      () => "a call that is hung up",
    );
  });
});

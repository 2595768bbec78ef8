// Requests of a client's WebSocket that are sent over a WebSocket of the provider: which connection
// each one uses, how it is billed, and when HTTP is used instead.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { dial, isTerminal, type DialOptions, type SocketClient } from "../../kit/socket-client.ts";
import {
  startResponsesUpstream,
  type ResponsesUpstream,
} from "../../kit/sockets/responses-upstream.ts";
import { until } from "../../kit/wait.ts";

const [ALICE, BOB] = ["alice-key", "bob-key"];
let upstream: ResponsesUpstream;
let gateway: InProcessGateway;
const open: SocketClient[] = [];
beforeAll(async () => {
  upstream = await startResponsesUpstream();
});
// A gateway of its own for each test, so that no connection is left from another.
beforeEach(async () => {
  upstream.options = {};
  upstream.rejects = undefined;
  gateway = await startInProcess({
    yaml: `
frontends: [responses]
middleware:
  - use: auth
    with: { keys: [{ id: alice, digest: "${digestKey(ALICE)}" }, { id: bob, digest: "${digestKey(BOB)}" }] }
  - zdr
  - limits
store: memory
retries: { total: 1 }
providers:
  vendor:
    use: openai
    with: { base_url: "${upstream.url}/v1", api_key: upstream-secret }
    models: { m: { price: { input: 1, output: 10 } } }
  other:
    use: openai-compatible
    with: { base_url: "${upstream.url}/v1", api_key: k, responses: true }
    models: { m: { price: { input: 1, output: 10 } } }
`,
  });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client[Symbol.asyncDispose]()));
  await gateway[Symbol.asyncDispose]();
});
afterAll(() => upstream.stop());

const connected = async (key = ALICE, more: DialOptions = {}): Promise<SocketClient> => {
  const client = await dial(gateway.url, { key, ...more });
  open.push(client);
  return client;
};
const asks = (input: unknown, more: object = {}) => ({
  type: "response.create",
  model: "vendor/m",
  store: false,
  input,
  ...more,
});
/** Sends a request and returns its last event. */
async function turn(client: SocketClient, input: unknown, more: object = {}): Promise<any> {
  client.send(asks(input, more));
  return (await client.until(isTerminal)).at(-1);
}
const message = (text: string) => ({ role: "user", content: text });
const newest = () => upstream.created.at(-1)!;
/** Numbers of what the provider has received since now. */
function since() {
  const before = [upstream.sockets.length, upstream.created.length, upstream.posts.length];
  return () =>
    [upstream.sockets.length, upstream.created.length, upstream.posts.length].map(
      (count, i) => count - before[i]!,
    );
}
const settled = async () =>
  ((await gateway.ask("ledger.entries", { limit: 100 })) as any).items.filter(
    ({ kind }: any) => kind === "settle",
  );

describe("a request of a WebSocket", () => {
  it("is sent over the provider's, and billed once by its usage", async () => {
    const counts = since();
    const client = await connected();
    const { type, response } = await turn(client, "Hi");
    expect(type).toBe("response.completed");
    expect(counts()).toEqual([1, 1, 0]);
    const { socket, body } = newest();
    expect(socket.url.pathname).toBe("/v1/responses");
    expect(socket.headers).toMatchObject({ authorization: "Bearer upstream-secret" });
    expect(JSON.stringify(socket.headers)).not.toContain(ALICE);
    expect(body).toMatchObject({ model: "m", store: false, input: "Hi" });
    expect(body).not.toHaveProperty("stream");
    expect(response.usage).toMatchObject({ input_tokens: 7, output_tokens: 3 });
    expect(await settled()).toMatchObject([{ state: "exact", usage: { input: 7, output: 3 } }]);
  });

  it("that continues a response contains only what is new, on the same connection", async () => {
    const counts = since();
    const client = await connected();
    const first = await turn(client, [message("First")]);
    const second = await turn(client, [message("Second")], {
      previous_response_id: first.response.id,
    });
    expect(counts()).toEqual([1, 2, 0]);
    expect(newest().body).toMatchObject({
      previous_response_id: first.response.id,
      input: [{ content: "Second" }],
    });
    await turn(client, [message("Third")], { previous_response_id: second.response.id });
    expect(newest().body.input).toEqual([message("Third")]);
    // An older response is not held any more, so the complete conversation is sent.
    await turn(client, [message("Other")], { previous_response_id: first.response.id });
    expect(newest().body).not.toHaveProperty("previous_response_id");
    const sent = JSON.stringify(newest().body.input);
    for (const part of ["First", `Turn ${first.response.id}.`, "Other"])
      expect(sent).toContain(part);
    expect(sent).not.toContain("Second");
  });

  it("is sent completely, once, if the provider has lost the response", async () => {
    const client = await connected();
    const first = await turn(client, [message("First")]);
    upstream.options = { forgets: true };
    const counts = since();
    const { type } = await turn(client, [message("Second")], {
      previous_response_id: first.response.id,
    });
    expect(type).toBe("response.completed");
    expect(counts()).toEqual([1, 2, 0]);
    expect(JSON.stringify(newest().body.input)).toContain("First");
    expect(await settled()).toHaveLength(2);
  });

  it("has a connection per lane, and another client of the key takes over a free one", async () => {
    let release: (() => void) | undefined;
    const counts = since();
    const client = await connected();
    upstream.options = { hold: () => new Promise<void>((resolve) => (release = resolve)) };
    client.send(asks("A", { stream_id: "a" }));
    await until(() => release !== undefined);
    upstream.options = {};
    client.send(asks("B", { stream_id: "b" }));
    await client.until(isTerminal);
    release!();
    await client.until(isTerminal);
    expect(counts()).toEqual([2, 2, 0]);
    await turn(client, "A again", { stream_id: "a" });
    expect(newest().socket).toBe(upstream.created.at(-3)!.socket);
    await client[Symbol.asyncDispose]();
    await until(async () => (await settled()).length === 3);
    const next = await connected();
    await until(async () => {
      await turn(next, "C");
      return upstream.sockets.includes(newest().socket);
    });
    expect(counts()[0]).toBeLessThanOrEqual(3);
    // The connections of a key serve no other key.
    const other = since();
    await turn(await connected(BOB), "D");
    expect(other()).toEqual([1, 1, 0]);
  });

  it.each([404, 426, 403, 501, 502])(
    "is sent over HTTP if the handshake gets a %i",
    async (status) => {
      upstream.rejects = status;
      const counts = since();
      const client = await connected();
      expect((await turn(client, "Hi")).type).toBe("response.completed");
      expect(counts()).toEqual([0, 0, 1]);
      expect(upstream.posts.at(-1)).toMatchObject({ stream: true, input: "Hi" });
      // No further handshake is tried for now.
      upstream.rejects = undefined;
      await turn(client, "Again");
      expect(counts()).toEqual([0, 0, 2]);
      expect(await settled()).toMatchObject([{ state: "exact" }, { state: "exact" }]);
    },
  );

  it("is sent over HTTP if only its own handshake is wrong, and others are not", async () => {
    upstream.rejects = 400;
    const counts = since();
    const client = await connected();
    expect((await turn(client, "Hi")).type).toBe("response.completed");
    expect(counts()).toEqual([0, 0, 1]);
    upstream.rejects = undefined;
    await turn(client, "Again");
    expect(counts()).toEqual([1, 1, 1]);
  });

  it("is sent over HTTP, also in its record, if a new connection cannot take it", async () => {
    const client = await connected();
    await turn(client, "First");
    const limit = { type: "invalid_request_error", code: "websocket_connection_limit_reached" };
    upstream.options = { error: { type: "error", status: 400, error: limit } };
    const counts = since();
    expect((await turn(client, "Second")).type).toBe("response.completed");
    expect(counts()).toEqual([1, 2, 1]);
    expect(await settled()).toMatchObject([{ state: "exact" }, { state: "exact" }]);
    let transports: unknown[] = [];
    await until(async () => {
      const { items } = (await gateway.ask("requests.list")) as any;
      transports = items.flatMap(({ calls = [] }: any) => calls.map((one: any) => one.transport));
      return transports.length === 2;
    });
    expect(transports).toEqual(["websocket", undefined]);
  });

  it.each([
    [401, 502],
    [429, 429],
    [503, 503],
  ])("is rejected if the handshake gets a %i", async (status, shown) => {
    upstream.rejects = status;
    const counts = since();
    const client = await connected();
    expect(await turn(client, "Hi")).toMatchObject({ type: "error", status: shown });
    expect(counts()).toEqual([0, 0, 0]);
    expect((await settled()).every(({ state }: any) => state === "void")).toBe(true);
  });

  it("gets the error of the provider with its status, and nothing is billed", async () => {
    upstream.options = {
      error: {
        type: "error",
        status: 400,
        error: { type: "invalid_request_error", code: "bad", message: "Bad.", param: "input" },
      },
    };
    const client = await connected();
    expect(await turn(client, "Hi")).toMatchObject({
      type: "error",
      status: 400,
      error: { code: "bad", param: "input" },
    });
    expect(await settled()).toMatchObject([{ state: "void" }]);
    upstream.options = {};
    expect((await turn(client, "Hi")).type).toBe("response.completed");
  });

  it("shows over what it was sent, in its record and in the explanation of its route", async () => {
    await turn(await connected(), "Hi");
    await turn(await connected(), "Hi", { model: "other/m" });
    let items: any[] = [];
    await until(async () => {
      ({ items } = (await gateway.ask("requests.list")) as any);
      return items.filter(({ calls = [] }) => calls.length > 0).length === 2;
    });
    const transports = items.flatMap(({ calls = [] }) => calls.map((one: any) => one.transport));
    expect(transports).toEqual(["websocket", undefined]);
    const explained = async (model: string) =>
      ((await gateway.ask("explain", { model, frontend: "responses" } as any)) as any)
        .candidates[0];
    expect(await explained("vendor/m")).toMatchObject({ transport: "websocket" });
    expect(await explained("other/m")).toMatchObject({ transport: "http" });
  });

  it("of HTTP is sent over HTTP", async () => {
    const counts = since();
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${ALICE}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "vendor/m", input: "Hi", stream: true }),
    });
    expect(response.status).toBe(200);
    await response.text();
    expect(counts()).toEqual([0, 0, 1]);
  });

  it("with zero data retention leaves nothing on a connection", async () => {
    const counts = since();
    const client = await connected(ALICE, { headers: { "service-zdr": "required" } });
    await turn(client, "Hi");
    expect(counts()[1]).toBe(0);
  });
});

describe("a response", () => {
  it("that the client cuts ends the provider's connection, and has an estimated row", async () => {
    upstream.options = { hold: () => new Promise<void>(() => {}) };
    const client = await connected();
    client.send(asks("Hi"));
    await client.until(({ type }) => type === "response.output_text.delta");
    client.ws.terminate();
    expect(await newest().socket.closed).toBe(1006);
    await until(async () => (await settled()).length === 1);
    expect((await settled())[0]).toMatchObject({ state: "estimated" });
  });

  it("that the provider cuts ends with an error, and has an estimated row", async () => {
    upstream.options = { closesWith: 1011 };
    const client = await connected();
    const last = await turn(client, "Hi");
    expect(["error", "response.failed"]).toContain(last.type);
    await until(async () => (await settled()).length === 1);
    expect((await settled())[0]).toMatchObject({ state: "estimated" });
    upstream.options = {};
    expect((await turn(await connected(), "Again")).type).toBe("response.completed");
  });
});

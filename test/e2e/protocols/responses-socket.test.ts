// Responses over a WebSocket, on a whole gateway: in front of every provider, lanes, continued
// conversations, errors, and the end of a connection.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { dial, isTerminal, type DialOptions, type SocketClient } from "../../kit/socket-client.ts";

const ALICE = "alice-key";
const BOB = "bob-key";
const yaml = (up: string) => `
frontends: [responses]
middleware:
  - use: auth
    with: { keys: [{ id: alice, digest: "${digestKey(ALICE)}" }, { id: bob, digest: "${digestKey(BOB)}", models: ["plain/*"] }] }
  - zdr
  - limits
  - usage
providers:
  openai: { use: openai, with: { api_key: k, base_url: "${up}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${up}" } }
  plain: { use: openai-compatible, with: { api_key: k, base_url: "${up}/v1" } }
`;
const MODELS = ["openai/gpt-6", "claude/claude-sonnet-5", "plain/m"];

let up: TestUpstream;
let gateway: Awaited<ReturnType<typeof startInProcess>>;
const open: SocketClient[] = [];
async function connected(
  key: string | undefined = ALICE,
  more: DialOptions = {},
): Promise<SocketClient> {
  const client = await dial(gateway.url, more.subprotocols ? more : { key: key!, ...more });
  open.push(client);
  return client;
}
beforeAll(async () => {
  up = await startUpstream();
  gateway = await startInProcess({ yaml: yaml(up.url) });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client[Symbol.asyncDispose]()));
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});
const speak = (speech: Parameters<typeof scriptedModel>[0]) => {
  up.reset();
  up.setRoutes(scriptedModel(speech));
};
const posted = () => up.requests.filter(({ method }) => method === "POST").map((one) => one.json());
const text = (events: any[]) =>
  events
    .flatMap(({ type, delta }) => (type === "response.output_text.delta" ? [delta] : []))
    .join("");

describe.each(MODELS)("%s", (model) => {
  it("answers with the events of a stream", async () => {
    speak(() => say("Hello there.").usage({ input: 7, output: 3 }));
    const client = await connected();
    client.send({ type: "response.create", model, input: "Hi" });
    const events = await client.until(isTerminal);
    expect(events[0].type).toBe("response.created");
    expect(text(events)).toBe("Hello there.");
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: { usage: { input_tokens: 7, output_tokens: 3 } },
    });
    expect(events.every((event) => !("stream_id" in event))).toBe(true);
    const [asked] = posted();
    expect(asked).not.toHaveProperty("type");
    expect(asked.stream).toBe(true);
  });

  it("continues a response by its ID", async () => {
    speak((asked) => say(`Turn ${JSON.stringify(asked.json()).includes("Second") ? 2 : 1}.`));
    const client = await connected();
    client.send({ type: "response.create", model, input: "First", store: false });
    const first = (await client.until(isTerminal)).at(-1).response;
    client.send({
      type: "response.create",
      model,
      store: false,
      previous_response_id: first.id,
      input: [{ role: "user", content: "Second" }],
    });
    const second = await client.until(isTerminal);
    expect(text(second)).toBe("Turn 2.");
    const sent = JSON.stringify(posted()[1]);
    for (const part of ["First", "Turn 1.", "Second"]) expect(sent).toContain(part);
    expect(sent).not.toContain("previous_response_id");
  });
});

/** A reply that ends when it is told. */
const held = () => {
  const gates: (() => void)[] = [];
  const speech = async () => {
    await new Promise<void>((resolve) => gates.push(resolve));
    return say("Done.").usage({ input: 1, output: 1 });
  };
  return { gates, speech };
};
const create = (more: object = {}) => ({
  type: "response.create",
  model: "plain/m",
  input: "Hi",
  ...more,
});
const refusal = (status: number, error: object) => ({
  type: "error",
  status,
  error: expect.objectContaining(error),
});

describe("lanes", () => {
  it("run at the same time, and each in order", async () => {
    const { gates, speech } = held();
    speak(speech as never);
    const client = await connected();
    client.send(create({ stream_id: "a" }));
    client.send(create({ stream_id: "a", input: "Second" }));
    client.send(create({ stream_id: "b.1-2_3" }));
    client.send(create());
    await up.waitForRequest(3);
    expect(posted().length).toBe(3);
    expect(gates).toHaveLength(3);
    for (const open of gates.splice(0)) open();
    for (let i = 0; i < 3; i++) await client.until(isTerminal);
    const lanes = client.messages
      .filter(({ type }) => type === "response.completed")
      .map((e) => e.stream_id);
    expect(lanes.toSorted()).toEqual(["a", "b.1-2_3", undefined].toSorted());
    await up.waitForRequest(4);
    gates.splice(0)[0]!();
    const [last] = (await client.until(isTerminal)).slice(-1);
    expect(last).toMatchObject({ type: "response.completed", stream_id: "a" });
    expect(JSON.stringify(posted()[3])).toContain("Second");
  });
});

it("concurrency of a key counts the responses that run, and not its connections", async () => {
  const limits = ["concurrent=1"];
  const { secret }: any = await gateway.ask("keys.create", { name: "single", limits } as never);
  const { gates, speech } = held();
  speak(speech as never);
  const client = await connected(secret);
  client.send(create({ stream_id: "a" }));
  await up.waitForRequest(1);
  const other = await connected(secret);
  for (const one of [other, client]) {
    one.send(create({ stream_id: "b" }));
    const [last] = (await one.until(isTerminal)).slice(-1);
    expect(last).toMatchObject(refusal(429, { code: "rate_limit_exceeded" }));
  }
  for (const open of gates.splice(0)) open();
  const [last] = (await client.until(isTerminal)).slice(-1);
  expect(last).toMatchObject({ type: "response.completed", stream_id: "a" });
});

describe("a message that is no request gets an error, and the connection stays", () => {
  it.each([
    ["{", refusal(400, { code: "invalid_json" })],
    ["[]", refusal(400, { code: "invalid_json" })],
    ["null", refusal(400, { code: "invalid_json" })],
    [{ type: "session.update" }, refusal(400, { code: "unknown_event_type", param: "type" })],
    [{}, refusal(400, { code: "unknown_event_type" })],
    [create({ stream_id: "" }), refusal(400, { code: "invalid_stream_id", param: "stream_id" })],
    [create({ stream_id: "a b" }), refusal(400, { code: "invalid_stream_id" })],
    [create({ stream_id: 7 }), refusal(400, { code: "invalid_stream_id" })],
    [create({ background: true }), refusal(400, { param: "background" })],
    [create({ model: "plain" }), refusal(404, { code: "model_not_found", param: "model" })],
    [create({ model: 7 }), refusal(400, { param: "model" })],
    [
      '{"type":"response.create","model":"plain/m","model":"openai/gpt-6","input":"x"}',
      refusal(400, {}),
    ],
    [
      create({ previous_response_id: "resp_unknown", stream_id: "main" }),
      {
        ...refusal(400, {
          type: "invalid_request_error",
          code: "previous_response_not_found",
          param: "previous_response_id",
        }),
        stream_id: "main",
      },
    ],
  ])("%j", async (message, expected) => {
    speak(() => say("Fine."));
    const client = await connected();
    client.send(message);
    expect((await client.until(isTerminal)).at(-1)).toMatchObject(expected);
    client.send(create());
    expect(text(await client.until(isTerminal))).toBe("Fine.");
  });

  it("a binary message", async () => {
    const client = await connected();
    client.ws.send(Buffer.from("{}"));
    expect((await client.until(isTerminal)).at(-1)).toMatchObject(
      refusal(400, { code: "invalid_message" }),
    );
  });

  it("a model that the key may not use", async () => {
    const client = await connected(BOB);
    client.send(create({ model: "openai/gpt-6" }));
    expect((await client.until(isTerminal)).at(-1)).toMatchObject(
      refusal(403, { code: "model_not_allowed" }),
    );
  });

  it("an error of the provider keeps its status", async () => {
    up.setRoutes({
      "POST /v1/chat/completions": {
        ...jsonResponse({ error: { message: "slow" } }, 429),
        headers: { "content-type": "application/json", "retry-after": "7" },
      },
    });
    const client = await connected();
    client.send(create());
    expect((await client.until(isTerminal)).at(-1)).toMatchObject({
      type: "error",
      status: 429,
      headers: { "retry-after": "7" },
    });
  });
});

describe("previous_response_id", () => {
  const continued = (id: string, more = {}) => create({ previous_response_id: id, ...more });
  const missing = refusal(400, { code: "previous_response_not_found" });
  const completed = async (client: SocketClient) =>
    (await client.until(isTerminal)).at(-1).response;

  it("is found on another connection of the key, and not with another key", async () => {
    speak(() => say("One."));
    const first = await connected();
    first.send(create());
    const { id } = await completed(first);
    const second = await connected();
    second.send(continued(id, { input: "More" }));
    await completed(second);
    expect(JSON.stringify(posted()[1])).toContain("One.");
    const foreign = await connected(BOB);
    foreign.send(continued(id));
    expect((await foreign.until(isTerminal)).at(-1)).toMatchObject(missing);
  });

  it("is found only on its own connection with store: false, and not after its end", async () => {
    speak(() => say("One."));
    const first = await connected();
    first.send(create({ store: false }));
    const { id } = await completed(first);
    const second = await connected();
    second.send(continued(id));
    expect((await second.until(isTerminal)).at(-1)).toMatchObject(missing);
    first.send(continued(id, { store: false }));
    expect(await completed(first)).toMatchObject({ status: "completed" });
  });

  it("continues a warm-up, which calls no provider and has no row", async () => {
    speak(() => say("Warm."));
    const client = await connected();
    client.send(create({ generate: false, store: false, input: "Long instructions" }));
    const events = await client.until(isTerminal);
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.completed",
    ]);
    expect(up.requests).toHaveLength(0);
    const { id, output } = events.at(-1).response;
    expect(output).toEqual([]);
    client.send(continued(id, { store: false, input: "Go" }));
    expect(text(await client.until(isTerminal))).toBe("Warm.");
    const sent = JSON.stringify(posted());
    expect(sent).toContain("Long instructions");
    expect(sent).toContain("Go");
    client.send(create({ generate: false, model: "plain" }));
    expect((await client.until(isTerminal)).at(-1)).toMatchObject(refusal(404, {}));
  });

  it("can be continued twice", async () => {
    speak(() => say("One."));
    const client = await connected();
    client.send(create({ store: false }));
    const { id } = await completed(client);
    for (const lane of ["a", "b"])
      client.send(continued(id, { store: false, stream_id: lane, input: `Fork ${lane}` }));
    await client.until(isTerminal);
    await client.until(isTerminal);
    const forks = posted()
      .slice(1)
      .map((body) => JSON.stringify(body));
    expect(forks.every((body) => body.includes("One."))).toBe(true);
  });
});

describe("a handshake", () => {
  const rejected = (more: object) =>
    dial(gateway.url, more).then(
      () => {
        throw new Error("It was accepted.");
      },
      (error: any) => error,
    );
  it("is rejected with the error of a request", async () => {
    expect(await rejected({})).toMatchObject({
      status: 401,
      body: { error: { code: "missing_api_key" } },
    });
    expect(await rejected({ key: "wrong" })).toMatchObject({ status: 401 });
    expect(await rejected({ key: ALICE, path: "/v1/other" })).toMatchObject({ status: 426 });
    expect(await rejected({ key: ALICE, headers: { origin: "https://evil.test" } })).toMatchObject({
      status: 403,
      body: { error: { code: "origin_not_allowed" } },
    });
    expect(await rejected({ key: ALICE, protocolVersion: 8 })).toMatchObject({ status: 426 });
  });
  it("never returns a sub-protocol that the route does not list, and compresses nothing", async () => {
    const error = await rejected({
      subprotocols: [`openai-insecure-api-key.${ALICE}`],
    });
    expect(String(error)).toContain("Server sent no subprotocol");
    const client = await connected(undefined, {
      subprotocols: [`openai-insecure-api-key.${ALICE}`, "responses"],
    });
    expect(client.protocol).toBe("responses");
    expect(client.ws.extensions).toBe("");
    speak(() => say("From a page."));
    client.send(create());
    expect(text(await client.until(isTerminal))).toBe("From a page.");
    expect(JSON.stringify(up.requests.map((one) => one.rawHeaders))).not.toContain("insecure");
  });
});

describe("the end of a connection", () => {
  it("comes with 1008 when the key is revoked", async () => {
    const made: any = await gateway.ask("keys.create", { name: "k" } as never);
    const { secret, key } = made;
    const client = await connected(secret);
    await gateway.ask("keys.revoke", { id: key.id } as never);
    expect(await client.closed).toMatchObject({ code: 1008 });
    expect(client.messages.at(-1)).toMatchObject(refusal(401, {}));
  });
  it("ends the calls that run, and bills what they produced", async () => {
    const { gates, speech } = held();
    speak(speech as never);
    const client = await connected();
    client.send(create());
    const request = await up.waitForRequest(1);
    client.ws.terminate();
    await request.whenDone;
    expect(request.state).toBe("aborted");
    for (const open of gates) open();
  });
});

// Small guarantees for clients, each through the real gateway: names, counts, other endpoints, and
// fields that are never forwarded.
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

let up: TestUpstream;
let at: InProcessGateway;
beforeAll(async () => {
  up = await startUpstream({
    ...scriptedModel(say("Hello").usage({ input: 7, output: 2 })),
    "GET /v1/models": jsonResponse({
      data: [{ id: "dated", object: "model", created: 1_744_567_891 }],
    }),
  });
  const to = `with: { base_url: "${up.url}/v1"`;
  at = await startInProcess({
    yaml: `
frontends: [chat-completions, messages, responses, models]
middleware: [auth]
store: memory
providers:
  mchat: { use: openai-compatible, ${to}, api_key: sk-upstream-1234 } }
  mresp: { use: openai, ${to}, api_key: sk-upstream-1234 } }
  monly: { use: openai, ${to}, api_key: sk-upstream-1234 }, models: { model: { protocols: [responses] } } }
  several:
    use: openai-compatible
    with: { base_url: "${up.url}/v1" }
    credentials: [{ name: acct-7731, with: { api_key: sk-upstream-1234 } }, { name: acct-7732, with: { api_key: sk-upstream-1235 } }]
models: { alias: [several/model] }
`,
  });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

async function ask(path: string, body: JsonObject, headers = {}) {
  up.reset();
  const response = await fetch(at.url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(path === "/v1/messages"
        ? { "x-api-key": at.key }
        : { authorization: `Bearer ${at.key}` }),
      "anthropic-version": "2023-06-01",
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { response, text, asked: up.requests.filter(({ method }) => method === "POST") };
}
const chat = (more: JsonObject) =>
  ask("/v1/chat/completions", { messages: [{ role: "user", content: "hi" }], ...more });
const message = (more: JsonObject, headers = {}) =>
  ask(
    "/v1/messages",
    { max_tokens: 50, messages: [{ role: "user", content: "hi there" }], ...more },
    headers,
  );

it.each(["mchat/", "mresp/"])("%s names a provider and no model", async (model) => {
  for (const { response, text, asked } of [await chat({ model }), await message({ model })]) {
    expect(response.status).toBe(400);
    expect(text).toContain("names a provider and no model");
    expect(asked).toEqual([]);
  }
});

it.each(["mchat/model", "mresp/gpt-4o", "mresp/gpt-5"])(
  "thinking: null is not forwarded to %s",
  async (model) => {
    const { response, asked } = await chat({ model, thinking: null });
    expect(response.status).toBe(200);
    expect(asked[0]!.json()).not.toHaveProperty("thinking");
  },
);

it("a stop sequence goes to the endpoint of the provider that takes it", async () => {
  const { response, asked } = await message({ model: "mresp/model", stop_sequences: ["END"] });
  expect([response.status, response.headers.get("x-tollgate-warnings")]).toEqual([200, null]);
  expect(asked.map(({ path }) => path)).toEqual(["/v1/chat/completions"]);
  expect(asked[0]!.json()).toMatchObject({ stop: ["END"] });
});

it("a stop sequence is emulated and declared if no endpoint takes it", async () => {
  const { response, asked } = await message({ model: "monly/model", stop_sequences: ["END"] });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-tollgate-warnings")).toBe("emulated;field=stop_sequences");
  expect(asked.map(({ path }) => path)).toEqual(["/v1/responses"]);
  expect(asked[0]!.json()).not.toHaveProperty("stop");
});

it("warnings name the client's own fields", async () => {
  const { response } = await message({
    model: "mchat/model",
    thinking: { type: "enabled", budget_tokens: 2000 },
    max_tokens: 4000,
  });
  expect(response.headers.get("x-tollgate-warnings")).toMatch(/field=thinking/);
  const strict = await message({ model: "monly/model", top_k: 5 }, { "x-tollgate-strict": "true" });
  expect(JSON.parse(strict.text).error).toMatchObject({ details: { param: "top_k" } });
});

it.each(["mchat/model", "monly/model"])(
  "a message of %s starts with an estimate of the input",
  async (model) => {
    const { text } = await message({ model, stream: true });
    const events = text
      .split("\n")
      .filter((l) => l.startsWith("data: "))
      .map((l) => JSON.parse(l.slice(6)));
    expect(events[0].type).toBe("message_start");
    expect(events[0].message.usage.input_tokens).toBeGreaterThan(0);
    expect(events[0].message.usage.output_tokens).toBe(0);
    expect(events.find((e) => e.type === "message_delta").usage).toMatchObject({
      input_tokens: 7,
      output_tokens: 2,
    });
  },
);

it("a listed model keeps its creation time", async () => {
  const list = async () => {
    const response = await fetch(`${at.url}/v1/models`, {
      headers: { authorization: `Bearer ${at.key}` },
    });
    const { data } = (await response.json()) as { data: { id: string; created: number }[] };
    return data.find(({ id }) => id === "mchat/dated")?.created;
  };
  await until(async () => (await list()) !== undefined);
  expect(await list()).toBe(1_744_567_891);
});

it.each([
  ["mchat/model", "passthrough"],
  ["monly/model", "translated"],
])("a failed request to %s is logged with its mode", async (model, lane) => {
  // Rejections with the same code share a log line for a minute.
  const no = jsonResponse({ error: { message: "no", code: `no_${lane}` } }, 422);
  const before = scriptedModel(say("Hello"));
  up.setRoutes({ "POST /v1/chat/completions": no, "POST /v1/responses": no });
  const { response } = await chat({ model });
  const id = response.headers.get("x-request-id");
  expect(await at.line((l) => l["request"] === id)).toMatchObject({ mode: lane, calls: 1 });
  up.setRoutes(before);
});

it("a key that may not use a model learns no name of a credential", async () => {
  const { secret } = (await at.ask("keys.create", { name: "narrow", models: ["mchat/*"] })) as {
    secret: string;
  };
  const { response, text } = await ask(
    "/v1/chat/completions",
    { model: "several/model", messages: [{ role: "user", content: "hi" }] },
    { authorization: `Bearer ${secret}` },
  );
  expect(response.status).toBe(403);
  expect(text).toContain("model_not_allowed");
  expect(text).not.toMatch(/acct-77/);
  expect(text.match(/this key may not use it/g)?.length).toBeLessThanOrEqual(3);
});

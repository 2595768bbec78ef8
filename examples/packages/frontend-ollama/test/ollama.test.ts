// Ollama's clients before the gateway: chats and prompts, streamed or not, tools, and the list of models.
import { defineMiddleware } from "tollgate/plugin";
import { protocolChecks, say, scriptedModel, startGateway, startUpstream } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { describe, expect, test } from "vitest";
import plugin from "../src/index.ts";
import { ollamaChat, ollamaGenerate } from "../src/protocol.ts";

testConformance(plugin, { module: new URL("../src/index.ts", import.meta.url) });

describe.each([ollamaChat(), ollamaGenerate()])("the protocol $id", (protocol) => {
  for (const { name, run } of protocolChecks(protocol)) test(name, run);
});

const anyKey = defineMiddleware({
  api: 1,
  name: "any-key",
  summary: "Accepts every key",
  sends: "nowhere",
  setup: () => ({ admit: (x, secret) => x.identify({ id: secret ?? "none" }) }),
});

/** Starts a gateway with a provider that responds "Hello". */
async function start() {
  const upstream = await startUpstream(scriptedModel(say("Hello"), ["large"]));
  const at = await startGateway({
    plugins: { ollama: plugin, "any-key": anyKey },
    config: {
      frontends: ["ollama"],
      middleware: ["any-key"],
      providers: {
        demo: { use: "demo" },
        acme: {
          use: "openai-compatible",
          with: { base_url: `${upstream.url}/v1`, api_key: "k", list_models: false },
        },
      },
    },
  });
  const headers = { authorization: "Bearer tester", "content-type": "application/json" };
  return {
    get: async (path: string): Promise<any> => (await fetch(at.url + path, { headers })).json(),
    post: (path: string, body: object) =>
      fetch(at.url + path, {
        method: "POST",
        headers,
        body: JSON.stringify({ model: "acme/large", ...body }),
      }),
    /** Body of the request that the provider received. */
    sent: (): any => upstream.requests.find(({ method }) => method === "POST")!.json(),
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

const linesOf = async (response: Response): Promise<any[]> =>
  (await response.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("the frontend", () => {
  const hi = { messages: [{ role: "user", content: "Hi" }] };

  test("streams a chat as lines, by default", async () => {
    await using it = await start();
    const response = await it.post("/api/chat", {
      ...hi,
      options: { temperature: 0.5, num_predict: 9, num_ctx: 4096 },
    });
    expect(response.headers.get("content-type")).toMatch(/^application\/x-ndjson/);
    const lines = await linesOf(response);
    expect(lines.map(({ message }) => message.content).join("")).toBe("Hello");
    expect(lines.slice(0, -1).every(({ done }) => done === false)).toBe(true);
    expect(lines.at(-1)).toMatchObject({
      model: "acme/large",
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      done: true,
      done_reason: "stop",
      eval_count: expect.any(Number),
    });
    expect(it.sent()).toMatchObject({ model: "large", temperature: 0.5, ...hi });
    expect(JSON.stringify(it.sent())).not.toContain("num_ctx");
  });

  test("answers in one piece if the client asks for it, also to a prompt", async () => {
    await using it = await start();
    const chat = await it.post("/api/chat", { ...hi, stream: false });
    expect(await chat.json()).toMatchObject({
      message: { role: "assistant", content: "Hello" },
      done: true,
    });
    const prompt = { prompt: "Hi", system: "Be brief." };
    const whole = await it.post("/api/generate", { ...prompt, stream: false });
    expect(await whole.json()).toMatchObject({ response: "Hello", done: true });
    const lines = await linesOf(await it.post("/api/generate", prompt));
    expect(lines.map(({ response }) => response).join("")).toBe("Hello");
  });

  test("matches tool results to calls, which have no IDs", async () => {
    await using it = await start();
    const call = (city: string) => ({ function: { name: "weather", arguments: { city } } });
    const response = await it.post("/api/chat", {
      messages: [
        { role: "user", content: "Weather?" },
        { role: "assistant", content: "", tool_calls: [call("Bern"), call("Oslo")] },
        { role: "tool", tool_name: "weather", content: "sun" },
        { role: "tool", tool_name: "weather", content: "rain" },
      ],
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }],
    });
    expect(response.status).toBe(200);
    const { messages } = it.sent();
    const ids = messages[1].tool_calls.map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(messages.slice(2).map((one: any) => [one.tool_call_id, one.content])).toEqual([
      [ids[0], "sun"],
      [ids[1], "rain"],
    ]);
  });

  test("lists the key's models, describes one, and has a version", async () => {
    await using it = await start();
    const { models } = await it.get("/api/tags");
    expect(models.map(({ name }: { name: string }) => name)).toContain("demo/echo");
    const shown = await it.post("/api/show", { model: "demo/tools" });
    expect(await shown.json()).toMatchObject({
      capabilities: expect.arrayContaining(["completion", "tools"]),
    });
    const missing = await it.post("/api/show", { model: "demo/none" });
    expect([missing.status, await missing.json()]).toEqual([
      404,
      { error: expect.stringContaining("demo/none") },
    ]);
    expect(await it.get("/api/version")).toHaveProperty("version");
  });

  test("writes errors as Ollama does", async () => {
    await using it = await start();
    const response = await it.post("/api/chat", { messages: [] });
    expect([response.status, await response.json()]).toEqual([400, { error: expect.any(String) }]);
  });
});

// Google's protocol at the gateway: paths, keys, streams byte by byte, errors, lists. Its clients
// are tested with `npm run clients -- google`.
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  errorResponse,
  jsonResponse,
  say,
  scriptedModel,
  think,
  type ModelScript,
} from "tollgate/testing";
import { startDaemonWithUpstream, type DaemonWithUpstream } from "../../kit/process/daemon.ts";
import { speakingGemini } from "../../protocols/gemini/speech.ts";
import { checkError, checkStream, checkWhole } from "../../protocols/wire/gemini.ts";

const MODELS = {
  gemini: "google/gemini-3.5-flash",
  "chat-completions": "up-chat/model",
  messages: "up-messages/claude-sonnet-4-6",
  responses: "up-responses/model",
} as const;

let at: DaemonWithUpstream;
beforeAll(async () => {
  at = await startDaemonWithUpstream(
    { ...speakingGemini(say("Hi")), ...scriptedModel(say("Hi")) },
    (url) => `
frontends: [chat-completions, responses, images, gemini, models]
middleware: [auth, zdr]
store: memory
providers:
  demo: demo
  google: { use: google, with: { base_url: "${url}", api_key: sk-google } }
  up-chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: sk-chat } }
  up-messages: { use: anthropic-compatible, with: { base_url: "${url}/v1", api_key: sk-messages, counts: true } }
  up-responses:
    use: openai
    with: { base_url: "${url}/v1", api_key: sk-responses }
    models: { model: { protocols: [responses] } }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => {
  says(say("Hi"));
  at.up.reset();
});

const says = (speech: ModelScript) =>
  at.up.setRoutes({ ...speakingGemini(speech), ...scriptedModel(speech) });
const hi = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] };

async function ask(path: string, body: object = hi, headers: Record<string, string> = {}) {
  const res = await fetch(`${at.gateway.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-goog-api-key": at.gateway.key, ...headers },
    body: JSON.stringify(body),
  });
  return res;
}

const said = (answer: any): string =>
  answer.candidates[0].content.parts.map((part: any) => part.text ?? "").join("");

describe("paths that clients use", () => {
  const model = MODELS.gemini;
  it.each([
    `/v1beta/models/${model}:generateContent`,
    `/v1/models/${model}:generateContent`,
    `/v1alpha/models/${model}:generateContent`,
    `/v1beta/${model}:generateContent`,
    `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    `/v1beta/v1/models/${model}:generateContent`,
    `/v1beta/v1beta/models/${model}:generateContent`,
  ])("%s", async (path) => {
    const res = await ask(path);
    expect([res.status, said(await res.json())]).toEqual([200, "Hi"]);
    const [asked] = at.up.requests.filter(({ method }) => method === "POST");
    expect(asked!.path).toBe("/v1beta/models/gemini-3.5-flash:generateContent");
  });

  it("a model's name may contain colons, and an unknown method is reported", async () => {
    const res = await ask("/v1beta/models/up-chat/llama:70b:generateContent");
    expect(res.status).toBe(200);
    expect(at.up.requests[0]!.json()).toMatchObject({ model: "llama:70b" });
    const none = await ask(`/v1beta/models/${model}:predict`);
    const body = (await none.json()) as { error: { message: string } };
    checkError(body);
    expect([none.status, body.error.message]).toEqual([404, expect.stringContaining("predict")]);
  });
});

describe("the key", () => {
  const path = `/v1beta/models/${MODELS.gemini}:generateContent`;
  const post = (query: string, headers: Record<string, string>) =>
    fetch(`${at.gateway.url}${path}${query}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(hi),
    });
  it("is accepted in each place, and is neither forwarded nor logged", async () => {
    const { key } = at.gateway;
    const bearer = `Bearer ${key}`;
    for (const [query, headers] of [
      ["", { "x-goog-api-key": key }],
      [`?key=${key}`, {}],
      ["", { authorization: bearer }],
      ["", { authorization: bearer, "x-goog-api-key": key }],
    ] as const)
      expect((await post(query, headers)).status).toBe(200);
    expect(at.up.requests).toHaveLength(4);
    for (const { headers, path: to, query } of at.up.requests) {
      expect(JSON.stringify([headers, to, String(query)])).not.toContain(key);
      expect(headers["x-goog-api-key"]).toBe("sk-google");
    }
    expect(JSON.stringify(at.gateway.log)).not.toContain(key);
  });
  it("a wrong key, two different keys, and a missing key are reported in Google's format", async () => {
    for (const [query, headers] of [
      ["?key=sk-wrong", {}],
      ["?key=sk-wrong", { "x-goog-api-key": at.gateway.key }],
      ["", {}],
    ] as const) {
      const res = await post(query, headers);
      const body = (await res.json()) as { error: { status: string } };
      checkError(body);
      expect([res.status, body.error.status]).toEqual([401, "UNAUTHENTICATED"]);
    }
  });
});

describe.each(Object.entries(MODELS))("on an upstream of %s", (spoken, model) => {
  const speech = () =>
    think("I should look.", "c2lnbmVk")
      .say("Let me see — “so”. 🌧")
      .call("get_weather", { city: "Oslo" }, "call_1")
      .usage({ input: 100, cache_read: 50, output: 20, reasoning: 8 });
  const asked = {
    ...hi,
    generationConfig: { thinkingConfig: { includeThoughts: true } },
    tools: [
      {
        functionDeclarations: [
          {
            name: "get_weather",
            parameters: { type: "OBJECT", properties: { city: { type: "STRING" } } },
          },
        ],
      },
    ],
  };

  it("a response, streaming and non-streaming, with and without SSE", async () => {
    says(speech());
    const whole = (await (
      await ask(`/v1beta/models/${model}:generateContent`, asked)
    ).json()) as any;
    if (spoken !== "gemini") checkWhole(whole);
    expect(whole.modelVersion).toBe(model);
    const call = whole.candidates[0].content.parts.find((part: any) => part.functionCall);
    expect(call.functionCall).toMatchObject({ name: "get_weather", args: { city: "Oslo" } });
    expect(whole.usageMetadata).toMatchObject({
      promptTokenCount: 150,
      cachedContentTokenCount: 50,
      candidatesTokenCount: 12,
      thoughtsTokenCount: 8,
      totalTokenCount: 170,
    });

    const sse = await ask(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, asked);
    expect(sse.headers.get("content-type")).toBe("text/event-stream");
    const text = await sse.text();
    if (spoken !== "gemini") checkStream(text, "complete");
    expect(text).not.toMatch(/^(?:event|id|:)|\[DONE\]/m);

    const listed = await ask(`/v1beta/models/${model}:streamGenerateContent`, asked);
    expect(listed.headers.get("content-type")).toBe("application/json");
    const chunks = (await listed.json()) as any[];
    expect(chunks.map(said).join("")).toContain("Let me see — “so”. 🌧");
    expect(chunks.at(-1).candidates[0].finishReason).toBe("STOP");
    expect(chunks.every(({ modelVersion }) => modelVersion === model)).toBe(true);
  });

  it("reasoning is sent to clients that request it", async () => {
    says(speech());
    const { generationConfig: _, ...quiet } = asked;
    const answer = await (await ask(`/v1beta/models/${model}:generateContent`, quiet)).text();
    // Google decides it.
    if (spoken !== "gemini") expect(answer).not.toContain('I should look.",');
    if (spoken !== "gemini") expect(said(JSON.parse(answer))).toBe("Let me see — “so”. 🌧");
  });

  it("a truncated stream is an error, not a normal end", async () => {
    says(say("Half of it ").fail("The model broke."));
    const text = await raw(`/v1beta/models/${model}:streamGenerateContent?alt=sse`);
    const [head, body] = text.split("\r\n\r\n", 2) as [string, string];
    expect(head).toMatch(/ 200 /);
    const heard = [...body.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text).join("");
    expect(heard).toBe("Half of it ");
    expect(text).toContain('"error":');
    // A complete chunked HTTP body ends with a chunk of length zero.
    expect(text.endsWith("0\r\n\r\n")).toBe(false);
  });

  it("counts tokens", async () => {
    for (const body of [hi, { generateContentRequest: { model: `models/${model}`, ...hi } }]) {
      const res = await ask(`/v1beta/models/${model}:countTokens`, body);
      const { totalTokens } = (await res.json()) as { totalTokens: number };
      expect([res.status, totalTokens]).toEqual([
        200,
        spoken === "chat-completions" ? expect.any(Number) : 42,
      ]);
    }
  });
});

/** All bytes of the connection until its end. */
function raw(path: string): Promise<string> {
  const { hostname, port } = new URL(at.gateway.url);
  const body = JSON.stringify(hi);
  return new Promise((done) => {
    let text = "";
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nx-goog-api-key: ${at.gateway.key}\r\ncontent-type: application/json\r\n` +
          `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      ),
    );
    socket.on("data", (piece) => (text += piece));
    socket.on("error", () => {});
    socket.on("close", () => done(text));
  });
}

it("for Google, the bytes are the client's own, whatever they contain", async () => {
  const body = `{ "contents": [{"parts":[{"text":"Hi","newer":12345678901234567890}]}], "newField": {"a": 1} }`;
  const res = await fetch(`${at.gateway.url}/v1beta/models/${MODELS.gemini}:generateContent`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-goog-api-key": at.gateway.key },
    body,
  });
  expect(res.status).toBe(200);
  expect(String(at.up.requests[0]!.body)).toBe(body);
});

it("a field under both of its names is rejected, and a bound applies under either name", async () => {
  const path = `/v1beta/models/${MODELS.gemini}:generateContent`;
  const twice = { ...hi, generationConfig: { maxOutputTokens: 1 }, generation_config: {} };
  expect((await ask(path, twice)).status).toBe(400);
  const inside = { ...hi, generationConfig: { maxOutputTokens: 1, max_output_tokens: 9 } };
  expect((await ask(path, inside)).status).toBe(400);
  expect(at.up.requests).toEqual([]);
  await ask(path, { ...hi, generation_config: { max_output_tokens: 9 } });
  expect(at.up.requests[0]!.json()).toEqual({ ...hi, generationConfig: { maxOutputTokens: 9 } });
});

it("a file stored at Google is rejected on this route too", async () => {
  for (const fileUri of ["https://generativelanguage.googleapis.com/v1beta/files/a", "files/a"]) {
    const part = { file_data: { file_uri: fileUri, mime_type: "image/png" } };
    const body = { contents: [{ parts: [part] }] };
    const res = await ask(`/v1beta/models/${MODELS.gemini}:generateContent`, body);
    expect(res.status).toBe(400);
  }
  expect(at.up.requests).toEqual([]);
});

it("a rate limit states when to retry, and a provider's refusal is forwarded unchanged", async () => {
  at.up.setRoutes({
    "POST /v1/chat/completions": errorResponse(429, "Slow down.", { retryAfter: "7" }),
  });
  const res = await ask("/v1beta/models/up-chat/limited:generateContent");
  const body = (await res.json()) as any;
  checkError(body);
  expect(body.error).toMatchObject({ code: 429, status: "RESOURCE_EXHAUSTED" });
  const info = body.error.details.find((one: any) => one["@type"].endsWith("RetryInfo"));
  expect(info.retryDelay).toBe("7s");
  const theirs = {
    error: { code: 400, message: "No.", status: "INVALID_ARGUMENT", details: [{ a: 1 }] },
  };
  at.up.setRoutes({ "POST /v1beta/models/*": jsonResponse(theirs, 400) });
  const passed = await ask(`/v1beta/models/${MODELS.gemini}:generateContent`);
  expect([passed.status, await passed.json()]).toEqual([400, theirs]);
});

it("a prompt that Google blocked gets Google's own response", async () => {
  const blocked = {
    promptFeedback: { blockReason: "SAFETY" },
    usageMetadata: { promptTokenCount: 3 },
  };
  at.up.setRoutes({ "POST /v1beta/models/*": jsonResponse(blocked) });
  const res = await ask(`/v1beta/models/${MODELS.gemini}:generateContent`);
  expect([res.status, await res.json()]).toMatchObject([
    200,
    { promptFeedback: { blockReason: "SAFETY" } },
  ]);
});

describe("model lists", () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${at.gateway.url}${path}`, {
      headers: { "x-goog-api-key": at.gateway.key, ...headers },
    }).then((res) => res.json() as Promise<any>);
  it("have Google's format under its paths, and for its clients elsewhere", async () => {
    const { models } = await get("/v1beta/models");
    const one = models.find(({ name }: { name: string }) => name === `models/${MODELS.gemini}`);
    expect(one).toMatchObject({
      displayName: "Gemini 3.5 Flash",
      inputTokenLimit: 1_048_576,
      supportedGenerationMethods: ["generateContent", "countTokens"],
    });
    expect(await get(`/v1beta/models/${MODELS.gemini}`)).toEqual(one);
    const sdk = { "x-goog-api-client": "google-genai-sdk/3.1.0" };
    expect((await get("/v1/models", sdk)).models).toEqual(models);
    // The place of the key identifies them too.
    expect((await get("/v1/models")).models).toEqual(models);
    const bearer = { authorization: `Bearer ${at.gateway.key}` };
    const others = await fetch(`${at.gateway.url}/v1/models`, { headers: bearer });
    expect(((await others.json()) as any).data.length).toBe(models.length);
  });
  it("are paginated", async () => {
    const all = (await get("/v1beta/models")).models;
    const found: unknown[] = [];
    let token = "";
    do {
      const page = await get(`/v1beta/models?pageSize=1${token && `&pageToken=${token}`}`);
      expect(page.models).toHaveLength(1);
      found.push(...page.models);
      token = encodeURIComponent(page.nextPageToken ?? "");
    } while (token !== "");
    expect(found).toEqual(all);
  });
});

describe("either spelling of a field, for a native endpoint under Service-ZDR", () => {
  const required = { "service-zdr": "required" };
  const PNG =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const talk = "/v1beta/models/demo/echo:generateContent";
  const vectors = "/v1beta/models/demo/embed";
  const bodies: readonly (readonly [path: string, body: (camel: boolean) => object])[] = [
    [
      talk,
      (camel) => ({
        [camel ? "systemInstruction" : "system_instruction"]: { parts: [{ text: "Be brief." }] },
        contents: [
          {
            parts: [
              {
                [camel ? "inlineData" : "inline_data"]: {
                  [camel ? "mimeType" : "mime_type"]: "image/png",
                  data: PNG,
                },
              },
              { text: "Hi" },
            ],
          },
        ],
        [camel ? "generationConfig" : "generation_config"]: {
          [camel ? "maxOutputTokens" : "max_output_tokens"]: 9,
        },
      }),
    ],
    [
      `${vectors}:embedContent`,
      (camel) => ({
        content: { parts: [{ text: "Hi" }] },
        [camel ? "taskType" : "task_type"]: "RETRIEVAL_QUERY",
      }),
    ],
    [
      `${vectors}:batchEmbedContents`,
      (camel) => ({
        requests: [
          {
            model: "models/demo/embed",
            content: { parts: [{ text: "Hi" }] },
            [camel ? "taskType" : "task_type"]: "RETRIEVAL_QUERY",
          },
        ],
      }),
    ],
  ];
  it.each(bodies)("%s", async (path, body) => {
    for (const camel of [true, false]) {
      const res = await ask(path, body(camel), required);
      expect([camel, res.status, res.status === 200 || (await res.text())]).toEqual([
        camel,
        200,
        true,
      ]);
    }
  });
  it("a field that is not on the allowlist is not sent, and is reported by its own name", async () => {
    for (const name of ["brandNew", "brand_new"]) {
      const res = await ask(talk, { ...hi, contents: [{ parts: [{ [name]: 1 }] }] }, required);
      const told = await res.text();
      expect([res.status, told]).toEqual([400, expect.stringContaining(`parts[0].${name}`)]);
    }
  });
});

describe("Azure's clients", () => {
  const post = (path: string, body: object) =>
    fetch(`${at.gateway.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "api-key": at.gateway.key },
      body: JSON.stringify(body),
    });
  const chat = { messages: [{ role: "user", content: "Hi" }] };
  it.each([
    ["/openai/deployments/up-chat/model/chat/completions?api-version=2025-04-01", chat],
    ["/openai/deployments/up-chat/model/chat/completions?api-version=1", { ...chat, model: "x" }],
    ["/openai/deployments/up-chat/model/chat/completions", { ...chat, model: "" }],
    ["/openai/v1/chat/completions", { ...chat, model: "up-chat/model" }],
    ["/openai/v1/responses", { input: "Hi", model: "up-chat/model" }],
    ["/openai/responses?api-version=preview", { input: "Hi", model: "up-chat/model" }],
  ])("at %s", async (path, body) => {
    const res = await post(path, body);
    expect([res.status, await res.text()]).toEqual([200, expect.stringContaining("Hi")]);
    expect(at.up.requests[0]!.json()).toMatchObject({ model: "model" });
    expect(at.up.requests[0]!.headers["api-key"]).toBeUndefined();
  });
  it("a deployment name may contain a slash or be missing", async () => {
    const three = await post("/openai/deployments/up-chat/vendor/model/chat/completions", chat);
    expect(three.status).toBe(200);
    expect(at.up.requests[0]!.json()).toMatchObject({ model: "vendor/model" });
    const one = await post("/openai/deployments/unknown/chat/completions", chat);
    expect([one.status, await one.text()]).toEqual([404, expect.stringContaining("unknown")]);
  });
});

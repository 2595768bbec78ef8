// What each adapter of a batch API sends and reads beyond the checks of the kit: the fields of its
// requests, the usage that the provider reports, and errors of lines.
import { describe, expect, it } from "vitest";
import {
  createBatchApi,
  messageBatchFormat,
  openAiBatchFormat,
  type BatchApi,
  type BatchApiOptions,
  type BatchFormat,
} from "tollgate/testing";
import type {
  BatchInput,
  BatchResult,
  EndpointBatches,
  ProtocolEndpoint,
  Provider,
} from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import { readJsonLines } from "tollgate/protocols/batches";
import { builtin } from "../../../plugins/index.ts";
import { azureFormat, geminiFormat, mistralFormat } from "./formats.ts";
import foundry from "../../../plugins/providers/azure-foundry/index.ts";
import { installTestClock } from "../../kit/clock.ts";
import { turnEventLoop } from "../../kit/wait.ts";

async function endpointOf(name: string, protocol: string): Promise<ProtocolEndpoint> {
  const load = builtin.provider[name as keyof typeof builtin.provider] as () => Promise<any>;
  const { default: definition } = await load();
  const options = Object.fromEntries(
    Object.entries<any>(definition.options.properties).flatMap(([option, { default: value }]) =>
      value === undefined ? [] : [[option, value]],
    ),
  );
  const provider: Provider = definition.setup(options, createTestContext({}).ctx);
  return provider.endpoints.find(
    (one): one is ProtocolEndpoint => "protocol" in one && one.protocol.id === protocol,
  )!;
}

const lines = (path: string, bodies: readonly object[], key = "job_1"): BatchInput => {
  const all = bodies.map((body, i) => ({
    id: String(i + 1).padStart(8, "0"),
    body: JSON.stringify(body),
  }));
  return {
    key,
    model: "gpt-6",
    path,
    headers: {},
    count: all.length,
    bytes: all.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0),
    async *lines() {
      yield* all;
    },
  };
};

const CHAT = { model: "gpt-6", messages: [{ role: "user", content: "Grüße" }] };

async function run(
  batches: EndpointBatches,
  endpoint: { readonly base: string },
  format: BatchFormat,
  { path = "/chat/completions", ...options }: BatchApiOptions & { path?: string } = {},
) {
  const { origin, pathname } = new URL(endpoint.base);
  const api: BatchApi = createBatchApi({ format, base: pathname, polls: 0, ...options });
  const client = api.client({ origin });
  const reference = await batches.submit(lines(path, [CHAT, CHAT]), client);
  const status = await batches.poll(reference, client);
  const results: BatchResult[] = [];
  for await (const result of batches.readResults(reference, status, client)) results.push(result);
  return { api, client, reference, status, results };
}

describe("OpenAI's batches", () => {
  it("contain the path below /v1, metadata, and an expiry of the files", async () => {
    const endpoint = await endpointOf("openai", "chat-completions");
    const { api, status } = await run(endpoint.batches!, endpoint, openAiBatchFormat);
    const [upload, created] = api.requests;
    expect(upload!.body.toString()).toContain('name="expires_after[seconds]"\r\n\r\n2592000\r\n');
    expect(upload!.body.toString()).toContain(
      '{"custom_id":"00000001","method":"POST","url":"/v1/chat/completions","body":{',
    );
    expect(JSON.parse(created!.body.toString())).toEqual({
      input_file_id: "file-000001",
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
      metadata: { tollgate_job: "job_1" },
      output_expires_after: { anchor: "created_at", seconds: 2_592_000 },
    });
    expect(status).toEqual({
      state: "ended",
      outcome: "completed",
      counts: { succeeded: 2, failed: 0 },
      usage: { input: 20, cache_read: 0, output: 10, reasoning: 0 },
      results: ["file-batch_000002-output"],
    });
  });

  it("report cached input and reasoning as the provider counts them", async () => {
    const endpoint = await endpointOf("openai", "responses");
    const usage = { input: 70, cache_read: 30, output: 20, reasoning: 5 };
    const { status, api } = await run(endpoint.batches!, endpoint, openAiBatchFormat, {
      path: "/responses",
      answer: () => ({ body: {}, usage }),
    });
    expect(status.usage).toEqual(api.usage);
  });

  it("return the status and the body of a line that failed, and the reason if there is no body", async () => {
    const endpoint = await endpointOf("groq", "chat-completions");
    const body = { error: { message: "Too long.", code: "context_length_exceeded" } };
    const { results } = await run(endpoint.batches!, endpoint, openAiBatchFormat, {
      answer: ({ id }) => (id.endsWith("1") ? { status: 400, body } : { body: { text: "Hi" } }),
    });
    expect(results).toContainEqual({
      id: "00000001",
      outcome: "answered",
      status: 400,
      body,
      requestId: "req_00000001",
    });
  });

  it("delete the file if the provider rejects the batch, and keep it if the response is lost", async () => {
    const { batches, base } = await endpointOf("openai", "chat-completions");
    for (const [failure, kept] of [
      [{ status: 400, body: '{"error":{"message":"Quota."}}' }, 0],
      ["lost_response", 1],
    ] as const) {
      const api = createBatchApi({ failure: (_request, n) => (n === 2 ? failure : undefined) });
      const client = api.client({ origin: new URL(base).origin });
      await expect(batches!.submit(lines("/chat/completions", [CHAT]), client)).rejects.toThrow();
      expect(api.files.size).toBe(kept);
    }
  });

  it("are deleted with their lines and results", async () => {
    const endpoint = await endpointOf("openai", "chat-completions");
    const { api, client, reference } = await run(endpoint.batches!, endpoint, openAiBatchFormat);
    await endpoint.batches!.discard!(reference, client);
    const deleted = api.requests.filter(({ method }) => method === "DELETE");
    expect(deleted.map(({ path }) => path)).toEqual([
      "/v1/files/file-000001",
      "/v1/files/file-batch_000002-output",
    ]);
  });
});

describe("other batch APIs", () => {
  it("Azure: the endpoint that it requires, and a batch only after the file was processed", async () => {
    const provider = foundry.setup(
      { resource: "my-resource", batch_deployments: ["*-batch"], claude: [] } as never,
      createTestContext({}).ctx,
    ) as Provider;
    const endpoint = provider.endpoints.find(
      (one): one is ProtocolEndpoint => "protocol" in one && one.batches !== undefined,
    )!;
    expect(endpoint.batches!.servesModel!("gpt-6-batch")).toBe(true);
    expect(endpoint.batches!.servesModel!("gpt-6")).toBe(false);
    let uploads = 0;
    const slow: BatchFormat = {
      ...azureFormat,
      handle(state, request) {
        const response = azureFormat.handle(state, request);
        if (!request.route.startsWith("/files") || typeof response?.body !== "string")
          return response;
        return {
          ...response,
          body: response.body.replace("processed", uploads++ < 2 ? "pending" : "processed"),
        };
      },
    };
    const time = installTestClock();
    const running = run(endpoint.batches!, endpoint, slow);
    const ended = running.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([ended, turnEventLoop().then(() => false)]))) time.skip(1_000);
    const { api, status } = await running;
    expect(api.requests.slice(0, 3).map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /openai/v1/files",
      "GET /openai/v1/files/file-000001",
      "GET /openai/v1/files/file-000001",
    ]);
    expect(JSON.parse(api.requests[3]!.body.toString())).toMatchObject({
      endpoint: "/chat/completions",
    });
    expect(status.outcome).toBe("completed");
  });

  it("Mistral: jobs with a model, and lines without a path", async () => {
    const endpoint = await endpointOf("mistral", "chat-completions");
    const { api } = await run(endpoint.batches!, endpoint, mistralFormat);
    expect(api.requests[0]!.body.toString()).toContain('{"custom_id":"00000001","body":{');
    expect(JSON.parse(api.requests[1]!.body.toString())).toEqual({
      input_files: ["file-000001"],
      endpoint: "/v1/chat/completions",
      model: "gpt-6",
      metadata: { tollgate_job: "job_1" },
    });
  });

  it("Anthropic: the version, IDs with a hash of the key, and errors of lines", async () => {
    const endpoint = await endpointOf("anthropic", "messages");
    const error = { type: "error", error: { type: "overloaded_error", message: "Busy." } };
    const { api, results } = await run(endpoint.batches!, endpoint, messageBatchFormat, {
      path: "/messages",
      answer: ({ id }) => (id.endsWith("1") ? { status: 529, body: error } : { body: { id: "m" } }),
    });
    expect(api.requests.every(({ headers }) => headers["anthropic-version"] === "2023-06-01")).toBe(
      true,
    );
    expect(api.batches[0]!.lines[0]!.id).toMatch(/^[0-9a-f]{24}-00000001$/);
    expect(results).toEqual([
      { id: "00000001", outcome: "answered", status: 529, body: error },
      { id: "00000002", outcome: "answered", status: 200, body: { id: "m" } },
    ]);
  });

  it("Anthropic: no decision while a batch runs that could be the one", async () => {
    const { batches, base } = await endpointOf("anthropic", "messages");
    const api = createBatchApi({ format: messageBatchFormat, polls: 0 });
    const client = api.client({ origin: new URL(base).origin });
    const reference = await batches!.submit(lines("/messages", [CHAT]), client);
    await expect(batches!.find!("job_1", client)).rejects.toThrow("has not ended");
    await expect(batches!.find!("job_2", client)).rejects.toThrow("has not ended");
    await batches!.poll(reference, client);
    expect(await batches!.find!("job_1", client)).toBe(reference);
    expect(await batches!.find!("job_2", client)).toBeUndefined();
  });

  it("Gemini: the file is uploaded to the API's own host only", async () => {
    const { batches, base } = await endpointOf("google", "gemini");
    const stolen: BatchFormat = {
      ...geminiFormat,
      handle: (state, request) => ({
        ...geminiFormat.handle(state, request),
        headers: { "x-goog-upload-url": "https://evil.example/upload" },
      }),
    };
    const api = createBatchApi({ format: stolen, base: "/v1beta" });
    const client = api.client({ origin: new URL(base).origin });
    await expect(
      batches!.submit(lines("/models/m:generateContent", [CHAT]), client),
    ).rejects.toThrow("no upload URL on its own host");
    expect(api.requests).toHaveLength(1);
  });
});

it("a body is created while it is sent: at most one piece is in memory", async () => {
  const { batches, base } = await endpointOf("openai", "chat-completions");
  const body = JSON.stringify({ text: "x".repeat(100_000) });
  let open = 0;
  let most = 0;
  let sent = 0;
  const input: BatchInput = {
    key: "job_1",
    model: "m",
    path: "/chat/completions",
    headers: {},
    count: 1_000,
    bytes: 1_000 * body.length,
    async *lines() {
      for (let i = 1; i <= 1_000; i++) {
        most = Math.max(most, ++open);
        yield { id: String(i).padStart(8, "0"), body };
      }
    },
  };
  const api = createBatchApi();
  const client = api.client({ origin: new URL(base).origin });
  const counting: typeof client = {
    ...client,
    async fetch(url, init) {
      if (typeof init?.body !== "function") return client.fetch(url, init);
      for await (const piece of init.body()) {
        open = 0;
        sent += piece.length;
      }
      expect(sent).toBe(Number(init.headers!["content-length"]));
      return new Response('{"error":{"message":"Full."}}', { status: 400 });
    },
  };
  await expect(batches!.submit(input, counting)).rejects.toThrow("Full.");
  expect(sent).toBeGreaterThan(100_000_000);
  expect(most).toBe(1);
});

it("an endless response of the batch API is cut off", async () => {
  const { batches } = await endpointOf("openai", "chat-completions");
  const api = createBatchApi({ polls: 0 });
  const client = api.client();
  const reference = await batches!.submit(lines("/chat/completions", [CHAT]), client);
  let sent = 0;
  const endless = new ReadableStream({
    pull: (controller) => {
      sent += 1_000_000;
      controller.enqueue(new Uint8Array(1_000_000).fill(32));
    },
  });
  const hostile = { ...client, fetch: async () => new Response(endless) };
  await expect(batches!.poll(reference, hostile)).rejects.toThrow("too large");
  expect(sent).toBeLessThan(30_000_000);
});

it("lines of a result file that are too long or no objects are skipped", async () => {
  async function* pieces() {
    yield Buffer.from('{"a":1}\n[1]\nnot JSON\n');
    yield Buffer.from(`{"long":"${"x".repeat(100)}`);
    yield Buffer.from('"}\n{"b":"ü');
    yield Buffer.from('x"}\n\n{"c":3}');
  }
  const objects: object[] = [];
  for await (const object of readJsonLines(pieces(), 60)) objects.push(object);
  expect(objects).toEqual([{ a: 1 }, { b: "üx" }, { c: 3 }]);
});

// Hard budgets, case by case: requests whose reservation was once smaller than an honest provider's
// bill.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Json, ModelEvent, Protocol, Reserve, Settle } from "tollgate/plugin";
import { transcriptions } from "tollgate/protocols/transcriptions";
import { lies } from "../../unit/lib/sound-lies.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { OPERATIONS } from "../../rig/money/generous-operations.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const limit = { scope: "key", unit: "nano_usd", max: 10n ** 18n, per: "total" } as const;
const hooks = [{ charge: () => ({ hold: "hard" as const, limits: [limit] }) }];

/** Sends a request of an operation. The outgoing request is undefined if it was rejected. */
async function asked(
  name: string,
  [from, into]: readonly [string, string],
  body: object,
  model = "m",
) {
  const operation = OPERATIONS[name]!;
  await using up = await startBackend((_req, res) => {
    res.writeHead(400, { "content-type": "application/json" });
    res.end(JSON.stringify({ error: { message: "no", type: "invalid_request_error" } }));
  });
  const protocol = operation.into[into]!;
  await using s = await startTestServices({
    frontend: operation.from[from] ?? protocol,
    providers: {
      p: {
        endpoints: [{ protocol, base: up.base, auth: "none" }],
        listModels: async () =>
          [...operation.facts.keys()].map((one) => ({
            model: one,
            operation: protocol.operationSpec.name,
          })),
        facts: operation.facts as never,
      },
    },
    hooks,
  });
  const answer = await s.ask({ ...body, model: `p/${model}` });
  const told = (await answer.json()) as {
    error: { code?: string; param?: string; message: string };
  };
  const row = s.journal.find((c) => c.do === "reserve") as Reserve | undefined;
  const sent = up.asked[0] && (JSON.parse(up.asked[0].body) as { [field: string]: Json });
  return { status: answer.status, error: told.error, held: row?.holdNano ?? 0n, sent };
}

const words = { messages: [{ role: "user", content: "Hi" }] };
const gemini = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] };
const GEMINI = ["gemini", "gemini"] as const;
const CHAT = ["chat", "chat"] as const;
const IMAGES = ["images", "images"] as const;

describe("an unreadable cost field is rejected by its name", () => {
  const ROWS: readonly (readonly [Json, string, readonly [string, string], object])[] = [
    ...["1e1", "+8", [8], { value: 8 }, true, -8].flatMap((count) =>
      ["generationConfig", "generation_config"].map(
        (config) =>
          [count, "chat", GEMINI, { ...gemini, [config]: { candidateCount: count } }] as const,
      ),
    ),
    ...["1e1", [8], "0x10"].map((n) => [n, "chat", CHAT, { ...words, n }] as const),
    ...["1e3", -1, 0].map(
      (bound) => [bound, "chat", CHAT, { ...words, max_tokens: bound }] as const,
    ),
    [["priority"], "chat", CHAT, { ...words, service_tier: ["priority"] }],
    [[8], "drawn", IMAGES, { prompt: "a", numberResults: [8] }],
  ];
  it.each(ROWS)("%j in %s", async (_value, name, road, body) => {
    const { status, error, sent } = await asked(
      name,
      road,
      body,
      name === "drawn" ? "pieces" : "m",
    );
    expect(sent).toBeUndefined();
    expect(status, JSON.stringify(error)).toBe(400);
    // A protocol's schema rejects invalid fields under any budget.
    expect(error.message).toMatch(/a hard budget requires a value|must be/);
    const named = Object.keys(body).find(
      (field) => !["messages", "contents", "prompt"].includes(field),
    )!;
    expect(error.message.replaceAll("_", "").toLowerCase()).toContain(
      named.replaceAll("_", "").toLowerCase(),
    );
  });

  it("and is the provider's concern without a hard budget", async () => {
    const protocol = OPERATIONS["chat"]!.into["gemini"]!;
    await using up = await startBackend((_req, res) => res.writeHead(400).end("{}"));
    await using s = await startTestServices({
      frontend: protocol,
      providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" }] } },
    });
    await s.ask({ ...gemini, model: "p/m", generationConfig: { candidateCount: "1e1" } });
    expect(up.asked).toHaveLength(1);
  });
});

describe("a field that raises the cost counts under any name", () => {
  it.each([
    "n",
    "numImages",
    "samples",
    "batch_count",
    "numberResults",
    "num_outputs",
    "BatchSize",
    "n-samples",
  ])("%s", async (name) => {
    const { held } = await asked("drawn", IMAGES, { prompt: "a", [name]: 8 }, "pieces");
    expect(held).toBe(8n * 40_000_000n);
  });

  it("in an object with settings, and twice if two names multiply", async () => {
    const inside = { prompt: "a", parameters: { extra: { numImages: 8 } } };
    expect((await asked("drawn", IMAGES, inside, "pieces")).held).toBe(320_000_000n);
    const both = { prompt: "a", n: 8, n_iter: 2 };
    expect((await asked("drawn", IMAGES, both, "pieces")).held).toBe(640_000_000n);
  });

  it("a series of images has the length in its options, or the maximum", async () => {
    const series = { prompt: "a", sequential_image_generation: "auto" };
    expect((await asked("drawn", IMAGES, series, "pieces")).held).toBe(600_000_000n);
    const four = { ...series, sequential_image_generation_options: { max_images: 4 } };
    expect((await asked("drawn", IMAGES, four, "pieces")).held).toBe(160_000_000n);
  });
});

describe("a field that lowers a reservation must be documented for that API", () => {
  it("a token limit of another API is lowered to the reserved one", async () => {
    const both = {
      ...words,
      max_tokens: 10,
      max_new_tokens: 100_000,
      options: { num_predict: 9_000 },
    };
    const { sent, held } = await asked("chat", CHAT, both);
    expect(sent).toMatchObject({ max_new_tokens: 4_096, options: { num_predict: 4_096 } });
    expect(held).toBeGreaterThanOrEqual(4_096n * 10_000n);
    const alone = await asked("chat", CHAT, { ...words, max_new_tokens: 100_000 });
    expect(alone.sent).toMatchObject({ max_new_tokens: 4_096, max_completion_tokens: 4_096 });
  });

  it("max_uses limits the tools of Messages, and of no other API", async () => {
    const tools = (type: string) => [{ type, name: "web_search", max_uses: 1 }];
    const messages = await asked("chat", ["messages", "messages"], {
      ...words,
      max_tokens: 1,
      tools: tools("web_search_20250305"),
    });
    const responses = await asked("chat", ["responses", "responses"], {
      input: "Hi",
      max_output_tokens: 1,
      tools: tools("web_search"),
    });
    expect(messages.held).toBeLessThan(150_000_000n);
    // Ten runs, each with the model's maximum input.
    expect(responses.held).toBeGreaterThan(11n * 50_000n * 1_000n);
  });
});

describe("costs without a limiting field", () => {
  it("images billed by token are reserved by their size, and rejected without one", async () => {
    const held = async (size: string) =>
      (await asked("drawn", IMAGES, { prompt: "a", size }, "tokens")).held;
    expect(await held("4096x4096")).toBeGreaterThan(66_560n * 30_000n);
    expect(await held("1024x1024")).toBeLessThan(66_560n * 3_000n * 5n);
    for (const body of [
      {},
      { size: "auto" },
      { size: "4K" },
      { size: "1024x1024", resolution: "4K" },
    ]) {
      const { status, error, sent } = await asked(
        "drawn",
        IMAGES,
        { prompt: "a", ...body },
        "tokens",
      );
      expect(sent).toBeUndefined();
      expect(status).toBe(400);
      expect(error, JSON.stringify(body)).toMatchObject({
        code: "size" in body && body.size === "4K" ? "invalid_request" : "unbounded_cost",
        param: "size",
      });
    }
    // A model whose largest image is known reserves it.
    const known = await asked("drawn", IMAGES, { prompt: "a" }, "known");
    expect(known.held).toBeGreaterThan(66_560n * 30_000n);
  });

  it("speech billed by token is rejected, unless the model's longest response is known", async () => {
    const body = { input: "Hi", voice: "alloy", instructions: "Say it a hundred times." };
    const road = ["speech", "speech"] as const;
    const { status, error } = await asked("spoken", road, body, "tokens");
    expect(status).toBe(400);
    expect(error).toMatchObject({ code: "unbounded_cost" });
    expect(error.message).toContain("limits: { output: … }");
    expect((await asked("spoken", road, body, "capped")).held).toBeGreaterThan(2_000n * 12_000n);
    expect((await asked("spoken", road, body, "characters")).held).toBeGreaterThan(0n);
  });

  it("documents in hex are reserved at one token per byte, each with the query", async () => {
    const road = ["rerank", "rerank"] as const;
    const documents = Array.from({ length: 100 }, () => "0123456789abcdef".repeat(60));
    const { held } = await asked("ranking", road, { query: "a", documents }, "searches");
    expect(held).toBe(2n * 2_000_000n);
    const query = "0123456789abcdef".repeat(60);
    const read = await asked("ranking", road, { query, documents: ["a", "b", "c"] }, "tokens");
    expect(read.held).toBeGreaterThan(3n * 960n * 1_000n);
  });

  it("an endpoint that calls by itself receives the reserved limit", async () => {
    const given: unknown[] = [];
    const protocol = createToyProtocol();
    await using s = await startTestServices({
      frontend: protocol,
      providers: {
        p: {
          facts: OPERATIONS["chat"]!.facts as never,
          endpoints: [
            {
              operation: "chat" as const,
              async *run(request: { output: unknown }): AsyncGenerator<ModelEvent> {
                given.push(request.output);
                yield { type: "start", id: "u1" };
                yield { type: "finish", reason: "stop" };
              },
            },
          ],
        },
      },
      hooks,
    });
    await (await s.ask({ model: "p/m", text: "hi" })).text();
    expect(given).toMatchObject([{ maxTokens: 4_096 }]);
  });
});

describe("an audio file with a false header", () => {
  const protocol = transcriptions() as Protocol;
  const FILE = new URL("../../fixtures/sounds/tone-1500ms.wav", import.meta.url);

  async function heard(file: Buffer, hold: "hard" | "expected") {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "application/json" }).end('{"text":"la"}');
    });
    const price = { lines: [{ unit: "seconds", usd: "0.0001", per: 1 }] };
    await using s = await startTestServices({
      frontend: protocol,
      body: "form" as never,
      providers: {
        p: {
          endpoints: [{ protocol, base: up.base, auth: "none" }],
          listModels: async () => [{ model: "m", operation: "transcript" as const }],
          facts: new Map([["m", { operation: "transcript", price }]]) as never,
        },
      },
      hooks: [{ charge: () => ({ hold, limits: [limit] }) }],
    });
    const form = new FormData();
    form.set("model", "p/m");
    form.set("file", new Blob([new Uint8Array(file)]), "a.wav");
    const answer = await fetch(`${s.url}/toy`, {
      method: "POST",
      headers: { authorization: "Bearer x" },
      body: form,
    });
    expect(answer.status, await answer.text()).toBe(200);
    return {
      reserve: s.journal.find((c) => c.do === "reserve") as Reserve,
      settle: s.journal.find((c) => c.do === "settle") as Settle,
    };
  }

  it("is reserved by what its bytes can contain, and billed as an estimate of at least that", async () => {
    const file = readFileSync(FILE);
    const { reserve, settle } = await heard(file, "expected");
    expect(settle).toMatchObject({ state: "exact", usage: { seconds: 2 } });
    expect(reserve.claims[0]!.take).toBe(200_000n);
    for (const lie of lies("wav", file)) {
      const { reserve, settle } = await heard(lie.file, "hard");
      expect(reserve.claims[0]!.take, lie.what).toBeGreaterThanOrEqual(
        BigInt(lie.file.length * 100_000) / 750n,
      );
      if (settle.state === "exact") expect(settle.usage.seconds, lie.what).toBe(2);
      else expect(settle, lie.what).toMatchObject({ state: "estimated" });
      expect(settle.usage.seconds, lie.what).toBeGreaterThanOrEqual(2);
    }
  });
});

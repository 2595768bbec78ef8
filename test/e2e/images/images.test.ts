// Images through a whole gateway: generated offline, by providers of several dialects, and by one
// with polling. images/ contains tests of lists, storage, and dialed addresses.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { sniffImage } from "../../../src/protocols/images/index.ts";
import { png } from "../../protocols/images/pictures.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

const KEY = "alice-key";
const yaml = (up: string) => `
frontends: [images, models, chat-completions, messages, responses]
middleware:
  - use: auth
    with: { keys: [{ id: alice, digest: "${digestKey(KEY)}" }, { id: bob, digest: "${digestKey("bob")}", models: ["demo/*"] }] }
  - zdr
  - usage
providers:
  demo: { use: demo }
  openai: { use: openai, with: { api_key: k, base_url: "${up}/openai/v1" } }
  together: { use: together, with: { api_key: k, base_url: "${up}/together/v1" } }
  xai: { use: xai, with: { api_key: k, base_url: "${up}/xai/v1" } }
  bfl: { use: bfl, with: { api_key: k, base_url: "${up}/bfl/v1" } }
`;

const PICTURE = png(32, 24);
const B64 = PICTURE.toString("base64");
const USAGE = {
  input_tokens: 9,
  output_tokens: 1000,
  total_tokens: 1009,
  input_tokens_details: { text_tokens: 9, image_tokens: 0 },
  output_tokens_details: { text_tokens: 0, image_tokens: 1000 },
};
const list = (...ids: string[]) =>
  jsonResponse({
    object: "list",
    data: ids.map((id) => ({ id, object: "model", created: 1, owned_by: "x" })),
  });

let up: TestUpstream;
let gateway: InProcessGateway;
const client = (apiKey = KEY) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
const raised = (run: Promise<unknown>) =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code, param, message }: any) => ({ status, code, param, message }),
  );
const refresh = () => gateway.ask("models.refresh");
const lastBody = () => up.requests.findLast((r) => r.method === "POST")!.json();

beforeAll(async () => {
  up = await startUpstream({
    "GET /openai/v1/models": list("gpt-6", "gpt-image-2"),
    "GET /together/v1/models": jsonResponse([{ id: "flux/schnell", type: "image" }]),
    "GET /xai/v1/models": list("grok-5", "grok-imagine-image"),
    "POST /openai/v1/images/generations": jsonResponse({
      created: 1,
      data: [{ b64_json: B64 }],
      usage: USAGE,
    }),
    "POST /together/v1/images/generations": jsonResponse({
      id: "t",
      model: "flux/schnell",
      data: [{ b64_json: B64 }],
    }),
    "POST /xai/v1/images/generations": jsonResponse({
      data: [{ b64_json: B64, revised_prompt: "a harbour" }],
    }),
    "POST /bfl/v1/*": (asked) =>
      jsonResponse({ id: "j", polling_url: `http://${asked.headers.host}/poll`, cost: 4 }),
    "GET /poll": (asked) =>
      jsonResponse({ status: "Ready", result: { sample: `http://${asked.headers.host}/sample` } }),
    "GET /sample": { headers: { "content-type": "image/png" }, body: PICTURE },
  });
  gateway = await startInProcess({ yaml: yaml(up.url) });
  await refresh();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

describe("the demo", () => {
  it("generates the requested images, as bytes by default", async () => {
    const made = await client().images.generate({
      model: "demo/image",
      prompt: "A harbour",
      size: "64x48" as "1024x1024",
      n: 2,
    });
    expect(made.data).toHaveLength(2);
    expect(made.size).toBe("64x48");
    for (const { b64_json } of made.data!)
      expect(sniffImage({ base64: b64_json! })).toEqual({
        mime: "image/png",
        size: { width: 64, height: 48 },
      });
  });

  it("streams partial images first", async () => {
    const stream = await client().images.generate({
      model: "demo/image",
      prompt: "A harbour",
      size: "64x48" as "1024x1024",
      stream: true,
      partial_images: 2,
    });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual([
      "image_generation.partial_image",
      "image_generation.partial_image",
      "image_generation.completed",
    ]);
  });

  it("reports what it supports if a request is unsupported", async () => {
    const generate = (more: object) =>
      raised(client().images.generate({ model: "demo/image", prompt: "x", ...more }));
    expect(await generate({ n: 11 })).toMatchObject({ status: 400, param: "n" });
    expect(await generate({ size: "9x9" })).toMatchObject({
      status: 400,
      param: "size",
      message: expect.stringContaining("16 to 2048"),
    });
    expect(await generate({ size: "large" })).toMatchObject({ status: 400 });
    expect(await generate({ prompt: "" })).toMatchObject({ status: 400 });
  });
});

describe("an image URL", () => {
  it("serves the image for some time, to no other key, and after a restart", async () => {
    const made = await client().images.generate({
      model: "demo/image",
      prompt: "A harbour",
      size: "64x48" as "1024x1024",
      response_format: "url",
    });
    const url = made.data![0]!.url!;
    expect(url.startsWith(`${gateway.url}/files/`)).toBe(true);
    expect(new URL(url).pathname).toMatch(/\.png$/);
    const got = await fetch(url);
    expect(got.headers.get("content-type")).toBe("image/png");
    expect(sniffImage({ bytes: Buffer.from(await got.arrayBuffer()) })!.size).toEqual({
      width: 64,
      height: 48,
    });
    expect((await fetch(url.replace(/.$/, (c) => (c === "A" ? "B" : "A")))).status).toBe(404);
    expect((await fetch(url.replace(/e=\d+/, "e=99999999999"))).status).toBe(404);

    const { dir } = gateway;
    await gateway.stop();
    gateway = await startInProcess({ yaml: yaml(up.url), dir });
    await refresh();
    const { pathname, search } = new URL(url);
    expect((await fetch(gateway.url + pathname + search)).status).toBe(200);
  });

  it("is rejected if nothing may be stored", async () => {
    expect(
      await raised(
        client().images.generate(
          { model: "demo/image", prompt: "x", response_format: "url" },
          { headers: { "service-zdr": "required" } },
        ),
      ),
    ).toMatchObject({ status: 400, param: "response_format" });
    const made = await client().images.generate(
      { model: "demo/image", prompt: "x", size: "64x48" as "1024x1024" },
      { headers: { "service-zdr": "required" } },
    );
    expect(made.data).toHaveLength(1);
  });
});

describe("providers", () => {
  const generate = (model: string, more: object = {}) =>
    client().images.generate({ model, prompt: "A harbour", ...more });

  it("OpenAI: returns bytes without a requested format, and tokens as reported", async () => {
    const made = await generate("openai/gpt-image-2", { size: "1024x1024", moderation: "low" });
    expect(made).toMatchObject({ data: [{ b64_json: B64 }], usage: USAGE });
    expect(lastBody()).toEqual({
      model: "gpt-image-2",
      prompt: "A harbour",
      size: "1024x1024",
      moderation: "low",
    });
    const kept = await generate("openai/gpt-image-2", { response_format: "url" });
    expect(kept.usage).toEqual(USAGE);
    expect(lastBody()).toEqual({ model: "gpt-image-2", prompt: "A harbour" });
    const got = await fetch(kept.data![0]!.url!);
    expect(Buffer.from(await got.arrayBuffer()).equals(PICTURE)).toBe(true);
  });

  it("Together: accepts width and height, another name for bytes, and its own fields", async () => {
    const made = await generate("together/flux/schnell", { size: "1024x768", steps: 4 });
    expect(made.data).toEqual([{ b64_json: B64 }]);
    expect(lastBody()).toEqual({
      model: "flux/schnell",
      prompt: "A harbour",
      steps: 4,
      width: 1024,
      height: 768,
      response_format: "base64",
    });
  });

  it("xAI: gets an aspect ratio in place of a size, and the client gets a warning", async () => {
    const answer = await client()
      .images.generate({ model: "xai/grok-imagine-image", prompt: "A harbour", size: "1792x1024" })
      .withResponse();
    expect(answer.data.data).toEqual([{ b64_json: B64, revised_prompt: "a harbour" }]);
    expect(lastBody()).toMatchObject({ aspect_ratio: "16:9", response_format: "b64_json" });
    expect(lastBody().size).toBeUndefined();
    expect(answer.response.headers.get("x-tollgate-warnings")).toContain("size");
  });

  it("Black Forest Labs: its job is polled", async () => {
    const made = await generate("bfl/flux-pro-1.1", { size: "1024x768" });
    expect(made.data).toEqual([{ b64_json: B64 }]);
    const address = await generate("bfl/flux-pro-1.1", { response_format: "url" });
    expect(address.data![0]!.url).toBe(`${up.url}/sample`);
  });
});

describe("the catalog", () => {
  it("lists the models that the key may use, filtered, for the SDKs of both families", async () => {
    const ids = async (key: string, query: Record<string, string> = {}) => {
      const all: string[] = [];
      for await (const model of client(key).models.list({ query })) all.push(model.id);
      return all;
    };
    expect(await ids(KEY, { operation: "image" })).toEqual(
      expect.arrayContaining([
        "demo/image",
        "openai/gpt-image-2",
        "xai/grok-imagine-image",
        "together/flux/schnell",
        "bfl/flux-pro-1.1",
      ]),
    );
    expect(await ids("bob")).toEqual([
      "demo/complete",
      "demo/echo",
      "demo/embed",
      "demo/fail",
      "demo/image",
      "demo/lorem",
      "demo/moderate",
      "demo/rerank",
      "demo/slow",
      "demo/speech",
      "demo/think",
      "demo/tools",
      "demo/transcribe",
    ]);
    expect(await ids(KEY, { zdr: "required", operation: "image" })).toEqual(["demo/image"]);
    expect((await client().models.retrieve("together/flux/schnell")).id).toBe(
      "together/flux/schnell",
    );
    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0 });
    const page = await anthropic.models.list({ limit: 3 });
    expect(page.data).toHaveLength(3);
    expect(page.has_more).toBe(true);
  });

  it("each endpoint names the right one for models of another type", async () => {
    expect(
      await raised(client().images.generate({ model: "openai/gpt-6", prompt: "x" })),
    ).toMatchObject({ status: 400, message: expect.stringContaining("/v1/chat/completions") });
    const asked = up.requests.length;
    for (const [path, body] of [
      ["/v1/chat/completions", { messages: [{ role: "user", content: "x" }] }],
      ["/v1/messages", { messages: [{ role: "user", content: "x" }], max_tokens: 9 }],
      ["/v1/responses", { input: "x" }],
    ] as const)
      for (const model of ["openai/gpt-image-2", "demo/image", "bfl/flux-pro-1.1"]) {
        const answer = await fetch(gateway.url + path, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(path === "/v1/messages"
              ? { "x-api-key": KEY, "anthropic-version": "2023-06-01" }
              : { authorization: `Bearer ${KEY}` }),
          },
          body: JSON.stringify({ model, ...body }),
        });
        const said: any = await answer.json();
        expect([answer.status, said.error.message], path).toEqual([
          400,
          `${model} is an image model. Send requests for it to /v1/images/generations.`,
        ]);
      }
    expect(up.requests.length).toBe(asked);
  });
});

// Every provider of images, through common SDKs, in both formats.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateImage } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sniffImage } from "../../../src/protocols/images/index.ts";
import { HOSTS, KEYS, PICTURE, raised, studio, USAGE, type Studio } from "./studio.ts";

let s: Studio;
beforeAll(async () => void (s = await studio()));
afterAll(() => s[Symbol.asyncDispose]());

/** The demo generates its own. All others forward the upstream's, bit for bit. */
const same = (bytes: Uint8Array, model: string): void => {
  if (model === "demo/image")
    expect(sniffImage({ bytes: Buffer.from(bytes) })?.mime).toBe("image/png");
  else expect(Buffer.from(bytes).equals(PICTURE)).toBe(true);
};

describe.each(HOSTS.map(({ provider, model }) => [provider, model]))("%s", (provider, model) => {
  const ask = { model, prompt: "A harbour", size: "1024x1024" } as const;

  it("openai SDK: bytes by default", async () => {
    for (const form of [undefined, "b64_json"] as const) {
      const made = await s.client().images.generate({ ...ask, response_format: form ?? null });
      expect(made.data).toHaveLength(1);
      expect(made.data![0]!.url).toBeUndefined();
      same(Buffer.from(made.data![0]!.b64_json!, "base64"), model);
      if (provider === "openai") expect(made.usage).toEqual(USAGE);
    }
  });

  it("openai SDK: a URL that serves the image", async () => {
    const made = await s.client().images.generate({ ...ask, response_format: "url" });
    const [item] = made.data!;
    expect(item!.b64_json).toBeUndefined();
    const got = await fetch(item!.url!);
    expect(got.headers.get("content-type")).toBe("image/png");
    same(await got.bytes(), model);
  });

  it("openai SDK: a stream that ends with the image", async () => {
    const stream = await s.client().images.generate({ ...ask, stream: true });
    const events = [];
    for await (const event of stream) events.push(event);
    const last = events.at(-1)!;
    expect(last.type).toBe("image_generation.completed");
    same(Buffer.from(last.b64_json, "base64"), model);
  });

  it.each([
    [
      "AI SDK, OpenAI",
      () => createOpenAI({ baseURL: `${s.gateway.url}/v1`, apiKey: KEYS.alice }).image(model),
    ],
    [
      "AI SDK, compatible",
      () =>
        createOpenAICompatible({
          name: "gateway",
          baseURL: `${s.gateway.url}/v1`,
          apiKey: KEYS.alice,
        }).imageModel(model),
    ],
  ])("%s", async (_, drawing) => {
    const { image } = await generateImage({
      model: drawing(),
      prompt: "A harbour",
      size: "1024x1024",
      maxRetries: 0,
    });
    expect(image.mediaType).toBe("image/png");
    same(image.uint8Array, model);
  });
});

describe("unsupported options", () => {
  it.each([
    ["openai/gpt-image-2", { n: 11 }, "n", /at most 10 images/],
    ["openai/gpt-image-2", { quality: "ultra" }, "quality", /low, medium, high/],
    ["openai/gpt-image-1.5", { size: "512x512" }, "size", /1024x1024, 1536x1024, 1024x1536/],
    ["openai/gpt-image-2", { output_format: "bmp" }, "output_format", /png, jpeg, webp/],
    ["together/black-forest-labs/flux-schnell", { n: 5 }, "n", /at most 4 images/],
    ["bfl/flux-pro-1.1", { n: 5 }, "n", /at most 4 images/],
    ["google/gemini-3-pro-image", { n: 11 }, "n", /up to 10 images/],
    ["demo/image", { size: "8x8" }, "size", /16 to 2048/],
    ["demo/image", { size: "huge" }, "size", /must match/],
  ])(
    "%s %j: the error states the supported values, and no provider is called",
    async (model, more, param, can) => {
      const before = s.up.requests.length;
      const said = await raised(
        s.client().images.generate({ model, prompt: "A harbour", ...(more as object) }),
      );
      expect(said).toMatchObject({ status: 400, param });
      expect(said.message).toMatch(can);
      expect(s.up.requests.length).toBe(before);
    },
  );

  it.each([
    [{ model: "demo/image" }, "prompt"],
    [{ prompt: "A harbour" }, "model"],
    [{ model: "demo/image", prompt: "" }, "prompt"],
    [{ model: "demo/image", prompt: "x", response_format: "png" }, "response_format"],
    [{ model: "demo/image", prompt: "x", n: 0 }, "n"],
  ])("without any provider: %j", async (body, param) => {
    expect(await raised(s.client().images.generate(body as never))).toMatchObject({
      status: 400,
      param,
    });
  });
});

describe("the outgoing request", () => {
  const warned = async (model: string, more: object) => {
    const { response } = await s
      .client()
      .images.generate({ model, prompt: "A harbour", ...more })
      .withResponse();
    return response.headers.get("x-tollgate-warnings");
  };

  it("OpenAI: values of older models are converted, or dropped with a warning", async () => {
    expect(await warned("openai/gpt-image-2", { quality: "hd", style: "vivid" })).toBe(
      "dropped;field=style",
    );
    expect(s.last()).toEqual({ model: "gpt-image-2", prompt: "A harbour", quality: "high" });
    await warned("openai/gpt-image-2", { quality: "standard" });
    expect(s.last().quality).toBe("medium");
  });

  it("xAI: gets the nearest aspect ratio and no rejected field, and auto is omitted", async () => {
    const warnings = await warned("xai/grok-imagine-image", {
      size: "1792x1024",
      quality: "high",
      style: "vivid",
      background: "auto",
    });
    expect(warnings!.split(", ").sort()).toEqual([
      "dropped;field=quality",
      "dropped;field=style",
      "size_approximated;field=size",
    ]);
    expect(s.last()).toEqual({
      model: "grok-imagine-image",
      prompt: "A harbour",
      aspect_ratio: "16:9",
      resolution: "2k",
      response_format: "b64_json",
    });
  });

  it("a provider without streaming is not asked to stream", async () => {
    const stream = await s.client().images.generate({
      model: "together/black-forest-labs/flux-schnell",
      prompt: "A harbour",
      stream: true,
      partial_images: 2,
    });
    const types = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual(["image_generation.completed"]);
    expect(s.last()).not.toHaveProperty("stream");
    expect(s.last()).not.toHaveProperty("partial_images");
  });

  it("unknown fields are forwarded", async () => {
    await warned("together/black-forest-labs/flux-schnell", { steps: 4, guidance_scale: 3.5 });
    expect(s.last()).toMatchObject({ steps: 4, guidance_scale: 3.5 });
    await warned("openai/gpt-image-2", { brush: "wide" });
    expect(s.last()).toMatchObject({ brush: "wide" });
  });
});

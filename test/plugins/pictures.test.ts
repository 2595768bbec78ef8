// Images through a gateway: with models that generate one at a time, and with providers with and
// without streaming.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  eventStreamResponse,
  jsonResponse,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { png } from "../protocols/images/pictures.ts";
import { startTestGateway, type TestGateway } from "tollgate/testing";
import { KEY, ONE_KEY } from "../kit/one-key.ts";
import { turnEventLoop, until } from "../kit/wait.ts";

const data = png(32, 24).toString("base64");
const drawn = {
  responseId: "r",
  modelVersion: "gemini-3-pro-image",
  candidates: [
    {
      content: { role: "model", parts: [{ inlineData: { mimeType: "image/png", data } }] },
      finishReason: "STOP",
    },
  ],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 100 },
};

let up: TestUpstream;
let house: TestGateway;
let open = 0;
let most = 0;
let failing = 0;
beforeAll(async () => {
  up = await startUpstream({
    "POST /v1beta/models/gemini-3-pro-image:generateContent": async () => {
      most = Math.max(most, ++open);
      await turnEventLoop(200);
      open--;
      if (failing-- > 0)
        return jsonResponse(
          { error: { code: 400, message: "No.", status: "INVALID_ARGUMENT" } },
          400,
        );
      return jsonResponse(drawn);
    },
    "POST /slow/images/generations": jsonResponse({ created: 1, data: [{ b64_json: data }] }),
    "POST /live/images/generations": eventStreamResponse([
      `data: ${JSON.stringify({ type: "image_generation.completed", b64_json: data })}\n\n`,
    ]),
    "GET /slow/models": jsonResponse({ data: [{ id: "m" }] }),
    "GET /live/models": jsonResponse({ data: [{ id: "m" }] }),
    "GET /v1beta/models": jsonResponse({
      models: [
        { name: "models/gemini-3-pro-image", supportedGenerationMethods: ["generateContent"] },
      ],
    }),
  });
  house = await startTestGateway({
    yaml: `${ONE_KEY}
frontends: [images]
providers:
  google: { use: google, with: { api_key: k, base_url: "${up.url}" } }
  slow: { use: openai-compatible, with: { base_url: "${up.url}/slow", images: ["*"] } }
  live: { use: openai-compatible, with: { base_url: "${up.url}/live", images: ["*"], image_streams: true } }
`,
  });
  // Its model list is fetched in the background.
  await until(async () => (await ask({ n: 11 })).status === 400);
});
afterAll(async () => {
  await house[Symbol.asyncDispose]();
  await up[Symbol.asyncDispose]();
});

const ask = async (more: object) => {
  const before = up.requests.length;
  const answer = await fetch(`${house.url}/v1/images/generations`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "google/gemini-3-pro-image", prompt: "a harbour", ...more }),
  });
  const body = (await answer.json()) as any;
  return {
    status: answer.status,
    body,
    asked: up.requests.slice(before).filter((r) => r.method === "POST"),
  };
};

describe("an image stream", () => {
  it.each([
    ["slow", undefined, "dropped;field=partial_images"],
    ["live", true, null],
  ])("of %s", async (provider, stream, warned) => {
    const answer = await fetch(`${house.url}/v1/images/generations`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: `${provider}/m`,
        prompt: "x",
        stream: true,
        partial_images: 1,
      }),
    });
    expect(await answer.text()).toContain("image_generation.completed");
    expect(answer.headers.get("x-tollgate-warnings")).toBe(warned);
    expect((up.requests.at(-1)!.json() as any).stream).toBe(stream);
  });
});

describe("images", () => {
  it("one is one request", async () => {
    const { status, body, asked } = await ask({});
    expect([status, body.data?.length, asked.length]).toEqual([200, 1, 1]);
  });
  it("several are several requests, a few at a time, and their counts are summed", async () => {
    most = 0;
    const { status, body, asked } = await ask({ n: 7 });
    expect([status, body.data?.length, asked.length]).toEqual([200, 7, 7]);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
    expect(body.usage).toMatchObject({ input_tokens: 35, output_tokens: 700 });
  });
  it("fail together if one fails", async () => {
    failing = 1;
    const { status, body } = await ask({ n: 2 });
    expect([status, body.error?.message]).toEqual([400, expect.stringContaining("No.")]);
  });
  it("are limited to ten", async () => {
    const { status, body, asked } = await ask({ n: 11 });
    expect([status, body.error?.param, asked.length]).toEqual([400, "n", 0]);
  });
  it("reject a transparent background", async () => {
    const { status, body, asked } = await ask({ background: "transparent" });
    expect([status, body.error?.param, asked.length]).toEqual([400, "background", 0]);
  });
});

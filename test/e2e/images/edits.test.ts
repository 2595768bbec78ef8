// Image edits: with every provider that supports them, through common SDKs, as a form and as JSON,
// with their cost.
import { createOpenAI } from "@ai-sdk/openai";
import { generateImage } from "ai";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jsonResponse, type ScriptedReply, type UpstreamRequest } from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { sniffImage } from "../../../src/protocols/images/index.ts";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../../kit/in-process.ts";
import { png } from "../../protocols/images/pictures.ts";
import { until } from "../../kit/wait.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

const KEYS = { alice: "alice-key", bob: "bob-key", poor: "poor-key" } as const;
const RESULT = png(32, 24);
const RESULT64 = RESULT.toString("base64");
/** What clients bring. */
const HOUSE = png(8, 8);
const TREE = png(9, 9);
const MASK = png(8, 7);
const USAGE = {
  input_tokens: 209,
  output_tokens: 1_000,
  total_tokens: 1_209,
  input_tokens_details: { text_tokens: 9, image_tokens: 200 },
  output_tokens_details: { text_tokens: 0, image_tokens: 1_000 },
};

/** A provider's received fields, and the bytes of its files by name. */
async function given(asked: UpstreamRequest): Promise<{ fields: any; files: [string, Buffer][] }> {
  const type = asked.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/")) return { fields: asked.json(), files: [] };
  const form = await new Response(new Uint8Array(asked.body), {
    headers: { "content-type": type },
  }).formData();
  const fields: Record<string, unknown> = {};
  const files: [string, Buffer][] = [];
  for (const [name, value] of form as unknown as Iterable<[string, string | File]>)
    if (typeof value === "string") fields[name] = value;
    else files.push([name, Buffer.from(await value.arrayBuffer())]);
  return { fields, files };
}

const event = (type: string, data: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;

/** OpenAI's response: immediate, or with partial images first. */
const edited: ScriptedReply = async (asked) => {
  const { fields, files } = await given(asked);
  if (files.length === 0 && !fields.images)
    return jsonResponse({ error: { message: "image is required" } }, 400);
  if ("response_format" in fields)
    return jsonResponse({ error: { message: "Unknown parameter: 'response_format'." } }, 400);
  if (String(fields.stream) !== "true")
    return {
      ...jsonResponse({ created: 1, data: [{ b64_json: RESULT64 }], usage: USAGE }),
      billedUsage: {},
    };
  const partial = { b64_json: RESULT64, partial_image_index: 0 };
  return {
    headers: { "content-type": "text/event-stream" },
    body:
      (fields.partial_images ? event("image_edit.partial_image", partial) : "") +
      event("image_edit.completed", { b64_json: RESULT64, usage: USAGE }),
  };
};

const listed = (...ids: string[]) =>
  jsonResponse({ object: "list", data: ids.map((id) => ({ id })) });

interface Editor {
  readonly model: string;
  readonly mask: boolean;
  readonly mode: "passthrough" | "translated";
  /** In nano-dollars, for one request. */
  readonly cost: number;
  /** Images that this provider received. */
  readonly brought: (asked: UpstreamRequest) => Promise<readonly Buffer[]> | readonly Buffer[];
}

const bytes = (said: string): Buffer => Buffer.from(said.replace(/^data:[^,]*,/, ""), "base64");
const filesOf = async (asked: UpstreamRequest): Promise<readonly Buffer[]> =>
  (await given(asked)).files.filter(([name]) => name.startsWith("image")).map(([, file]) => file);

const EDITORS: readonly Editor[] = [
  // $5 per million text tokens, $8 for input images, and $30 for output images.
  {
    model: "openai/gpt-image-2",
    mask: true,
    mode: "passthrough",
    cost: 31_645_000,
    brought: filesOf,
  },
  { model: "other/painter", mask: true, mode: "passthrough", cost: 20_000_000, brought: filesOf },
  {
    model: "google/gemini-3-pro-image",
    mask: false,
    mode: "translated",
    cost: 134_410_000,
    brought: (asked) =>
      asked
        .json()
        .contents[0].parts.flatMap(({ inlineData }: any) =>
          inlineData ? [bytes(inlineData.data)] : [],
        ),
  },
  {
    model: "xai/grok-imagine-image",
    mask: false,
    mode: "translated",
    cost: 20_000_000,
    brought(asked) {
      const { image, images = [image] } = asked.json();
      for (const one of images) expect(Object.keys(one)).toEqual(["url", "type"]);
      return images.map(({ url }: any) => bytes(url));
    },
  },
  {
    model: "bfl/flux-kontext-pro",
    mask: false,
    mode: "translated",
    cost: 40_000_000,
    brought: (asked) =>
      ["input_image", "input_image_2"].flatMap((field) => {
        const said = asked.json()[field];
        return said ? [bytes(said)] : [];
      }),
  },
];

let at: InProcessWithUpstream;
beforeAll(async () => {
  at = await startInProcessWithUpstream(
    {
      "GET /picture.png": { headers: { "content-type": "image/png" }, body: RESULT },
      "GET /openai/v1/models": listed("gpt-image-2"),
      "POST /openai/v1/images/edits": edited,
      "POST /openai/v1/images/generations": jsonResponse({
        created: 1,
        data: [{ b64_json: RESULT64 }],
      }),
      "GET /other/v1/models": listed("painter"),
      "POST /other/v1/images/edits": async (asked) => {
        const { files } = await given(asked);
        if (files.length === 0) return jsonResponse({ error: { message: "no file" } }, 400);
        return jsonResponse({ created: 1, data: [{ b64_json: RESULT64 }] });
      },
      "GET /words/v1/models": listed("from-words"),
      "GET /xai/v1/models": listed("grok-imagine-image"),
      "POST /xai/v1/images/edits": (asked) => {
        if (!String(asked.headers["content-type"]).startsWith("application/json"))
          return jsonResponse({ error: "Unsupported media type" }, 415);
        return jsonResponse({
          data: [{ b64_json: RESULT64 }],
          usage: { cost_in_usd_ticks: 200_000_000 },
        });
      },
      "GET /google/v1beta/models": jsonResponse({
        models: [
          { name: "models/gemini-3-pro-image", supportedGenerationMethods: ["generateContent"] },
        ],
      }),
      "POST /google/v1beta/models/*": jsonResponse({
        candidates: [
          {
            content: {
              role: "model",
              parts: [{ inlineData: { mimeType: "image/png", data: RESULT64 } }],
            },
            finishReason: "STOP",
          },
        ],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1_120, totalTokenCount: 1_125 },
      }),
      "POST /bfl/v1/*": (asked) =>
        jsonResponse({ id: "j", polling_url: `http://${asked.headers.host}/poll`, cost: 4 }),
      "GET /poll": (asked) =>
        jsonResponse({
          status: "Ready",
          result: { sample: `http://${asked.headers.host}/picture.png` },
        }),
      "POST /slow/v1/images/edits": { delayMs: 20_000 },
    },
    (up) => `
store: memory
max_body: 100MiB
frontends: [images, models]
retries: { per_target: 1 }
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digestKey(KEYS.alice)}" }
        - { id: bob, digest: "${digestKey(KEYS.bob)}", models: ["demo/*"] }
        - { id: poor, digest: "${digestKey(KEYS.poor)}", limits: [usd=0.000001/total] }
  - zdr
  - limits
  - usage
providers:
  demo: { use: demo }
  openai: { use: openai, with: { api_key: k, base_url: "${up}/openai/v1" } }
  other:
    use: openai-compatible
    with: { base_url: "${up}/other/v1", images: ["*"], image_edits: true }
    models: { painter: { price: { images: "0.02" } } }
  words:
    use: openai-compatible
    with: { base_url: "${up}/words/v1", images: ["*"] }
  google: { use: google, with: { api_key: k, base_url: "${up}/google" } }
  xai:
    use: xai
    with: { api_key: k, base_url: "${up}/xai/v1" }
    models: { grok-imagine-image: { price: { images: "0.02" } } }
  bfl: { use: bfl, with: { api_key: k, base_url: "${up}/bfl/v1" } }
  slow:
    use: openai-compatible
    with: { base_url: "${up}/slow/v1", images: ["*"], image_edits: true, list_models: false }
    models: { m: { operation: image, price: { images: "0.02" } } }
`,
  );
  await at.gateway.ask("models.refresh");
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const client = (apiKey: string = KEYS.alice) =>
  new OpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey, maxRetries: 0 });
const file = (data: Buffer, name = "house.png") => toFile(data, name, { type: "image/png" });
const posted = () => at.up.requests.filter(({ method }) => method === "POST");
const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code, param, message }) => ({ status, code, param, message }),
  );
async function settles(provider?: string): Promise<any[]> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.filter(
    (row: any) => row.kind === "settle" && (!provider || row.target.provider === provider),
  );
}
async function post(body: object, headers: Record<string, string> = {}, path = "/v1/images/edits") {
  const res = await fetch(`${at.gateway.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${KEYS.alice}`,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return { status: res.status, headers: res.headers, body: (await res.json()) as any };
}
const dataUrl = (data: Buffer) => `data:image/png;base64,${data.toString("base64")}`;

describe.each(EDITORS.map((editor) => [editor.model, editor] as const))("%s", (model, of) => {
  const ask = { model, prompt: "More snow" };

  it("openai SDK: one image", async () => {
    const before = (await settles()).length;
    const made = await client().images.edit({ ...ask, image: await file(HOUSE) });
    expect(Buffer.from(made.data![0]!.b64_json!, "base64")).toEqual(RESULT);
    const [asked] = posted();
    expect(await of.brought(asked!)).toEqual([HOUSE]);
    const rows = (await settles()).slice(before);
    expect(rows.map(({ state, costNano }) => [state, Number(costNano)])).toEqual([
      ["exact", of.cost],
    ]);
  });

  it("openai SDK: several images, in their order", async () => {
    const image = [await file(HOUSE), await file(TREE, "tree.png")];
    await client().images.edit({ ...ask, image, size: "1024x1024" });
    expect(await of.brought(posted()[0]!)).toEqual([HOUSE, TREE]);
  });

  it("openai SDK: a mask", async () => {
    const edit = client().images.edit({
      ...ask,
      image: await file(HOUSE),
      mask: await file(MASK, "mask.png"),
    });
    if (of.mask) {
      await edit;
      const { files } = await given(posted()[0]!);
      expect(files).toContainEqual(["mask", MASK]);
    } else {
      expect(await raised(edit)).toMatchObject({
        status: 400,
        param: "mask",
        message: expect.stringContaining("does not support masks"),
      });
      expect(posted()).toEqual([]);
    }
  });

  it("openai SDK: a stream that ends with the image", async () => {
    const stream = await client().images.edit({ ...ask, image: await file(HOUSE), stream: true });
    const events = [];
    for await (const one of stream) events.push(one);
    const last = events.at(-1)!;
    expect(last.type).toBe("image_edit.completed");
    expect(Buffer.from(last.b64_json, "base64")).toEqual(RESULT);
    expect(Number((await settles()).at(-1).costNano)).toBe(of.cost);
  });

  it("AI SDK", async () => {
    const openai = createOpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey: KEYS.alice });
    const { image } = await generateImage({
      model: openai.image(model),
      prompt: { text: "More snow", images: [HOUSE, TREE] },
      maxRetries: 0,
    });
    expect(Buffer.from(image.uint8Array)).toEqual(RESULT);
    expect(await of.brought(posted()[0]!)).toEqual([HOUSE, TREE]);
  });

  it("JSON: bytes in a data URL", async () => {
    const { status, body } = await post({
      ...ask,
      images: [{ image_url: dataUrl(HOUSE) }],
    });
    // A provider that only accepts forms reports this.
    if (model === "other/painter") return expect(status).toBe(400);
    expect([status, body.data.length]).toEqual([200, 1]);
    const sent = JSON.stringify(await given(posted()[0]!));
    expect(sent).toContain(HOUSE.toString("base64"));
  });
});

describe("the demo", () => {
  const edit = async (image: Buffer, more: object = {}) =>
    client().images.edit({
      model: "demo/image",
      prompt: "More snow",
      image: await file(image),
      ...more,
    } as OpenAI.ImageEditParamsNonStreaming);
  it("different inputs give different images, and equal inputs equal ones", async () => {
    const [a, b, c] = [await edit(HOUSE), await edit(HOUSE), await edit(TREE)];
    expect(a.data).toEqual(b.data);
    expect(a.data).not.toEqual(c.data);
    expect(sniffImage({ base64: a.data![0]!.b64_json! })?.mime).toBe("image/png");
  });
  it("numbers in a form are parsed as numbers", async () => {
    const made = await edit(HOUSE, { n: 2, size: "64x48" });
    expect([made.data!.length, made.size]).toEqual([2, "64x48"]);
  });
  it("a URL, and its stream with partial images", async () => {
    const { data } = await edit(HOUSE, { response_format: "url" });
    expect((await fetch(data![0]!.url!)).headers.get("content-type")).toBe("image/png");
    const stream = await client().images.edit({
      model: "demo/image",
      prompt: "More snow",
      image: await file(HOUSE),
      stream: true,
      partial_images: 2,
    });
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect(types).toEqual([
      "image_edit.partial_image",
      "image_edit.partial_image",
      "image_edit.completed",
    ]);
  });
});

describe("the outgoing request", () => {
  it("is the client's own form except for the model's name and removed fields", async () => {
    const form = new FormData();
    form.append("model", "openai/gpt-image-2");
    form.append("prompt", "Mer snø");
    form.append("quality", "hd");
    form.append("brush", "wide");
    form.append("response_format", "b64_json");
    form.append("image[]", new File([new Uint8Array(HOUSE)], "a.png", { type: "image/png" }));
    form.append("image[]", new File([new Uint8Array(TREE)], "b.png", { type: "image/png" }));
    const res = await fetch(`${at.gateway.url}/v1/images/edits`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEYS.alice}` },
      body: form,
    });
    expect(res.status).toBe(200);
    const { fields, files } = await given(posted()[0]!);
    expect(fields).toEqual({
      model: "gpt-image-2",
      prompt: "Mer snø",
      quality: "high",
      brush: "wide",
    });
    expect(files).toEqual([
      ["image[]", HOUSE],
      ["image[]", TREE],
    ]);
  });
  it("forwards URLs unchanged", async () => {
    const images = [{ image_url: "https://example.com/house.png" }];
    await post({ model: "openai/gpt-image-2", prompt: "x", images });
    expect(posted()[0]!.json()).toMatchObject({ images });
    at.up.reset();
    await post({ model: "xai/grok-imagine-image", prompt: "x", images });
    expect(posted()[0]!.json().image).toEqual({
      url: "https://example.com/house.png",
      type: "image_url",
    });
  });
  it("names unsupported fields in a warning", async () => {
    const { headers } = await client()
      .images.edit({
        model: "google/gemini-3-pro-image",
        prompt: "x",
        image: await file(HOUSE),
        input_fidelity: "high",
      })
      .withResponse()
      .then(({ response }) => response);
    expect(headers.get("x-tollgate-warnings")).toContain("input_fidelity");
  });
});

describe("rejections", () => {
  const ask = async (model: string, key: string = KEYS.alice, more: object = {}, n = 1) =>
    raised(
      client(key).images.edit(
        {
          model,
          prompt: "x",
          image: await Promise.all(Array.from({ length: n }, () => file(HOUSE))),
        },
        more,
      ),
    );
  it("a provider that only generates images from text", async () => {
    expect(await ask("words/from-words")).toMatchObject({ status: 400 });
    expect(await ask("bfl/flux-pro-1.1")).toMatchObject({ status: 400, param: "image" });
    expect(posted()).toEqual([]);
  });
  it("a key without permission, a spent budget, and insufficient privacy", async () => {
    expect(await ask("openai/gpt-image-2", KEYS.bob)).toMatchObject({
      status: 403,
      code: "model_not_allowed",
    });
    expect(await ask("openai/gpt-image-2", KEYS.poor)).toMatchObject({ status: 429 });
    const zdr = { headers: { "service-zdr": "required" } };
    expect(await ask("openai/gpt-image-2", KEYS.alice, zdr)).toMatchObject({ status: 403 });
    expect(posted()).toEqual([]);
  });
  it("under privacy: a URL response and a stored image, but not the demo", async () => {
    const zdr = { "service-zdr": "required" };
    const images = [{ image_url: dataUrl(HOUSE) }];
    const body = { model: "demo/image", prompt: "x", images };
    expect((await post(body, zdr)).status).toBe(200);
    const url = await post({ ...body, response_format: "url" }, zdr);
    expect([url.status, url.body.error.code]).toEqual([400, "zdr_feature_conflict"]);
  });
  it("a file stored in a provider account, in both modes", async () => {
    for (const model of EDITORS.map(({ model }) => model)) {
      const got = await post({ model, prompt: "x", images: [{ file_id: "file-1" }] });
      expect([model, got.status]).toEqual([model, 400]);
    }
    expect(posted()).toEqual([]);
  });
  it("seventeen images, no image, and no prompt", async () => {
    expect(await ask("openai/gpt-image-2", KEYS.alice, {}, 17)).toMatchObject({ status: 400 });
    for (const body of [{ prompt: "x" }, { images: [{ image_url: dataUrl(HOUSE) }] }])
      expect((await post({ model: "openai/gpt-image-2", ...body })).status).toBe(400);
    expect(posted()).toEqual([]);
  });
  it("variations are discontinued, and the error names an alternative", async () => {
    const said = await raised(client().images.createVariation({ image: await file(HOUSE) }));
    expect(said).toMatchObject({
      status: 404,
      message: expect.stringContaining("/v1/images/edits"),
    });
  });
});

it("60 MB of images are billed once", async () => {
  const large = Buffer.alloc((NIGHTLY ? 20 : 12) * 1024 * 1024, 7);
  large.set(HOUSE.subarray(0, 33));
  const image = await Promise.all([1, 2, 3].map((i) => file(large, `${i}.png`)));
  const before = (await settles()).length;
  const made = await client().images.edit({ model: "openai/gpt-image-2", prompt: "x", image });
  expect(made.data).toHaveLength(1);
  const files = await filesOf(posted()[0]!);
  expect(files.map((one) => one.equals(large))).toEqual([true, true, true]);
  expect((await settles()).slice(before)).toHaveLength(1);
}, 60_000);

it("a canceled request is settled, and the upstream connection is closed", async () => {
  const over = new AbortController();
  const run = client().images.edit(
    { model: "slow/m", prompt: "x", image: await file(HOUSE) },
    { signal: over.signal },
  );
  await until(() => posted().length === 1);
  over.abort();
  await expect(run).rejects.toThrow();
  await until(async () => (await settles("slow")).length === 1);
});

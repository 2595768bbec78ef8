import { Ajv } from "ajv";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import schema from "../../../schemas/images.request.json" with { type: "json" };
import { getFault } from "../../../src/model/error.ts";
import type { ModelEvent } from "../../../src/model/event.ts";
import { collectResponse } from "../../../src/model/response-collector.ts";
import type { Body, JsonObject } from "../../../src/model/values.ts";
import { images, type ImageDialect } from "../../../src/protocols/images/index.ts";
import { splitChunks, createEventGrammar } from "../../../src/testing/index.ts";
import { answering, asking, collected, departure, left, png, sink } from "./pictures.ts";
import { trialCount } from "../../kit/law-effort.ts";

const protocol = images();
const server = protocol.server!;
const client = protocol.client!;
const caught = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return getFault(error);
  }
  return undefined;
};
const judged = (events: readonly ModelEvent[]): readonly ModelEvent[] => {
  const judge = createEventGrammar();
  for (const e of events) judge.event(e);
  judge.end();
  return events;
};

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const b64 = (width: number, height: number) => png(width, height).toString("base64");

describe("the request", () => {
  const valid = new Ajv({ strict: false }).compile(schema);
  it("validates the fields that the gateway uses, and allows all others", () => {
    for (const body of [
      { model: "a/b", prompt: "x" },
      { model: "a/b", prompt: "x", size: "1024x1536", n: 2, quality: "hd", response_format: "url" },
      { model: "a/b", prompt: "x", size: null, n: null, response_format: null, steps: 4, seed: 7 },
      { model: "a/b", prompt: "x", size: "auto", stream: true, partial_images: 3 },
    ])
      expect([body, valid(body)]).toEqual([body, true]);
    for (const body of [
      { prompt: "x" },
      { model: "a/b" },
      { model: "a/b", prompt: "" },
      { model: "a/b", prompt: "x", size: "large" },
      { model: "a/b", prompt: "x", size: "0x5" },
      { model: "a/b", prompt: "x", n: 0 },
      { model: "a/b", prompt: "x", n: 1.5 },
      { model: "a/b", prompt: "x", response_format: "base64" },
      { model: "a/b", prompt: "x", partial_images: 4 },
    ])
      expect([body, valid(body)]).toEqual([body, false]);
  });

  const body: fc.Arbitrary<Body> = fc.record(
    {
      model: fc.constant("host/picture-1"),
      prompt: fc.string({ minLength: 1 }),
      n: fc.integer({ min: 1, max: 10 }),
      size: fc.constantFrom("auto", "512x768"),
      quality: fc.constantFrom("low", "high"),
      response_format: fc.constantFrom("url", "b64_json"),
      background: fc.constantFrom("transparent", "auto"),
      output_format: fc.constantFrom("png", "webp"),
      output_compression: fc.nat(100),
      seed: fc.nat(),
      user: fc.string(),
      moderation: fc.constantFrom("low", "auto"),
      style: fc.constantFrom("vivid", "natural"),
      svg: fc.constant({ model: "x" }),
      negative_prompt: fc.string(),
      steps: fc.nat(),
    },
    { requiredKeys: ["model", "prompt"] },
  );

  it("loses nothing in the common form", () => {
    fc.assert(
      fc.property(body, (b) => {
        const r = server.decodeRequest(b, "generate");
        const sent: Body = { ...client.encodeRequest(r, asking()), ...r.rest };
        const { n, ...expected } = { ...b, model: "picture-1" } as Record<string, Body[string]>;
        expect(sent).toEqual({
          response_format: "b64_json",
          ...expected,
          ...(n !== undefined && n !== 1 && { n }),
        });
      }),
    );
  });

  it("fields that only this protocol documents are not sent to others", () => {
    const { rest, ext } = server.decodeRequest(
      { model: "m", prompt: "x", style: "vivid", steps: 4 },
      "generate",
    );
    expect([rest, ext]).toEqual([{ steps: 4 }, { images: { style: "vivid" } }]);
  });

  it("a null equals an omitted field", () => {
    const r = server.decodeRequest(
      { model: "a/b", prompt: "x", n: null, size: null, style: null, steps: null },
      "generate",
    );
    expect(r).toEqual({
      operation: "image",
      model: "a/b",
      prompt: "x",
      stream: false,
      n: 1,
      inputImages: [],
      responseFormat: "bytes",
      rest: {},
      ext: {},
    });
  });

  it("is analyzed: the number of images, streaming, and features that passthrough excludes", () => {
    expect(server.analyze({ model: "m", prompt: "x" })).toEqual({
      features: [],
      n: 1,
      requiresTranslation: false,
    });
    expect(server.analyze({ n: 3, stream: true, response_format: "url" })).toEqual({
      features: ["stream", "n"],
      n: 3,
      requiresTranslation: true,
    });
  });

  it("partial images are requested from providers that stream, and reported otherwise", () => {
    const r = server.decodeRequest(
      { model: "m", prompt: "x", stream: true, partial_images: 2 },
      "generate",
    );
    const streamed = asking({ stream: true });
    expect(client.encodeRequest(r, streamed)).toMatchObject({ stream: true, partial_images: 2 });
    expect(streamed.lost).toEqual([]);
    const whole = asking({ stream: false });
    expect(client.encodeRequest(r, whole)).not.toHaveProperty("partial_images");
    expect(whole.lost).toMatchObject([{ field: "partial_images", how: "dropped" }]);
  });

  it("input images are rejected, not dropped", () => {
    const r = server.decodeRequest({ model: "m", prompt: "x" }, "generate");
    expect(
      caught(() => client.encodeRequest({ ...r, inputImages: [{ base64: "eA==" }] }, asking())),
    ).toMatchObject({
      kind: "unsupported",
    });
  });
});

describe("dialects, the same in both modes", () => {
  const sent = (dialect: ImageDialect, body: Body, more = {}) => {
    const of = asking(more);
    const out = departure({ model: "picture-1", prompt: "x", ...body });
    images(dialect).client!.prepare!(out, of);
    const { model: _, prompt: __, ...rest } = left(out);
    return {
      ...rest,
      ...(of.lost.length > 0 && { lost: of.lost.map((l) => `${l.field} ${l.how}`) }),
    };
  };
  const CASES: [string, ImageDialect, Body, JsonObject][] = [
    ["bytes are always asked for", {}, {}, { response_format: "b64_json" }],
    ["null is asked for as bytes", {}, { response_format: null }, { response_format: "b64_json" }],
    ["addresses stay", {}, { response_format: "url" }, { response_format: "url" }],
    ["by another word", { responseFormat: "base64" }, {}, { response_format: "base64" }],
    [
      "addresses by the same",
      { responseFormat: "base64" },
      { response_format: "url" },
      { response_format: "url" },
    ],
    ["or not at all", { responseFormat: "bytes" }, { response_format: "b64_json" }, {}],
    ["even addresses", { responseFormat: "bytes" }, { response_format: "url" }, {}],
    ["where only addresses are", { responseFormat: "url" }, { response_format: "b64_json" }, {}],
    ["sizes as they are", { responseFormat: "bytes" }, { size: "1024x768" }, { size: "1024x768" }],
    [
      "sizes as two numbers",
      { responseFormat: "bytes", size: "width_height" },
      { size: "1024x768" },
      { width: 1024, height: 768 },
    ],
    ["auto as nothing", { responseFormat: "bytes", size: "width_height" }, { size: "auto" }, {}],
    [
      "sizes as a shape",
      {
        responseFormat: "bytes",
        size: "ratio",
        ratios: ["1:1", "16:9"],
        resolutions: [
          ["1k", 1536],
          ["2k", 3072],
        ],
      },
      { size: "1792x1024" },
      { aspect_ratio: "16:9", resolution: "2k", lost: ["size approximated"] },
    ],
    [
      "beyond the last word the last word",
      { responseFormat: "bytes", size: "ratio", resolutions: [["1k", 1536]] },
      { size: "4096x4096" },
      { aspect_ratio: "1:1", resolution: "1k", lost: ["size approximated"] },
    ],
    [
      "quality in the host's words",
      { responseFormat: "bytes", qualityNames: { hd: "high" } },
      { quality: "hd" },
      { quality: "high" },
    ],
    [
      "what is refused is dropped, and told when it said something",
      { responseFormat: "bytes", dropFields: ["quality", "style", "background"] },
      { quality: "auto", style: "vivid", background: null },
      { lost: ["style dropped"] },
    ],
    [
      "one model of several",
      { responseFormat: "bytes", models: [{ of: ["picture-*"], responseFormat: "b64_json" }] },
      {},
      { response_format: "b64_json" },
    ],
  ];
  for (const [name, dialect, body, expected] of CASES)
    it(name, () => expect(sent(dialect, body)).toEqual(expected));

  it("limits of the catalog and the provider are enforced before anything is sent", () => {
    const info = { model: "m", kind: "image" as const, image: { sizes: ["1024x1024"] } };
    expect(caught(() => sent({}, { size: "9x9" }, { info }))).toMatchObject({
      kind: "unsupported",
      param: "size",
    });
    expect(caught(() => sent({ maxImages: 4 }, { n: 5 }))).toMatchObject({ param: "n" });
  });

  it("a provider that only returns URLs excludes passthrough", () => {
    expect(images({ responseFormat: "url" }).client!.createPassthrough).toBeUndefined();
    expect(images().client!.createPassthrough).toBeDefined();
  });
});

describe("a non-streaming response", () => {
  const USAGE = {
    input_tokens: 50,
    output_tokens: 4160,
    total_tokens: 4210,
    input_tokens_details: { text_tokens: 40, image_tokens: 10 },
    output_tokens_details: { image_tokens: 4100, text_tokens: 60 },
  };
  const decode = (answer: unknown, of = asking()) =>
    judged(collected((emit) => client.decodeResponse(json(answer), emit, of, {})));

  it("becomes events: one block per image, with its revised prompt", () => {
    expect(
      decode({
        created: 1,
        data: [{ b64_json: b64(4, 2), revised_prompt: "a cat" }, { url: "https://x.test/y.png" }],
        usage: USAGE,
      }),
    ).toEqual([
      { type: "start" },
      { type: "open", index: 0, block: { type: "image" } },
      {
        type: "media",
        index: 0,
        media: { mime: "image/png", base64: b64(4, 2) },
        note: "a cat",
      },
      { type: "close", index: 0 },
      { type: "open", index: 1, block: { type: "image" } },
      { type: "media", index: 1, media: { url: "https://x.test/y.png" } },
      { type: "close", index: 1 },
      { type: "usage", usage: { input: 40, image_in: 10, output: 60, image_out: 4100 } },
      { type: "finish", reason: "stop" },
    ]);
  });

  it("is encoded to the original again", () => {
    const media = fc.oneof(
      fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })).map(([w, h]) => ({
        b64_json: b64(w, h),
      })),
      fc.constant({ url: "https://x.test/y.png" }),
    );
    const item = fc
      .tuple(media, fc.option(fc.string({ minLength: 1 }), { nil: undefined }))
      .map(([m, revised]) => (revised ? { ...m, revised_prompt: revised } : m));
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 4 }), fc.boolean(), (data, counted) => {
        const events = decode({ created: 1, data, ...(counted && { usage: USAGE }) });
        const answer = server.encodeResponse(collectResponse(events), answering()) as JsonObject;
        expect(answer["data"]).toEqual(data);
        expect(answer["usage"]).toEqual(counted ? USAGE : undefined);
        expect(answer["created"]).toBe(1_795_000_000);
      }),
    );
  });

  it("describes the bytes correctly", () => {
    const of = (...data: JsonObject[]) => {
      const { size, output_format } = server.encodeResponse(
        collectResponse(decode({ data })),
        answering(),
      ) as JsonObject;
      return [size, output_format];
    };
    expect(of({ b64_json: b64(4, 2) }, { b64_json: b64(4, 2) })).toEqual(["4x2", "png"]);
    expect(of({ b64_json: b64(4, 2) }, { b64_json: b64(2, 2) })).toEqual([undefined, "png"]);
    expect(of({ url: "https://x.test/y" })).toEqual([undefined, undefined]);
  });

  it("converts bytes to a URL if a URL was requested and the provider stores none", () => {
    const answer = server.encodeResponse(
      collectResponse(decode({ data: [{ b64_json: b64(4, 2) }] })),
      answering({ response_format: "url" }),
    ) as JsonObject;
    expect(answer["data"]).toEqual([{ url: `data:image/png;base64,${b64(4, 2)}` }]);
  });

  it("counts tokens if reported, otherwise images and pixels; ticks are a cost", () => {
    const usage = (answer: JsonObject) =>
      decode({ data: [{ b64_json: b64(40, 50) }, { b64_json: b64(20, 50) }], ...answer }).find(
        (e) => e.type === "usage",
      );
    expect(usage({})).toEqual({ type: "usage", usage: { images: 2, megapixels: 0.003 } });
    expect(usage({ data: [{ url: "https://x.test/y" }] })).toEqual({
      type: "usage",
      usage: { images: 1 },
    });
    expect(usage({ usage: { input_tokens: 5, output_tokens: 9 } })).toEqual({
      type: "usage",
      usage: { input: 5, image_out: 9 },
    });
    expect(usage({ usage: { cost_in_usd_ticks: 200_000_000 } })).toEqual({
      type: "usage",
      usage: { images: 2, megapixels: 0.003 },
      costNano: 20_000_000n,
    });
    expect(
      usage({
        usage: {
          input_tokens: 50,
          output_tokens: 10,
          input_tokens_details: { text_tokens: 30, image_tokens: 20, cached_tokens: 10 },
        },
      }),
    ).toMatchObject({ usage: { input: 20, cache_read: 10, image_in: 20, image_out: 10 } });
  });

  it("without an image is a fault with the provider's reason", () => {
    const fault = (answer: unknown) => caught(() => decode(answer));
    expect(fault({ data: [] })).toMatchObject({ kind: "upstream", code: "no_image" });
    expect(fault([])).toMatchObject({ kind: "upstream", code: "bad_answer" });
    expect(fault({ error: { message: "no more", code: "insufficient_quota" } })).toMatchObject({
      kind: "upstream_quota",
    });
    expect(
      fault({ data: [{ error: { code: "content_policy_violation", message: "no" } }] }),
    ).toMatchObject({ kind: "content_policy" });
    expect(fault({ data: [{ respect_moderation: false }] })).toMatchObject({
      kind: "content_policy",
    });
  });

  it("with some of the images is returned with a warning", () => {
    const of = asking();
    const events = decode({ data: [{ b64_json: b64(1, 1) }, { error: { code: "x" } }] }, of);
    expect(events.filter((e) => e.type === "media")).toHaveLength(1);
    expect(of.lost).toEqual([{ field: "data", how: "dropped" }]);
  });
});

describe("a stream", () => {
  const media = fc
    .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }))
    .map(([w, h]) => ({ base64: b64(w, h), mime: "image/png" }));
  const answer: fc.Arbitrary<ModelEvent[]> = fc
    .array(fc.tuple(fc.array(media, { maxLength: 3 }), media), { minLength: 1, maxLength: 3 })
    .map((pictures) => [
      { type: "start" },
      ...pictures.flatMap(([partials, last], index): ModelEvent[] => [
        { type: "open", index, block: { type: "image" } },
        ...partials.map((m): ModelEvent => ({ type: "media", index, media: m, partial: true })),
        { type: "media", index, media: last },
        { type: "close", index },
      ]),
      { type: "usage", usage: { input: 7, image_in: 0, output: 0, image_out: 9 } },
      { type: "finish", reason: "stop" },
    ]);
  const written = (events: readonly ModelEvent[], body: Body = { stream: true }): string => {
    let text = "";
    const encoder = server.createEncoder((t) => (text += t), answering(body));
    for (const e of events) encoder.writeEvent(e);
    return text;
  };

  it("gives the same events for any chunks", () => {
    fc.assert(
      fc.property(answer, fc.integer(), (events, seed) => {
        const read = collected((emit) => {
          const decoder = client.createDecoder(emit, asking({ stream: true }), {});
          for (const chunk of splitChunks([Buffer.from(written(events))], { seed, max: 400 }))
            decoder.push(chunk);
          decoder.end();
        });
        expect(judged(read)).toEqual(events);
      }),
      { numRuns: trialCount(40) },
    );
  });

  it("has the events and fields that SDKs read, with the counts on the last one", () => {
    const events = written([
      { type: "start" },
      { type: "open", index: 0, block: { type: "image" } },
      { type: "media", index: 0, media: { base64: b64(2, 2) }, partial: true },
      { type: "media", index: 0, media: { base64: b64(4, 2) } },
      { type: "close", index: 0 },
      { type: "usage", usage: { input: 3, image_out: 4 } },
      { type: "finish", reason: "stop" },
    ])
      .trimEnd()
      .split("\n\n")
      .map((event) => {
        const [name, data] = event.split("\n");
        return [name, JSON.parse(data!.slice(6)) as JsonObject] as const;
      });
    expect(events.map(([name]) => name)).toEqual([
      "event: image_generation.partial_image",
      "event: image_generation.completed",
    ]);
    expect(events[0]![1]).toEqual({
      type: "image_generation.partial_image",
      b64_json: b64(2, 2),
      created_at: 1_795_000_000,
      size: "2x2",
      quality: "auto",
      background: "auto",
      output_format: "png",
      partial_image_index: 0,
    });
    expect(events[1]![1]).toMatchObject({
      size: "4x2",
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    });
  });

  it("that ends before its image is an error; a failed one reports its reason", () => {
    const run = (text: string) =>
      caught(() => {
        const decoder = client.createDecoder(() => {}, asking({ stream: true }), {});
        decoder.push(Buffer.from(text));
        decoder.end();
      });
    const partial = `event: image_generation.partial_image\ndata: ${JSON.stringify({ type: "image_generation.partial_image", b64_json: b64(1, 1) })}\n\n`;
    expect(run("")).toMatchObject({ code: "truncated" });
    expect(run(partial)).toMatchObject({ code: "truncated" });
    const completed = partial.replaceAll("partial_image", "completed");
    expect(run(completed)).toBeUndefined();
    expect(run(completed + partial)).toMatchObject({ code: "truncated" });
    expect(
      run(
        `${partial}event: error\ndata: {"type":"error","error":{"code":"moderation_blocked","message":"no"}}\n\n`,
      ),
    ).toBeDefined();
    expect(run("data: nonsense\n\n")).toMatchObject({ code: "bad_stream" });
    let text = "";
    server
      .createEncoder((t) => (text += t), answering())
      .writeFault({ kind: "overloaded", message: "busy" });
    expect(text).toMatch(/^event: error\ndata: \{"type":"error","error":\{"message":"busy"/);
  });

  it("is forwarded byte for byte, with the counts of translated mode", () => {
    fc.assert(
      fc.property(answer, fc.integer(), fc.boolean(), (events, seed, done) => {
        const n = events.filter((e) => e.type === "open").length;
        const text = written(events) + (done ? "data: [DONE]\n\n" : ": bye\n\n");
        const to = answering({ stream: true, n });
        const s = sink();
        const relay = client.createPassthrough!(s, to, {});
        for (const chunk of splitChunks([Buffer.from(text)], { seed, max: 400 })) relay.push(chunk);
        relay.end();
        expect(s.text()).toBe(text);
        const said = s.log.filter((l) => l !== "bytes" && l !== "content");
        expect(said).toEqual([
          'usage {"input":7,"image_in":0,"image_out":9,"output":0}',
          "finish stop",
        ]);
        // Content first. The terminal event waits for the finish.
        expect(s.log.indexOf("content")).toBeLessThan(s.log.indexOf("finish stop"));
        expect(s.log.lastIndexOf("bytes")).toBeGreaterThan(s.log.indexOf("finish stop"));
      }),
      { numRuns: trialCount(40) },
    );
  });

  it("in passthrough mode is rejected if truncated or with an error", () => {
    const relay = (text: string) =>
      caught(() => {
        const r = client.createPassthrough!(sink(), answering({ stream: true }), {});
        r.push(Buffer.from(text));
        r.end();
      });
    expect(relay(": nothing\n\n")).toMatchObject({ code: "truncated" });
    expect(
      relay('event: error\ndata: {"type":"error","error":{"message":"no"}}\n\n'),
    ).toMatchObject({ message: "no" });
  });
});

describe("a non-streaming response in passthrough mode", () => {
  const run = (text: string, more = {}) => {
    const s = sink();
    const relay = client.createPassthrough!(s, answering({}, more), {});
    relay.push(Buffer.from(text));
    relay.end();
    return s;
  };

  it("changes only the model's name, whatever else it contains", () => {
    const field = fc.constantFrom("background", "x", 'odd "key"', "nested");
    const extra = fc.dictionary(field, fc.jsonValue(), { noNullPrototype: true });
    fc.assert(
      fc.property(extra, extra, fc.boolean(), fc.nat(3), (before, after, named, indent) => {
        const answer = {
          ...before,
          ...(named && { model: "their-name" }),
          data: [{ b64_json: b64(3, 3), revised_prompt: '"model":"fake"' }],
          ...after,
          usage: { input_tokens: 1, output_tokens: 2 },
        };
        const s = run(JSON.stringify(answer, null, indent));
        expect(s.text()).toBe(
          JSON.stringify({ ...answer, ...(named && { model: "host/picture-1" }) }, null, indent),
        );
        expect(s.log.slice(0, 3)).toEqual([
          'usage {"input":1,"image_out":2}',
          "content",
          "finish stop",
        ]);
      }),
    );
  });

  it("has the same counts as in translated mode", () => {
    const item = fc.constantFrom<JsonObject>(
      { b64_json: b64(30, 40) },
      { url: "https://x.test/y" },
    );
    const usage = fc.constantFrom<JsonObject | undefined>(
      undefined,
      {},
      { cost_in_usd_ticks: 55 },
      { input_tokens: 4, output_tokens: 6 },
      {
        input_tokens: 4,
        output_tokens: 6,
        output_tokens_details: { image_tokens: 5, text_tokens: 1 },
      },
    );
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 4 }), usage, (data, u) => {
        const text = JSON.stringify({ created: 1, data, usage: u });
        const seen = collected((emit) =>
          client.decodeResponse(Buffer.from(text), emit, asking(), {}),
        ).find((e) => e.type === "usage")!;
        expect(run(text).log[0]).toBe(
          `usage ${JSON.stringify(seen.usage)}${seen.costNano === undefined ? "" : ` ${seen.costNano}n`}`,
        );
      }),
    );
  });

  it("is rejected if it contains no image", () => {
    for (const [text, code] of [
      ["nonsense", "bad_answer"],
      ["[]", "bad_answer"],
      ['{"data":[]}', "no_image"],
      ['{"created":1}', "no_image"],
      ['{"error":{"message":"no","code":"server_error"}}', "server_error"],
    ])
      expect([text, caught(() => run(text!))?.code]).toEqual([text, code]);
  });
});

describe("errors", () => {
  it("have OpenAI's format, with its codes for rejected prompts", () => {
    expect(
      server.encodeFault({ kind: "not_found", message: "no", param: "model" }, { id: "r" }),
    ).toEqual({
      status: 404,
      body: {
        error: {
          message: "no",
          type: "invalid_request_error",
          param: "model",
          code: "not_found",
        },
      },
    });
    expect(server.encodeFault({ kind: "content_policy", message: "no" }, { id: "r" })).toEqual({
      status: 400,
      body: {
        error: {
          message: "no",
          type: "image_generation_user_error",
          param: null,
          code: "moderation_blocked",
        },
      },
    });
  });

  it("of providers are converted", () => {
    const fault = (status: number, body: unknown, headers = {}) =>
      client.decodeFault(status, headers, json(body));
    expect(
      fault(400, {
        error: { type: "image_generation_user_error", code: "moderation_blocked", message: "no" },
      }),
    ).toMatchObject({ kind: "content_policy", message: "no" });
    expect(fault(401, { error: { message: "bad key" } })).toMatchObject({ kind: "upstream_auth" });
    expect(fault(402, { detail: "no credit" })).toMatchObject({ kind: "upstream_quota" });
    expect(fault(429, {}, { "retry-after": "3" })).toMatchObject({
      kind: "rate_limited",
      retryAfterMs: 3_000,
    });
    expect(fault(503, "<html>")).toMatchObject({ kind: "overloaded" });
  });
});

import { isIP } from "node:net";
import { inflateSync } from "node:zlib";
import { Ajv } from "ajv";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import demo from "../../plugins/providers/demo.ts";
import { schemaExample } from "../../plugins/providers/demo/schema-example.ts";
import {
  countTokens,
  truncateToTokens,
  splitWords,
} from "../../plugins/providers/demo/request-text.ts";
import { effectivePolicy, satisfies } from "../../src/catalog/data-policy.ts";
import { ERRORS, getFault, type ErrorKind } from "../../src/model/error.ts";
import type { ModelEvent } from "../../src/model/event.ts";
import { collectResponse } from "../../src/model/response-collector.ts";
import type { Block, ChatRequest, ImageRequest, Tool, Turn } from "../../src/model/request.ts";
import type { Json, JsonObject } from "../../src/model/values.ts";
import { calculateCost } from "../../src/money/price.ts";
import type { Call } from "../../src/plugin/call.ts";
import type { NativeEndpoint } from "../../src/plugin/provider.ts";
import { sniffImage } from "../../src/protocols/images/index.ts";
import {
  createCallContext,
  createTestContext,
  deepFreeze,
  createEventGrammar,
} from "../../src/testing/index.ts";
import { installTestClock } from "../kit/clock.ts";
import { until } from "../kit/wait.ts";
import { createChatRequest } from "../kit/requests.ts";
import { trialCount } from "../kit/law-effort.ts";

const { endpoints } = await demo.setup({ pace_ms: 5 }, createTestContext().ctx);
const chat = endpoints.find((e) => "operation" in e && e.operation === "chat") as NativeEndpoint<
  {},
  "chat"
>;
const draw = endpoints.find((e) => "operation" in e && e.operation === "image") as NativeEndpoint<
  {},
  "image"
>;

const info = (model: string) =>
  demo.facts!.models.find((m) => m.model === model) ?? { model, operation: "chat" as const };
const callOf = (model: string, more: Partial<Call> = {}) =>
  ({
    ...createCallContext({ model, info: info(model) }),
    id: `demo/${model}`,
    provider: "demo",
    credential: "default",
    attemptId: "a1",
    n: 1,
    signal: new AbortController().signal,
    ...more,
  }) as unknown as Call;

const user = (...blocks: (Block | string)[]): Turn => ({
  role: "user",
  blocks: blocks.map((b) => (typeof b === "string" ? { type: "text", text: b } : b)),
});
const request = (turns: readonly Turn[], more: Partial<ChatRequest> = {}): ChatRequest =>
  deepFreeze(createChatRequest({ model: "demo/x", stream: true, turns, ...more }));

async function run(events: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const judge = createEventGrammar();
  const all: ModelEvent[] = [];
  for await (const e of events) {
    judge.event(e);
    all.push(e);
  }
  judge.end();
  return all;
}
const ask = (model: string, r: ChatRequest, more?: Partial<Call>) =>
  run(chat.run(r, callOf(model, more), {}));
const answer = async (model: string, r: ChatRequest) => collectResponse(await ask(model, r));
const said = async (model: string, r: ChatRequest) =>
  (await answer(model, r)).blocks.map((b) => ("text" in b ? b.text : "")).join("");
const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => getFault(error),
  );
const weather: Tool = {
  type: "function",
  name: "weather",
  schema: {
    type: "object",
    required: ["city"],
    properties: { city: { type: "string", minLength: 6 }, unit: { enum: ["C", "F"] } },
  },
};

describe("tokens", () => {
  it("are runs of four letters or digits, and every other visible character", () => {
    for (const [text, n] of [
      ["", 0],
      ["   \n", 0],
      ["word", 1],
      ["words", 2],
      ["Hello, world!", 6],
      ["äöüß", 1],
      ["日本語日本", 2],
      ["a b", 2],
      ["👋🏽", 2],
    ] as const)
      expect([text, countTokens(text)]).toEqual([text, n]);
  });
  it("add up over words, and the words add up to the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), fc.nat(60), (text, most) => {
        const all = splitWords(text);
        expect(all.join("")).toBe(text);
        expect(all.reduce((n, w) => n + countTokens(w), 0)).toBe(countTokens(text));
        const cut = truncateToTokens(text, most);
        expect(text.startsWith(cut)).toBe(true);
        expect(countTokens(cut)).toBe(Math.min(most, countTokens(text)));
      }),
    );
  });
});

describe("chat", () => {
  it("echo repeats the user's last message, word by word", async () => {
    const r = request([
      user("first"),
      { role: "assistant", blocks: [] },
      user("Hello there,\n friend"),
    ]);
    const events = await ask("echo", r);
    expect(events.filter((e) => e.type === "delta").map((e) => e.text)).toEqual([
      "Hello",
      " there,",
      "\n friend",
    ]);
    expect(collectResponse(events)).toMatchObject({
      blocks: [{ type: "text", text: "Hello there,\n friend" }],
      finish: { reason: "stop" },
    });
    expect(
      await said("echo", request([user({ type: "image", media: { url: "x" } }, "nice")])),
    ).toBe("[image]\nnice");
    expect(await said("echo", request([]))).toBe("You said nothing.");
  });

  it("think reasons first, unless disabled, and hides the reasoning on request", async () => {
    const r = request([user("hi")]);
    const shown = await answer("think", r);
    expect(shown.blocks.map((b) => b.type)).toEqual(["reasoning", "text"]);
    expect(shown.usage.reasoning).toBeGreaterThan(5);
    const off = await answer("think", { ...r, reasoning: { mode: "off" } });
    expect(off.blocks.map((b) => b.type)).toEqual(["text"]);
    expect(off.usage).toMatchObject({ reasoning: 0, output: 1 });
    const hidden = await answer("think", { ...r, reasoning: { mode: "auto", show: "none" } });
    expect(hidden.blocks.map((b) => b.type)).toEqual(["text"]);
    expect(hidden.usage).toEqual(shown.usage);
  });

  it("tools calls the first tool, then responds with its result", async () => {
    const r = request([user("How is it?")], { tools: [weather, { ...weather, name: "other" }] });
    const called = await answer("tools", r);
    const [block] = called.blocks;
    expect(called.finish.reason).toBe("tool_calls");
    expect(block).toMatchObject({ type: "call", name: "weather", tool: "function" });
    if (block?.type !== "call") throw new Error("no call");
    expect(block.args).toBe('{"city":"demooo"}');
    const result = (isError: boolean): Turn => ({
      role: "tool",
      blocks: [
        {
          type: "result",
          callId: block.id,
          name: "weather",
          isError,
          blocks: [{ type: "text", text: "rain" }],
        },
      ],
    });
    const more = (isError: boolean) =>
      request([...r.turns, { role: "assistant", blocks: [block] }, result(isError)], {
        tools: r.tools,
      });
    expect(await answer("tools", more(false))).toMatchObject({
      blocks: [{ type: "text", text: "weather said: rain" }],
      finish: { reason: "stop" },
    });
    expect(await said("tools", more(true))).toBe("weather failed: rain");
    // An answered result is history.
    const { turns } = more(false);
    const again = [...turns, { role: "assistant", blocks: [] } as Turn, user("And now?")];
    expect((await answer("tools", request(again, { tools: r.tools }))).finish.reason).toBe(
      "tool_calls",
    );
    expect(await said("tools", request([user("x")]))).toMatch(/declared no tool/);
  });

  it("follows the tool choice, for any model", async () => {
    const tools = [weather, { type: "custom", name: "shell" } as Tool];
    const names = async (model: string, toolChoice: ChatRequest["toolChoice"]) =>
      (await answer(model, request([user("x")], { tools, toolChoice }))).blocks.map((b) =>
        b.type === "call" ? b.name : b.type,
      );
    expect(await names("tools", "none")).toEqual(["text"]);
    expect(await names("echo", "auto")).toEqual(["text"]);
    expect(await names("echo", "required")).toEqual(["weather"]);
    expect(await names("tools", { names: ["shell"], must: false })).toEqual(["shell"]);
    expect(await names("lorem", { names: ["shell"], must: true })).toEqual(["shell"]);
  });

  it("two calls of one conversation have different IDs", async () => {
    const ids = await Promise.all(
      [1, 2].map(async (n) => {
        const turns = Array.from({ length: n }, () => user("same"));
        const [call] = (await answer("tools", request(turns, { tools: [weather] }))).blocks;
        return call?.type === "call" && call.id;
      }),
    );
    expect(new Set(ids).size).toBe(2);
  });

  it("lorem returns the requested number of words, the same ones for the same seed", async () => {
    const text = (prompt: string, seed?: number) =>
      said("lorem", request([user(prompt)], { sampling: { seed } }));
    expect((await text("Give me 250 words")).split(" ")).toHaveLength(250);
    expect((await text("some words")).split(" ")).toHaveLength(50);
    expect(await text("0")).toBe("");
    expect(await text("30", 7)).toBe(await text("words: 30", 7));
    expect(await text("30", 7)).not.toBe(await text("30", 8));
    expect(await text("30")).toBe(await text("30"));
  });

  it("slow responds slowly, and stops when the client disconnects", async () => {
    const time = installTestClock();
    time.stop();
    const began = time.now();
    let over = false;
    const saying = said("slow", request([user("20 words")])).then(() => (over = true));
    await until(() => {
      time.skip(over ? 0 : 5);
      return over;
    });
    await saying;
    expect(time.now() - began).toBeGreaterThan(95);
    time.go();
    const gone = new AbortController();
    const events = chat.run(request([user("100000")]), callOf("slow", { signal: gone.signal }), {});
    setTimeout(() => gone.abort(), 20);
    expect(await caught(run(events))).toMatchObject({ kind: "canceled" });
  });

  it("fail fails as requested, before or after content", async () => {
    for (const kind of Object.keys(ERRORS) as ErrorKind[])
      expect(await caught(ask("fail", request([user(`please ${kind} now`)])))).toMatchObject({
        kind,
      });
    expect(await caught(ask("fail", request([user("rate_limited retry 30")])))).toMatchObject({
      kind: "rate_limited",
      retryAfterMs: 30_000,
    });
    const seen: ModelEvent[] = [];
    const events = chat.run(request([user("overloaded after 25")]), callOf("fail"), {});
    const fault = await caught(
      (async () => {
        for await (const e of events) seen.push(e);
      })(),
    );
    expect(fault).toMatchObject({ kind: "overloaded" });
    expect(seen.filter((e) => e.type === "delta")).toHaveLength(25);
    expect(await caught(ask("fail", request([user("just fail")])))).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("context_length"),
    });
  });

  it("rejects an unknown model, and an excessive request", async () => {
    expect(await caught(ask("gpt-6", request([user("x")])))).toMatchObject({
      kind: "not_found",
      message: expect.stringContaining("demo/lorem"),
    });
    expect(await caught(ask("echo", request([user("word ".repeat(200_001))])))).toMatchObject({
      kind: "context_length",
      message: expect.stringMatching(/^prompt is too long: 200001 tokens > 200000 maximum/),
    });
    expect(await caught(ask("echo", request([user("x")], { sampling: { n: 2 } })))).toMatchObject({
      kind: "unsupported",
    });
  });
});

describe("output options", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "bc ", " ", "word ", "é, ", "\n"),
    maxLength: 40,
  });

  it("counts match the actual output, within max_tokens", async () => {
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.option(fc.nat(30), { nil: undefined }),
        fc.constantFrom("echo", "think", "tools"),
        async (prompt, maxTokens, model) => {
          const r = request([user(prompt)], { output: { maxTokens }, tools: [weather] });
          const { blocks, usage, finish } = await answer(model, r);
          const written = blocks.reduce(
            (n, b) =>
              n +
              (b.type === "call"
                ? countTokens(`${b.name} ${b.args}`)
                : countTokens("text" in b ? b.text! : "")),
            0,
          );
          if (blocks.every((b) => b.type !== "call")) expect(usage.output).toBe(written);
          expect(usage.output).toBeLessThanOrEqual(maxTokens ?? Infinity);
          if (finish.reason === "length") expect(usage.output).toBe(maxTokens);
          if (model === "echo" && prompt !== "")
            expect(finish.reason).toBe(
              countTokens(prompt) > (maxTokens ?? Infinity) ? "length" : "stop",
            );
          expect(usage.input).toBe(await chat.countTokens!(r, callOf(model), {}));
          expect(usage.cache_read).toBe(0);
        },
      ),
      { numRuns: trialCount(200) },
    );
  });

  it("stop sequences end it before they are sent", async () => {
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.array(fc.constantFrom("bc", "word", "é", "zz", "")),
        async (prompt, stop) => {
          fc.pre(prompt !== "");
          const { blocks, finish } = await answer(
            "echo",
            request([user(prompt)], { output: { stop } }),
          );
          const at = stop
            .filter((s) => s !== "")
            .map((s) => prompt.indexOf(s))
            .filter((i) => i >= 0);
          const first = Math.min(...at, prompt.length);
          expect(blocks).toEqual([{ type: "text", text: prompt.slice(0, first) }]);
          expect(finish.reason).toBe(at.length > 0 ? "stop_sequence" : "stop");
          if (finish.sequence) expect(prompt.startsWith(finish.sequence, first)).toBe(true);
        },
      ),
    );
  });

  it("a request for JSON returns JSON", async () => {
    const json = (format: NonNullable<ChatRequest["output"]["format"]>) =>
      said("echo", request([user("hi")], { output: { format } }));
    expect(JSON.parse(await json({ type: "json" }))).toEqual({ text: "hi" });
    expect(JSON.parse(await json({ type: "schema", schema: weather.schema! }))).toEqual({
      city: "demooo",
    });
  });

  it("all input is counted: instructions, turns, tools, and their results", async () => {
    const count = (r: ChatRequest) => chat.countTokens!(r, callOf("echo"), {});
    const r = request([user("four word")]);
    expect(await count(r)).toBe(2);
    expect(await count({ ...r, instructions: [{ type: "text", text: "be nice" }] })).toBe(4);
    expect(
      await count(
        request([
          user({ type: "image", media: { url: "x" } }),
          {
            role: "assistant",
            blocks: [{ type: "call", id: "c", name: "f", tool: "function", args: "{}" }],
          },
          {
            role: "tool",
            blocks: [
              {
                type: "result",
                callId: "c",
                isError: false,
                blocks: [{ type: "text", text: "ok" }],
              },
            ],
          },
        ]),
      ),
    ).toBe(4);
    expect(await count({ ...r, tools: [weather] })).toBe(
      2 + countTokens(`weather ${JSON.stringify(weather.schema)}`),
    );
  });

  it("the same request has the same response", async () => {
    for (const model of ["echo", "think", "tools", "lorem"]) {
      const r = request([user("ten 10")], { tools: [weather], sampling: { seed: 3 } });
      expect(await ask(model, r)).toEqual(await ask(model, r));
    }
  });
});

describe("arguments satisfy the tool's schema", () => {
  const ajv = new Ajv({ strict: false, ownProperties: true });
  const FORMATS: Record<string, (value: string) => boolean> = {
    "date-time": (v) => new Date(v).toISOString() === v.replace("Z", ".000Z"),
    date: (v) => new Date(v).toISOString().startsWith(v),
    time: (v) => /^\d\d:\d\d:\d\dZ$/.test(v),
    duration: (v) => /^P\d+[YMWD]$/.test(v),
    email: (v) => /^\w+@[\w.]+$/.test(v),
    hostname: (v) => /^[\w.-]+$/.test(v),
    ipv4: (v) => isIP(v) === 4,
    ipv6: (v) => isIP(v) === 6,
    uri: (v) => URL.canParse(v),
    uuid: (v) => /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/.test(v),
  };
  for (const [format, validate] of Object.entries(FORMATS)) ajv.addFormat(format, validate);
  const leaf: fc.Arbitrary<JsonObject> = fc.oneof(
    fc.constant<JsonObject>({ type: "boolean" }),
    fc.constant<JsonObject>({ type: ["null", "string"] }),
    fc.constantFrom(...Object.keys(FORMATS)).map((format) => ({ type: "string", format })),
    fc
      .tuple(fc.nat(9), fc.nat(9))
      .map(([a, b]) => ({ type: "string", minLength: a, maxLength: a + b })),
    fc
      .tuple(
        fc.integer({ min: -50, max: 50 }),
        fc.integer({ min: 2, max: 30 }),
        fc.constantFrom("integer", "number"),
        fc.boolean(),
        fc.boolean(),
      )
      .map(([low, span, type, openLow, openHigh]) => ({
        type,
        [openLow ? "exclusiveMinimum" : "minimum"]: low,
        [openHigh ? "exclusiveMaximum" : "maximum"]: low + span,
      })),
    fc
      .tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 9 }))
      .map(([minimum, multipleOf]) => ({ type: "integer", minimum, multipleOf })),
    fc.integer({ min: -9, max: 9 }).map((maximum) => ({ type: "number", maximum })),
    fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 1, max: 9 })).map(([a, b]) => ({
      type: "number",
      exclusiveMinimum: a / 10,
      exclusiveMaximum: (a + b) / 10,
    })),
    fc.constant<JsonObject>({ enum: [7, "x"] }),
    fc.constant<JsonObject>({ const: { a: [1] } }),
    fc.constant<JsonObject>({ $ref: "#/$defs/shared" }),
    fc.constant<JsonObject>({}),
  );
  const name = fc.constantFrom("a", "b", "c d", "__proto__", "constructor");
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc
        .tuple(
          fc.dictionary(name, tie("schema"), { maxKeys: 3 }),
          fc.uniqueArray(name, { maxLength: 3 }),
        )
        .map(([properties, required]): JsonObject => ({
          type: "object",
          properties: properties as JsonObject,
          required,
        })),
      fc.tuple(tie("schema"), fc.nat(3), fc.nat(2)).map(([items, minItems, more]): JsonObject => ({
        type: "array",
        items,
        minItems,
        maxItems: minItems + more,
      })),
      fc
        .array(tie("schema"), { minLength: 1, maxLength: 3 })
        .map((anyOf): JsonObject => ({ anyOf })),
      tie("schema").map((one): JsonObject => ({ allOf: [one] })),
    ),
  }));

  it("of every form", () => {
    fc.assert(
      fc.property(schema, (of) => {
        const whole: JsonObject = {
          allOf: [of],
          $defs: { shared: { type: "string", minLength: 3 } },
        };
        const made = schemaExample(whole) as Json;
        const valid = ajv.compile(whole as object);
        expect([valid.errors, made, valid(made)]).toEqual([null, made, true]);
      }),
      { numRuns: trialCount(300) },
    );
  });
  it("even if it is recursive", () => {
    expect(schemaExample({ $ref: "#" })).toBeDefined();
    expect(
      schemaExample({ type: "object", required: ["next"], properties: { next: { $ref: "#" } } }),
    ).toBeDefined();
    expect(schemaExample(undefined)).toEqual({});
  });
});

describe("images", () => {
  const wish = (more: Partial<ImageRequest> = {}): ImageRequest =>
    deepFreeze({
      operation: "image",
      model: "demo/image",
      prompt: "A harbour",
      stream: false,
      n: 1,
      inputImages: [],
      responseFormat: "bytes",
      rest: {},
      ext: {},
      ...more,
    });
  const drawn = async (more?: Partial<ImageRequest>, call = callOf("image")) =>
    run(draw.run(wish(more), call, {}));
  const bytes = (events: readonly ModelEvent[]) =>
    events.flatMap((e) => (e.type === "media" && "bytes" in e.media ? [e.media.bytes] : []));

  /** Chunks with valid checksums, and as many bytes of pixels as the header states. */
  const verify = (png: Buffer): { width: number; height: number; alpha: boolean } => {
    expect(png.subarray(0, 8).toString("hex")).toBe("89504e470d0a1a0a");
    const chunks = new Map<string, Buffer>();
    for (let i = 8; i < png.length;) {
      const length = png.readUInt32BE(i);
      chunks.set(png.toString("latin1", i + 4, i + 8), png.subarray(i + 8, i + 8 + length));
      i += 12 + length;
    }
    const head = chunks.get("IHDR")!;
    const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
    const depth = head[9] === 6 ? 4 : 3;
    expect(inflateSync(chunks.get("IDAT")!).length).toBe(height * (1 + width * depth));
    expect(chunks.has("IEND")).toBe(true);
    return { width, height, alpha: depth === 4 };
  };

  it("are PNG files of the requested size", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 16, max: 90 }),
        fc.integer({ min: 16, max: 90 }),
        fc.constantFrom("low", "medium", "high", "auto", undefined),
        fc.boolean(),
        async (width, height, quality, clear) => {
          const [png] = bytes(
            await drawn({
              size: `${width}x${height}`,
              quality,
              background: clear ? "transparent" : undefined,
            }),
          );
          expect(verify(png!)).toEqual({ width, height, alpha: clear });
          expect(sniffImage({ bytes: png! })).toEqual({
            mime: "image/png",
            size: { width, height },
          });
        },
      ),
      { numRuns: trialCount(25) },
    );
    for (const size of ["auto", undefined])
      expect(verify(bytes(await drawn({ size, quality: "low" }))[0]!)).toMatchObject({
        width: 512,
      });
  });

  it("have the requested number, all different, and the same every time", async () => {
    const small = { size: "64x48", n: 3 };
    const once = bytes(await drawn({ ...small, seed: 5 }));
    expect(once).toHaveLength(3);
    expect(new Set(once.map((b) => b.toString("latin1"))).size).toBe(3);
    expect(bytes(await drawn({ ...small, seed: 5 }))).toEqual(once);
    expect(bytes(await drawn({ ...small, seed: 6 }))).not.toEqual(once);
    expect(bytes(await drawn({ ...small, prompt: "A mill" }))).not.toEqual(
      bytes(await drawn(small)),
    );
    expect(bytes(await drawn({ ...small, prompt: "A mill", seed: 5 }))).not.toEqual(once);
    const events = await drawn(small);
    expect(collectResponse(events).usage).toEqual({ images: 3, megapixels: 0.009216 });
  });

  it("low quality is the same image in larger squares, all of them filled", async () => {
    const rows = async (quality: string) => {
      const [png] = bytes(await drawn({ size: "32x30", quality }));
      const data = png!.indexOf("IDAT");
      const pixels = inflateSync(png!.subarray(data + 4, data + 4 + png!.readUInt32BE(data - 4)));
      return Array.from({ length: 30 }, (_, y) => pixels.subarray(y * 97, y * 97 + 97));
    };
    const [low, high] = [await rows("low"), await rows("high")];
    for (let y = 0; y < 30; y++) {
      expect(low[y]!.equals(low[y - (y % 8)]!)).toBe(true);
      for (let x = 0; x < 32; x++)
        expect(low[y]!.subarray(1 + x * 3, 4 + x * 3)).toEqual(
          high[y - (y % 8)]!.subarray(1 + (x - (x % 8)) * 3, 4 + (x - (x % 8)) * 3),
        );
    }
  });

  it("have partial images first in a stream", async () => {
    const events = await drawn({ size: "64x64", stream: true, partialImages: 2 });
    expect(events.flatMap((e) => (e.type === "media" ? [e.partial ?? false] : []))).toEqual([
      true,
      true,
      false,
    ]);
    for (const png of bytes(events)) verify(png);
  });

  it("unsupported options are rejected with the supported ones", async () => {
    const refused = (more: Partial<ImageRequest>) => caught(drawn(more));
    expect(await refused({ size: "4096x16" })).toMatchObject({
      kind: "unsupported",
      param: "size",
    });
    expect(await refused({ n: 11 })).toMatchObject({ param: "n" });
    expect(await refused({ format: "webp" })).toMatchObject({ param: "output_format" });
    expect(await refused({ inputImages: [{ url: "https://e/a.png" }] })).toMatchObject({
      kind: "unsupported",
      param: "image",
    });
    expect(await caught(drawn({}, callOf("echo")))).toMatchObject({ kind: "not_found" });
  });

  it("a client's disconnect stops the generation", async () => {
    const gone = new AbortController();
    gone.abort();
    expect(await caught(drawn({}, callOf("image", { signal: gone.signal })))).toMatchObject({
      kind: "canceled",
    });
  });
});

describe("metadata of the demo", () => {
  it("every model is free, whatever is counted", () => {
    for (const { price } of demo.facts!.models) {
      expect(
        calculateCost({ input: 5, output: 7, reasoning: 2, images: 1, megapixels: 0.5 }, price!),
      ).toBe(0n);
      expect(calculateCost({ output: 7 }, price!, { tier: "flex" })).toBe(0n);
    }
  });
  it("nothing is stored, so it qualifies for the strictest privacy", () => {
    const policy = effectivePolicy({ provider: demo.dataPolicy, trusted: true, now: Date.now() });
    expect(satisfies("strict", policy)).toBe(true);
  });
  it("every listed model responds", async () => {
    for (const { model, operation } of demo.facts!.models.filter((m) => m.model !== "fail"))
      if (operation === "chat") await ask(model, request([user("3 words")]));
  });
});

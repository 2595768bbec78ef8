import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault, type ModelInfo } from "tollgate/plugin";
import { geminiLive, setupModel } from "tollgate/protocols/gemini-live";
import { trialCount } from "../../kit/law-effort.ts";
import { MeteredLink } from "../../kit/sockets/metered.ts";
import {
  LiveSession,
  type GeminiLiveOptions,
  type LiveUsage,
} from "../../kit/sockets/gemini-live-upstream.ts";

const INFO: ModelInfo = {
  model: "gemini-live",
  operation: "realtime",
  price: {
    lines: [
      { unit: "input", usd: "0.5", per: 1_000_000 },
      { unit: "audio_in", usd: "3", per: 1_000_000 },
      { unit: "image_in", usd: "3", per: 1_000_000 },
      { unit: "output", usd: "2", per: 1_000_000 },
      { unit: "audio_out", usd: "12", per: 1_000_000 },
    ],
  },
};

const linked = (options: GeminiLiveOptions = {}) => {
  const usages: LiveUsage[] = [];
  const link = new MeteredLink(
    geminiLive(),
    (socket) => new LiveSession(socket, usages, () => options),
    { model: "gemini-live", clientModel: "google/gemini-live", info: INFO },
  );
  return { link, usages };
};

const setUp = (more: object = {}) => ({
  setup: { model: "models/google/gemini-live", ...more },
});
const say = (text: string, turnComplete = true) => ({
  clientContent: { turns: [{ role: "user", parts: [{ text }] }], turnComplete },
});
const hear = (tenths: number, byte = 7) => ({
  realtimeInput: {
    audio: {
      mimeType: "audio/pcm;rate=16000",
      data: Buffer.alloc(3_200 * tenths, byte).toString("base64"),
    },
  },
});
const tokens = (details: LiveUsage["promptTokensDetails"], modality: string) =>
  details.find((d) => d.modality === modality)?.tokenCount ?? 0;
const unitsOf = (u: LiveUsage) => ({
  input: tokens(u.promptTokensDetails, "TEXT"),
  cache_read: 0,
  output: tokens(u.responseTokensDetails, "TEXT"),
  reasoning: 0,
  ...(tokens(u.promptTokensDetails, "AUDIO") > 0 && {
    audio_in: tokens(u.promptTokensDetails, "AUDIO"),
  }),
  ...(tokens(u.responseTokensDetails, "AUDIO") > 0 && {
    audio_out: tokens(u.responseTokensDetails, "AUDIO"),
  }),
});

const faultOf = async (run: () => unknown) => {
  try {
    await run();
  } catch (error) {
    return getFault(error);
  }
  return undefined;
};

describe("the meter of the Live API", () => {
  it("gives the first message the provider's name of the model", async () => {
    const { link } = linked();
    await link.send(setUp({ generationConfig: { responseModalities: ["AUDIO"] } }));
    expect(JSON.parse(link.toProvider[0]!)).toMatchObject({
      setup: { model: "models/gemini-live", generationConfig: { responseModalities: ["AUDIO"] } },
    });
    expect(link.toClient).toEqual(['{"setupComplete":{}}']);
    expect(link.sink.responses).toEqual([]);
  });

  it.each([false, true])("bills each turn by its own report (late: %s)", async (lateUsage) => {
    const { link, usages } = linked({ lateUsage });
    await link.send(setUp());
    await link.send(say("Hello there"));
    await link.send(say("And again"));
    expect(usages).toHaveLength(2);
    expect(link.sink.responses.map((r) => r.usage)).toEqual(usages.map(unitsOf));
    expect(link.sink.responses.every((r) => r.finish === "stop")).toBe(true);
  });

  it("begins a response that the provider starts because the user stopped speaking", async () => {
    const { link, usages } = linked();
    await link.send(setUp());
    await link.send(hear(10));
    await link.send(hear(1, 0));
    expect(link.sink.responses.map((r) => r.usage)).toEqual(usages.map(unitsOf));
    expect(link.sink.responses[0]!.of.facts!.expectedUsage!.audio_in).toBeGreaterThan(0);
  });

  it("bills the call of a function and the answer after its result", async () => {
    const { link, usages } = linked({ calls: "look_up" });
    await link.send(setUp());
    await link.send(say("Hello"));
    await link.send({
      toolResponse: { functionResponses: [{ id: "call-1", name: "look_up", response: {} }] },
    });
    expect(usages).toHaveLength(2);
    expect(link.sink.responses.map((r) => r.usage)).toEqual(usages.map(unitsOf));
  });

  it("estimates a turn for which no report comes, when the next one begins", async () => {
    const { link } = linked({ hidesUsage: true });
    await link.send(setUp());
    await link.send(say("Hello"));
    await link.send(say("Hello"));
    const [first, second] = link.sink.responses;
    expect(first).toMatchObject({ state: "ended", usage: undefined });
    expect(first!.estimate).toMatchObject({ audio_out: 3 });
    expect(second).toMatchObject({ state: "running" });
  });

  it("counts thoughts as output, and tokens without a type as text", () => {
    const { link } = linked();
    link.meter.readProviderMessage(
      JSON.stringify({
        usageMetadata: {
          promptTokenCount: 522,
          responseTokenCount: 42,
          totalTokenCount: 564,
          promptTokensDetails: [
            { modality: "TEXT", tokenCount: 332 },
            { modality: "AUDIO", tokenCount: 165 },
          ],
          responseTokensDetails: [{ modality: "AUDIO", tokenCount: 42 }],
          thoughtsTokenCount: 136,
        },
      }),
    );
    expect(link.sink.responses[0]!.usage).toEqual({
      input: 357,
      cache_read: 0,
      audio_in: 165,
      output: 136,
      reasoning: 136,
      audio_out: 42,
    });
  });

  it("reads both spellings of fields, and messages of bytes", () => {
    const { link } = linked();
    link.meter.readProviderMessage(
      Buffer.from(
        JSON.stringify({
          server_content: { model_turn: { parts: [{ text: "Hi" }] }, turn_complete: true },
          usage_metadata: { prompt_token_count: 7, response_token_count: 2 },
        }),
      ),
    );
    expect(link.sink.responses[0]!.usage).toMatchObject({ input: 7, output: 2 });
    expect(link.sink.responses[0]!.events).toMatchObject([
      { type: "open" },
      { type: "delta", text: "Hi" },
      { type: "close" },
    ]);
  });

  it.each([
    [say("Hello"), "unexpected_setup"],
    [{}, "unknown_message"],
    ["nothing", "invalid_message"],
  ])("rejects %j as the first message", async (message, code) => {
    const { link } = linked();
    expect(await faultOf(() => link.send(message))).toMatchObject({ kind: "invalid", code });
  });

  it("rejects a second setup", async () => {
    const { link } = linked();
    await link.send(setUp());
    expect(await faultOf(() => link.send(setUp()))).toMatchObject({ code: "unexpected_setup" });
  });

  it.each([
    ["models/gemini-live", "gemini-live"],
    ["google/gemini-live", "google/gemini-live"],
    ["models/google/gemini-live", "google/gemini-live"],
    ["projects/p/locations/l/publishers/google/models/gemini-live", "gemini-live"],
  ])("reads the model %s", (model, name) => {
    expect(setupModel(JSON.stringify({ setup: { model } }))).toBe(name);
  });

  it.each([
    ["invalid", 1007],
    ["quota", 1008],
    ["forbidden", 1008],
    ["upstream", 1011],
  ] as const)("closes the connection for an error of the kind %s", (kind, close) => {
    const { encodeFault } = geminiLive().socket!;
    expect(encodeFault({ kind, message: "no" }, { id: "1" })).toEqual({ close });
  });
});

describe("the law of the Live API's meter", () => {
  const action = fc.oneof(
    fc.constant(say("Hello there")),
    fc.constant(say("part", false)),
    fc.nat(5).map((tenths) => hear(tenths + 1)),
    fc.constant(hear(1, 0)),
    fc.constant({ realtimeInput: { text: "Hello" } }),
    fc.constant({ toolResponse: { functionResponses: [{ id: "call-1", response: {} }] } }),
  );
  it("every usage report that the client saw has one bill with the same counts, wherever it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 12 }),
        fc.option(fc.nat(60)),
        fc.record({
          lateUsage: fc.boolean(),
          calls: fc.option(fc.constant("f"), { nil: undefined }),
        }),
        async (actions, cut, options) => {
          const { link } = linked(options as GeminiLiveOptions);
          if (cut !== null) link.left = cut + 1;
          await link.send(setUp());
          for (const one of actions) await link.send(one);
          const seen = link.toClient.flatMap((text) => {
            const { usageMetadata } = JSON.parse(text) as { usageMetadata?: LiveUsage };
            return usageMetadata ? [unitsOf(usageMetadata)] : [];
          });
          const billed = link.sink.responses.filter((r) => r.usage !== undefined);
          expect(billed.map((r) => r.usage)).toEqual(seen);
          expect(billed.every((r) => r.state === "ended")).toBe(true);
          for (const open of link.sink.responses)
            if (open.state !== "ended") expect(open.estimate).toBeDefined();
        },
      ),
      { numRuns: trialCount(300) },
    );
  });

  it("takes any message of either side", () => {
    const json = fc.json({ maxDepth: 4 });
    const value = json.map((text) => JSON.parse(text) as unknown);
    const message = fc
      .dictionary(
        fc.constantFrom(
          "setup",
          "clientContent",
          "realtimeInput",
          "toolResponse",
          "serverContent",
          "toolCall",
          "usageMetadata",
          "setupComplete",
          "goAway",
        ),
        fc.oneof(
          value,
          fc.dictionary(
            fc.constantFrom("turns", "turnComplete", "modelTurn", "promptTokenCount", "audio"),
            value,
          ),
        ),
      )
      .map((found) => JSON.stringify(found));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.oneof(message, json, fc.string())), { maxLength: 20 }),
        (messages) => {
          const { link } = linked();
          for (const [isClient, text] of messages)
            try {
              if (isClient) link.meter.readClientMessage(text);
              else link.meter.readProviderMessage(text);
            } catch (error) {
              expect(getFault(error), String(error)).toBeDefined();
            }
          for (const { usage = {} } of link.sink.responses)
            for (const count of Object.values(usage))
              expect(count! >= 0 && Number.isFinite(count)).toBe(true);
        },
      ),
      { numRuns: trialCount(500) },
    );
  });
});

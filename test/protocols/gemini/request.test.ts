// Outgoing requests for Gemini models: each model's own form of reasoning and schemas, and a
// warning or rejection for everything that this protocol does not support.
import { describe, expect, it } from "vitest";
import {
  getFault,
  type Block,
  type ChatRequest,
  type Proof,
  type Tool,
  type Turn,
} from "tollgate/plugin";
import { gemini, type GeminiDialect } from "tollgate/protocols/gemini";
import { createCallContext, createOutgoing, encodeOutgoing } from "tollgate/testing";
import { createNameRestorer } from "../../../src/protocols/tool-calls.ts";
import { judged } from "./judge.ts";
import { createChatRequest } from "../../kit/requests.ts";

const NEW = "gemini-3.5-flash";
const ask: Turn = { role: "user", blocks: [{ type: "text", text: "Hi" }] };

function sent(
  more: Partial<ChatRequest> = {},
  of: Parameters<typeof createCallContext>[0] = {},
  dialect: GeminiDialect = {},
) {
  const request = createChatRequest(more);
  const call = createCallContext({ model: NEW, ...of });
  const out = encodeOutgoing(gemini(dialect).client!, request, call);
  const body = JSON.parse(JSON.stringify(out.body));
  judged(body, call.model);
  return { body, losses: call.losses.map(({ field, code, how }) => `${field}: ${code ?? how}`) };
}
const config = (more: Partial<ChatRequest>, model = NEW) => {
  const { body, losses } = sent(more, { model });
  return { ...body.generationConfig, losses };
};
const refusal = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    const { kind, code, param } = getFault(error) ?? {};
    return { kind, code, param };
  }
  throw new Error("Nothing was refused.");
};
const effort = (effort: string) => ({ reasoning: { mode: "effort" as const, effort } });
const budget = (budget: number) => ({ reasoning: { mode: "budget" as const, budget } });
const off = { reasoning: { mode: "off" as const } };

describe("reasoning", () => {
  const thinks = (more: Partial<ChatRequest>, model?: string) => {
    const { thinkingConfig, losses } = config(more, model);
    return { ...thinkingConfig, losses };
  };
  it.each([
    [NEW, effort("high"), { includeThoughts: true, thinkingLevel: "HIGH", losses: [] }],
    [NEW, effort("minimal"), { includeThoughts: true, thinkingLevel: "MINIMAL", losses: [] }],
    [
      "gemini-3.8-flash",
      effort("minimal"),
      { includeThoughts: true, thinkingLevel: "LOW", losses: ["reasoning.effort: approximated"] },
    ],
    [
      "gemini-3-pro-preview",
      effort("medium"),
      { includeThoughts: true, thinkingLevel: "LOW", losses: ["reasoning.effort: approximated"] },
    ],
    [
      NEW,
      effort("max"),
      { includeThoughts: true, thinkingLevel: "HIGH", losses: ["reasoning.effort: approximated"] },
    ],
    [
      NEW,
      budget(20_000),
      {
        includeThoughts: true,
        thinkingLevel: "HIGH",
        losses: ["reasoning.budget: budget_as_level"],
      },
    ],
    [NEW, off, { thinkingLevel: "MINIMAL", losses: ["reasoning: least_thinking"] }],
    [NEW, { reasoning: { mode: "auto", show: "full" } }, { includeThoughts: true, losses: [] }],
    [NEW, { reasoning: { mode: "auto" } }, { losses: [] }],
    ["gemini-2.5-flash", off, { thinkingBudget: 0, losses: [] }],
    ["gemini-2.5-flash", budget(8000), { includeThoughts: true, thinkingBudget: 8000, losses: [] }],
    [
      "gemini-2.5-flash",
      budget(90_000),
      { includeThoughts: true, thinkingBudget: 24_576, losses: ["reasoning.budget: approximated"] },
    ],
    [
      "gemini-2.5-pro",
      budget(1),
      { includeThoughts: true, thinkingBudget: 128, losses: ["reasoning.budget: approximated"] },
    ],
    [
      "gemini-2.5-flash",
      effort("low"),
      { includeThoughts: true, thinkingBudget: 2048, losses: ["reasoning: effort_as_budget"] },
    ],
    [
      "gemini-2.5-flash",
      { ...effort("high"), output: { maxTokens: 4000 } },
      { includeThoughts: true, thinkingBudget: 2976, losses: ["reasoning: effort_as_budget"] },
    ],
    ["gemini-2.0-flash", effort("high"), { losses: ["reasoning: no_thinking"] }],
    ["gemini-2.0-flash", off, { losses: [] }],
  ] as [string, Partial<ChatRequest>, object][])("%s: %j", (model, asked, expected) => {
    expect(thinks(asked, model)).toEqual(expected);
  });

  it.each(["gemini-3.1-pro-preview", "gemini-2.5-pro", "gemini-9-ultra"])(
    "%s cannot disable reasoning, and reports it",
    (model) => {
      expect(refusal(() => sent(off, { model }))).toMatchObject({
        kind: "unsupported",
        code: "thinking_required",
      });
    },
  );
});

describe("tools", () => {
  const tool = (schema?: object, more: Partial<Tool> = {}): Tool => ({
    type: "function",
    name: "f",
    ...(schema && { schema: schema as never }),
    ...more,
  });
  const declared = (tools: readonly Tool[], model = NEW) => {
    const { body, losses } = sent({ tools }, { model });
    return { functions: body.tools?.[0]?.functionDeclarations, tools: body.tools, body, losses };
  };

  it("are in one entry, with the original schema", () => {
    const schema = {
      type: "object",
      properties: { a: { $ref: "#/$defs/x" } },
      $defs: { x: { type: ["string", "null"] } },
    };
    expect(
      declared([
        tool(schema),
        tool({ type: "object", properties: {} }, { name: "g", description: "G" }),
      ]).functions,
    ).toEqual([
      { name: "f", parametersJsonSchema: schema },
      { name: "g", description: "G" },
    ]);
  });

  it("have reversible names, whatever their first letter and length", () => {
    const names = ["mcp.server:tool-1", "3d_render", "-x", "ä".repeat(20), "n".repeat(200), "ok"];
    const { functions } = declared(names.map((name) => tool(undefined, { name })));
    const sentNames = functions.map(({ name }: any) => name);
    expect(sentNames[0]).toBe(names[0]);
    expect(sentNames[5]).toBe("ok");
    expect(new Set(sentNames).size).toBe(names.length);
    // As the server halves look them up again.
    expect(sentNames.map(createNameRestorer(() => names))).toEqual(names);
    const old = declared(
      names.map((name) => tool(undefined, { name })),
      "gemini-2.5-flash",
    ).functions;
    for (const { name } of old) expect(name.length).toBeLessThanOrEqual(64);
  });

  it("a repeated name is one tool if equal, and an error otherwise", () => {
    expect(declared([tool(), tool()]).functions).toHaveLength(1);
    expect(refusal(() => declared([tool(), tool(undefined, { description: "x" })]))).toMatchObject({
      code: "duplicate_tool",
    });
  });

  it("with free text become functions, with a warning", () => {
    const { functions, losses } = declared([
      {
        type: "custom",
        name: "patch",
        description: "P",
        raw: { type: "grammar", definition: "start: x" },
      },
    ]);
    expect(functions[0].description).toBe("P\n\nThe input must follow this grammar:\nstart: x");
    expect(functions[0].parametersJsonSchema.required).toEqual(["input"]);
    expect(losses).toEqual(["tools.custom: custom_tool_wrapped"]);
  });

  it("web search is Google's; it is combined with functions only if the model supports both", () => {
    const search: Tool = {
      type: "hosted",
      name: "web_search",
      origin: "responses",
      raw: { type: "web_search" },
    };
    expect(declared([search]).tools).toEqual([{ googleSearch: {} }]);
    const both = declared([tool(), search]);
    expect(both.tools).toHaveLength(2);
    expect(both.body.toolConfig).toEqual({ includeServerSideToolInvocations: true });
    const old = declared([tool(), search], "gemini-2.5-flash");
    expect(old.tools).toHaveLength(1);
    expect(old.losses).toContain("tools.web_search: not_with_functions");
    expect(
      refusal(() => declared([{ type: "hosted", name: "computer", origin: "messages" }])),
    ).toMatchObject({ code: "unsupported_tool" });
  });

  it.each([
    ["auto", { mode: "AUTO" }],
    ["none", { mode: "NONE" }],
    ["required", { mode: "ANY" }],
    [
      { names: ["f"], must: true },
      { mode: "ANY", allowedFunctionNames: ["f"] },
    ],
    [
      { names: ["f"], must: false },
      { mode: "VALIDATED", allowedFunctionNames: ["f"] },
    ],
  ] as const)("choice %j", (toolChoice, expected) => {
    const { body } = sent({ tools: [tool()], toolChoice: toolChoice as never });
    expect(body.toolConfig).toEqual({ functionCallingConfig: expected });
    expect(sent({ toolChoice: toolChoice as never }).body.toolConfig).toBeUndefined();
  });
});

describe("the conversation", () => {
  const said = (turns: readonly Turn[], of = {}) => {
    const { body, losses } = sent({ turns }, of);
    return { contents: body.contents, losses };
  };
  const call = (id: string, proof?: Proof): Block => ({
    type: "call",
    id,
    name: `f_${id}`,
    tool: "function",
    args: '{"n":12345678901234567890}',
    ...(proof && { proof }),
  });
  const result = (callId: string, text = "ok", isError = false): Turn => ({
    role: "tool",
    blocks: [{ type: "result", callId, blocks: [{ type: "text", text }], isError }],
  });

  it("results are in the order of the calls, before other content; of two results the later one counts", () => {
    const { contents } = said([
      ask,
      { role: "assistant", blocks: [call("a"), call("b")] },
      { role: "user", blocks: [{ type: "text", text: "meanwhile" }] },
      result("b"),
      result("a", "early"),
      result("a", "late", true),
    ]);
    expect(contents[2].parts.map((p: any) => p.functionResponse?.response ?? p)).toEqual([
      { error: "late" },
      { output: "ok" },
      { text: "meanwhile" },
    ]);
  });

  it("integers keep their digits", () => {
    const call_ = createCallContext({ model: NEW });
    const out = encodeOutgoing(
      gemini().client!,
      createChatRequest({ turns: [ask, { role: "assistant", blocks: [call("a")] }, result("a")] }),
      call_,
    );
    expect(JSON.stringify(out.body)).toContain('"n":12345678901234567890');
  });

  it("an assistant message at the start or the end is reported", () => {
    const assistant: Turn = { role: "assistant", blocks: [{ type: "text", text: "I" }] };
    expect(said([assistant, ask])).toMatchObject({
      contents: [{ role: "user", parts: [{ text: " " }] }, {}, {}],
      losses: ["messages: user_turn_inserted"],
    });
    expect(said([ask, assistant]).losses).toEqual(["messages: prefill_ignored"]);
  });

  it("a model without system instructions gets them as the first message", () => {
    const { body, losses } = sent(
      { instructions: [{ type: "text", text: "Be brief." }] },
      { model: "gemma-4-27b" },
    );
    expect(body.systemInstruction).toBeUndefined();
    expect(body.contents[0].parts).toEqual([{ text: "Be brief." }, { text: "Hi" }]);
    expect(losses).toEqual(["system: system_as_user"]);
  });

  it("a client's telemetry for its own vendor is not sent", () => {
    const { body } = sent({
      instructions: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2;" },
        { type: "text", text: "Hello" },
      ],
    });
    expect(body.systemInstruction).toEqual({ parts: [{ text: "Hello" }] });
  });

  const own = (model: string, kind = "part"): Proof => ({
    origin: "gemini",
    kind,
    data: "U0lH",
    model,
  });
  it("signatures are sent back to their model family only", () => {
    const turns = (proof?: Proof): Turn[] => [
      ask,
      { role: "assistant", blocks: [call("a", proof)] },
      result("a"),
    ];
    const signature = (proof: Proof | undefined, model = NEW) =>
      said(turns(proof), { model }).contents[1].parts[0].thoughtSignature;
    expect(signature(own("gemini-3.1-pro-preview"))).toBe("U0lH");
    expect(signature(own("gemini-2.5-flash"))).toBe("skip_thought_signature_validator");
    expect(signature(undefined, "gemini-2.5-flash")).toBeUndefined();
    expect(signature({ origin: "messages", kind: "signature", data: "x" })).toBe(
      "skip_thought_signature_validator",
    );
    const extra = JSON.stringify({ google: { thought_signature: "Q09NUA==" } });
    expect(signature({ origin: "chat-completions", kind: "extra_content", data: extra })).toBe(
      "Q09NUA==",
    );
  });

  it("signed parts keep their position; unsigned reasoning is dropped", () => {
    const { contents } = said([
      ask,
      {
        role: "assistant",
        blocks: [
          { type: "reasoning", summary: ["gone"] },
          { type: "reasoning", summary: ["kept"], proof: own(NEW, "after") },
          { type: "text", text: "Hello", proof: own(NEW, "words") },
          { type: "text", text: " there" },
          { type: "reasoning", proof: own(NEW, "empty") },
        ],
      },
      ask,
    ]);
    expect(contents[1].parts).toEqual([
      { text: "kept", thought: true },
      { text: "", thought: true, thoughtSignature: "U0lH" },
      { text: "Hello", thoughtSignature: "U0lH" },
      { text: " there" },
      { text: "", thoughtSignature: "U0lH" },
    ]);
  });

  it("a tool's image is sent next to its result if the model accepts none inside", () => {
    const turns: Turn[] = [
      ask,
      { role: "assistant", blocks: [call("a")] },
      {
        role: "tool",
        blocks: [
          {
            type: "result",
            callId: "a",
            isError: false,
            blocks: [{ type: "image", media: { mime: "image/png", base64: "AA==" } }],
          },
        ],
      },
    ];
    const { contents, losses } = said(turns, { model: "gemini-2.5-flash" });
    expect(contents[2].parts).toHaveLength(2);
    expect(contents[2].parts[1]).toEqual({ inlineData: { mimeType: "image/png", data: "AA==" } });
    expect(losses).toContain("messages.2: tool_image_moved");
  });

  const media = (block: Block, of = {}) => said([{ role: "user", blocks: [block] }], of);
  it.each([
    [
      { type: "image", media: { url: "https://e.com/a.webp?x=1" } },
      { fileData: { mimeType: "image/webp", fileUri: "https://e.com/a.webp?x=1" } },
    ],
    [
      { type: "image", media: { base64: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB" } },
      { inlineData: { mimeType: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB" } },
    ],
    [
      { type: "audio", media: { mime: "audio/mp3", base64: "AA==" } },
      { inlineData: { mimeType: "audio/mp3", data: "AA==" } },
    ],
    [
      { type: "video", media: { url: "https://youtu.be/x" } },
      { fileData: { fileUri: "https://youtu.be/x" } },
    ],
    [
      { type: "document", media: { mime: "text/plain", bytes: Buffer.from("hi") } },
      { inlineData: { mimeType: "text/plain", data: "aGk=" } },
    ],
  ] as [Block, object][])("media %j", (block, part) => {
    expect(media(block).contents[0].parts).toEqual([part]);
  });

  it.each([
    [{ type: "image", media: { fileId: "file-1", origin: "messages" } }, {}, "foreign_file_id"],
    [
      {
        type: "image",
        media: { url: "https://generativelanguage.googleapis.com/v1beta/files/abc" },
      },
      {},
      "state_unsupported",
    ],
    [{ type: "image", media: { url: "gs://bucket/x.png" } }, {}, "state_unsupported"],
    ...[
      "https://generativelanguage.googleapis.com/v1beta/%66iles/abc",
      "https://generativelanguage.googleapis.com/v1beta/%2566iles/abc",
      "https://generativelanguage.googleapis.com/v1beta/FILES/abc",
      "https://GenerativeLanguage.GoogleApis.com./v1beta/files/abc",
      "https://generativelanguage.googleapis.com:443/v1beta/x/../files/abc",
      "https://someone@generativelanguage.googleapis.com/v1beta/files/abc?x=1",
      "https:\\\\generativelanguage.googleapis.com\\v1beta\\files\\abc",
      " https://generativelanguage.googleapis.com/v1beta/fi\tles/abc",
      "http://generativelanguage.googleapis.com/v1beta/files/abc",
      "https://generativelanguage.googleapis.com/upload/v1beta/files",
      "GS://bucket/x.png",
      "files/abc",
    ].map((url) => [{ type: "image", media: { url } }, {}, "state_unsupported"]),
    [
      { type: "image", media: { url: "https://e.com/a.png" } },
      { model: "gemini-2.0-flash" },
      "unsupported_media_source",
    ],
    [{ type: "opaque", origin: "messages", raw: {} }, {}, "unsupported_content"],
  ] as [Block, object, string][])("rejects %j %j", (block, of, code) => {
    expect(refusal(() => media(block, of))).toMatchObject({ kind: "unsupported", code });
  });
});

describe("parameters", () => {
  it("have their own names in this protocol", () => {
    expect(
      config({
        output: {
          maxTokens: 10,
          stop: ["a", ""],
          modalities: ["text", "image"],
          format: { type: "json" },
        },
        sampling: {
          temperature: 2,
          topP: 0.5,
          topK: 3,
          presence: 1,
          frequency: -1,
          seed: 5,
          logprobs: 2,
        },
      }),
    ).toEqual({
      maxOutputTokens: 10,
      stopSequences: ["a"],
      responseModalities: ["TEXT", "IMAGE"],
      responseMimeType: "application/json",
      temperature: 2,
      topP: 0.5,
      topK: 3,
      presencePenalty: 1,
      frequencyPenalty: -1,
      seed: 5,
      responseLogprobs: true,
      logprobs: 2,
      losses: [],
    });
  });

  it.each([
    [{ sampling: { n: 2 } }, "unsupported_value"],
    [{ state: { previousId: "x" } }, "unsupported_parameter"],
    [{ state: { conversation: "x" } }, "unsupported_parameter"],
    [{ state: { background: true } }, "unsupported_parameter"],
    [{ turns: [{ role: "user", blocks: [{ type: "text", text: "" }] }] }, "empty_message"],
    [{ rest: { cachedContent: "cachedContents/x" } }, "state_unsupported"],
  ] as [Partial<ChatRequest>, string][])("rejects %j", (more, code) => {
    expect(refusal(() => sent(more))).toMatchObject({ kind: "unsupported", code });
  });

  it("an older model supports either JSON output or tools", () => {
    const more = {
      tools: [{ type: "function" as const, name: "f" }],
      output: { format: { type: "json" as const } },
    };
    expect(refusal(() => sent(more, { model: "gemini-2.5-flash" }))).toMatchObject({
      param: "response_format",
    });
    expect(sent(more).losses).toEqual([]);
  });

  it("service tiers, and unknown values", () => {
    expect(sent({ tier: "flex" }).body.serviceTier).toBe("flex");
    expect(sent({ tier: "default" }).body.serviceTier).toBe("standard");
    expect(sent({ tier: "scale" }).losses).toEqual(["service_tier: dropped"]);
    const { body, losses } = sent({
      rest: { min_p: 0.1, safety_settings: [], thinking: {} },
    });
    expect(body).not.toHaveProperty("min_p");
    // By the first of its two names.
    expect(body.safetySettings).toEqual([]);
    expect(losses).toEqual(["min_p: unknown_to_gemini", "thinking: unknown_to_gemini"]);
    // Newer than the fake API, in Google's spelling: Google validates it.
    expect(() => sent({ rest: { newThing: 1 } })).toThrow('Unknown name "newThing"');
  });

  it("cache marks are reported as dropped", () => {
    const blocks: Block[] = [{ type: "text", text: "Hi", cache: { type: "ephemeral" } }];
    expect(sent({ turns: [{ role: "user", blocks }] }).losses).toEqual(["cache_control: dropped"]);
  });
});

describe("a token count", () => {
  it("contains everything that would be sent, and nothing else", () => {
    const { body } = sent({ rest: { safetySettings: [] } }, { actionType: "count" });
    expect(Object.keys(body)).toEqual(["generateContentRequest"]);
    expect(body.generateContentRequest).toMatchObject({
      model: `models/${NEW}`,
      safetySettings: [],
      contents: [{}],
    });
  });
});

describe("the path", () => {
  const path = (model: string, more = {}) => {
    const { generate } = gemini().client!.paths;
    return (generate as (of: unknown) => string)(createCallContext({ model, ...more }));
  };
  it.each([
    ["gemini-3.5-flash", {}, "/models/gemini-3.5-flash:generateContent"],
    [
      "gemini-3.5-flash",
      { stream: true },
      "/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
    ],
    ["tunedModels/mine", {}, "/tunedModels/mine:generateContent"],
    ["odd:name?x", {}, "/models/odd%3Aname%3Fx:generateContent"],
  ])("%s", (model, more, expected) => {
    expect(path(model, more)).toBe(expected);
  });
  it.each(["../files", "a/../../x", "models/", "/x"])("%s is rejected", (model) => {
    expect(refusal(() => path(model))).toMatchObject({ kind: "not_found" });
  });
});

describe("an output limit", () => {
  const bounded = (config: object | undefined, tokens: number) => {
    const out = createOutgoing(config ? { generationConfig: config as never } : {});
    gemini().client!.capOutput!(out, tokens);
    return out.body!["generationConfig"];
  };
  it("is the smaller one, and leaves room for the response", () => {
    expect(bounded(undefined, 50)).toEqual({ maxOutputTokens: 50 });
    expect(bounded({ maxOutputTokens: 10 }, 50)).toEqual({ maxOutputTokens: 10 });
    expect(bounded({ maxOutputTokens: 100, thinkingConfig: { thinkingBudget: 80 } }, 50)).toEqual({
      maxOutputTokens: 50,
      thinkingConfig: { thinkingBudget: 25 },
    });
  });
});

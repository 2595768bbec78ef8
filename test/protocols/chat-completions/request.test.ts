// Requests: decoding by the server half, and encoding by the client half with its warnings and
// rejections.
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import {
  chatCompletions,
  type ChatDialect,
} from "../../../src/protocols/chat-completions/index.ts";
import {
  getFault,
  type Block,
  type ChatRequest,
  type JsonObject,
} from "../../../src/plugin/index.ts";
import { createCallContext, createOutgoing, encodeOutgoing } from "../../../src/testing/index.ts";
import { seal } from "../../../src/protocols/proof-envelope.ts";
import { createChatRequest } from "../../kit/requests.ts";

const { server, client } = chatCompletions();
const read = (body: JsonObject) =>
  server!.decodeRequest({ model: "m", ...body } as never, "generate");
const user = (content: unknown) =>
  read({ messages: [{ role: "user", content }] as never }).turns[0]!.blocks;

/** The outgoing request for any protocol's request, with its warnings. */
function sent(request: ChatRequest, dialect: ChatDialect = {}, model = "up") {
  const of = createCallContext({ model, stream: request.stream });
  const { body } = encodeOutgoing(chatCompletions(dialect).client!, request, of);
  return { body: body as Record<string, any>, losses: of.losses.map((l) => `${l.how} ${l.field}`) };
}
const refusal = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    const fault = getFault(error);
    return fault && { kind: fault.kind, param: fault.param, code: fault.code };
  }
  return undefined;
};

/** A request as another protocol's server half decodes it. */
const asked = (more: Partial<ChatRequest>): ChatRequest =>
  createChatRequest({ ext: { messages: {} }, ...more });

describe("the schema", () => {
  const valid = new Ajv({ strict: false }).compile(server!.schema as object);
  const hi = [{ role: "user", content: "Hi" }];

  test.each([
    [{ model: "m", messages: hi }],
    [
      {
        model: "m",
        messages: hi,
        stop: ["a", "b", "c", "d"],
        thinking: { type: "enabled", budget_tokens: 5 },
      },
    ],
    [
      {
        model: "m",
        messages: hi,
        stop: null,
        temperature: null,
        tools: null,
        stream_options: null,
      },
    ],
    [
      {
        model: "m",
        messages: [
          { role: "assistant", tool_calls: [{ id: "1" }] },
          { role: "tool", tool_call_id: "1", content: null },
        ],
      },
    ],
    [
      {
        model: "m",
        messages: [{ role: "user", content: [{ type: "newer_than_us" }] }],
        anything: { at: "all" },
      },
    ],
  ])("accepts %j", (body) => expect(valid(body)).toBe(true));

  test.each([
    [{ messages: hi }, "/"],
    [{ model: "m" }, "/"],
    [{ model: "m", messages: [] }, "/messages"],
    [{ model: "m", messages: [{ role: "robot", content: "x" }] }, "/messages/0/role"],
    [{ model: "m", messages: [{ role: "tool", content: "x" }] }, "/messages/0"],
    [{ model: "m", messages: [{ role: "user", content: null }] }, "/messages/0/content"],
    [{ model: "m", messages: hi, stop: ["a", "b", "c", "d", "e"] }, "/stop"],
    [{ model: "m", messages: hi, thinking: { type: "sometimes" } }, "/thinking/type"],
    [{ model: "m", messages: hi, max_tokens: "many" }, "/max_tokens"],
    [{ model: "m", messages: hi, stream: "yes" }, "/stream"],
    [
      { model: "m", messages: hi, tools: [{ type: "function", function: {} }] },
      "/tools/0/function",
    ],
  ])("rejects %j", (body, at) => {
    expect(valid(body)).toBe(false);
    expect(valid.errors![0]!.instancePath || "/").toBe(at);
  });
});

describe("request analysis", () => {
  test("finds the facts that the host needs", () => {
    const body = {
      model: "m",
      stream: true,
      store: true,
      n: 2,
      max_tokens: 5,
      max_completion_tokens: 7,
      logprobs: true,
      reasoning_effort: "low",
      response_format: { type: "json_schema" },
      prompt_cache_retention: "24h",
      tools: [{ type: "function" }, { type: "web_search" }],
      messages: [
        { role: "system", content: "s" },
        {
          role: "user",
          content: [
            { type: "image_url" },
            { type: "input_audio" },
            { type: "file", file: { file_id: "f" } },
          ],
        },
      ],
    };
    const { features, maxOutput, n } = server!.analyze(body as never);
    expect(new Set(features)).toEqual(
      new Set(
        "stream system vision audio documents state.file tools hosted.web_search json_schema logprobs reasoning state.store cache.extended n".split(
          " ",
        ),
      ),
    );
    expect({ maxOutput, n }).toEqual({ maxOutput: 7, n: 2 });
  });

  test("finds nothing in a plain request", () => {
    expect(
      server!.analyze({
        model: "m",
        messages: [{ role: "user", content: "Hi" }],
        reasoning_effort: "none",
      } as never).features,
    ).toEqual([]);
  });
});

describe("decoding", () => {
  test("content parts of the standard and common extensions", () => {
    expect(
      user([
        { type: "text", text: "t", cache_control: { type: "ephemeral" } },
        { type: "image_url", image_url: { url: "data:image/jpg;base64,AA AA", detail: "low" } },
        { type: "image_url", image_url: "https://i.example/a.png" },
        { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
        { type: "video_url", video_url: { url: "https://v.example/a.mp4" } },
        {
          type: "file",
          file: { file_data: "data:application/pdf;base64,JVBE", filename: "a.pdf" },
        },
        { type: "file", file: { file_data: "JVBE" } },
        { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
        { type: "newer_than_us", x: 1 },
      ]),
    ).toEqual([
      { type: "text", text: "t", cache: { type: "ephemeral" } },
      { type: "image", media: { mime: "image/jpeg", base64: "AAAA" }, detail: "low" },
      { type: "image", media: { url: "https://i.example/a.png" } },
      { type: "audio", media: { mime: "audio/mp3", base64: "AAAA" } },
      { type: "video", media: { url: "https://v.example/a.mp4" } },
      { type: "document", media: { mime: "application/pdf", base64: "JVBE" }, title: "a.pdf" },
      { type: "document", media: { mime: "application/pdf", base64: "JVBE" } },
      { type: "image", media: { mime: "image/png", base64: "AAAA" } },
      { type: "opaque", origin: "chat-completions", raw: { type: "newer_than_us", x: 1 } },
    ]);
  });

  test("assistant messages, with reasoning under any name, the most specific first", () => {
    const said = (message: JsonObject) =>
      read({ messages: [{ role: "assistant", content: "A", ...message }] as never }).turns[0]!
        .blocks[0];
    const sealed = seal({
      proof: { origin: "messages", kind: "signature", data: "S" },
      text: "whole",
    });
    expect(said({ reasoning_content: "r" })).toEqual({ type: "reasoning", text: "r" });
    expect(said({ reasoning: "r" })).toEqual({ type: "reasoning", text: "r" });
    expect(
      said({
        reasoning_content: "shown",
        reasoning_details: [{ type: "reasoning.encrypted", data: sealed, format: "tollgate-v1" }],
      }),
    ).toEqual({
      type: "reasoning",
      text: "whole",
      proof: { origin: "messages", kind: "signature", data: "S" },
    });
    expect(
      said({
        reasoning_content: "r",
        thinking_blocks: [{ type: "thinking", thinking: "t", signature: "s" }],
      }),
    ).toEqual({
      type: "reasoning",
      text: "t",
      proof: { origin: "messages", kind: "signature", data: "s" },
    });
    expect(
      said({
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "t" }] },
          { type: "text", text: "x" },
        ],
      }),
    ).toEqual({ type: "reasoning", text: "t" });
  });

  test("calls and their results, also in the oldest form", () => {
    const { turns } = read({
      messages: [
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "1", type: "function", function: { name: "f", arguments: { a: 1 } } },
            { id: "2", type: "custom", custom: { name: "c", input: "x" } },
          ],
        },
        { role: "tool", tool_call_id: "1", content: [{ type: "text", text: "one" }] },
        { role: "assistant", function_call: { name: "old", arguments: "{}" } },
        { role: "function", name: "old", content: "two" },
      ] as never,
    });
    expect(turns[0]!.blocks).toEqual([
      { type: "call", id: "1", name: "f", tool: "function", args: '{"a":1}' },
      { type: "call", id: "2", name: "c", tool: "custom", args: "x" },
    ]);
    expect(turns[1]).toEqual({
      role: "tool",
      blocks: [
        { type: "result", callId: "1", blocks: [{ type: "text", text: "one" }], isError: false },
      ],
    });
    const [old, answer] = [turns[2]!.blocks[0]!, turns[3]!.blocks[0]!] as unknown as {
      id: string;
      callId: string;
    }[];
    expect(answer!.callId).toBe(old!.id);
  });

  test("every form of reasoning settings", () => {
    const how = (body: JsonObject) =>
      read({ messages: [{ role: "user", content: "x" }], ...body } as never).reasoning;
    expect(how({})).toEqual({ mode: "auto" });
    expect(how({ thinking: { type: "enabled" } })).toEqual({ mode: "auto", show: "full" });
    expect(how({ thinking: { type: "disabled" } })).toEqual({ mode: "off" });
    expect(how({ reasoning_effort: "none" })).toEqual({ mode: "off" });
    expect(how({ reasoning_effort: "high", thinking: { type: "enabled" } })).toEqual({
      mode: "effort",
      effort: "high",
    });
    expect(how({ thinking: { type: "enabled", budget_tokens: 99 } })).toEqual({
      mode: "budget",
      budget: 99,
    });
    expect(how({ reasoning: { effort: "low", exclude: true } })).toEqual({
      mode: "effort",
      effort: "low",
      show: "none",
    });
    expect(how({ enable_thinking: false })).toEqual({ mode: "off" });
  });

  test("loses nothing: fields of this protocol are in ext, unknown fields in rest", () => {
    const { ext, rest, user, output, tools } = read({
      messages: [
        { role: "user", content: "x" },
        { role: "assistant", content: "y", prefix: true },
      ],
      prediction: { type: "content", content: "z" },
      safety_identifier: "s",
      user: "u",
      my_field: 1,
      chat_template_kwargs: { enable_thinking: true },
      response_format: { type: "grammar", grammar: "g" },
      web_search_options: { search_context_size: "low" },
    } as never);
    expect(ext).toEqual({
      "chat-completions": {
        "messages[1].prefix": true,
        prediction: { type: "content", content: "z" },
        safety_identifier: "s",
        response_format: { type: "grammar", grammar: "g" },
      },
    });
    expect(rest).toEqual({ my_field: 1, chat_template_kwargs: { enable_thinking: true } });
    expect(user).toBe("u");
    expect(output.format).toBeUndefined();
    expect(tools).toEqual([
      {
        type: "hosted",
        name: "web_search",
        origin: "chat-completions",
        raw: { search_context_size: "low" },
      },
    ]);
  });

  test("an unchanged turn is sent back unchanged, and an edited one is encoded again", () => {
    const messages = [
      { role: "system", content: [{ type: "text", text: "S" }] },
      { role: "user", content: [{ type: "text", text: "Q" }] },
      { role: "assistant", content: "A", prefix: true },
    ];
    const request = read({ messages } as never);
    expect(sent(request).body["messages"]).toEqual(messages);
    const edited: ChatRequest = {
      ...request,
      turns: request.turns.map((t) =>
        t.role === "user" ? { ...t, blocks: [{ type: "text", text: "!" }] } : t,
      ),
    };
    expect(sent(edited).body["messages"]).toEqual([
      messages[0],
      { role: "user", content: "!" },
      messages[2],
    ]);
    // A plain copy has the same content, encoded again.
    expect(sent(structuredClone(request)).body["messages"]).toEqual([
      { role: "system", content: "S" },
      { role: "user", content: "Q" },
      { role: "assistant", content: "A" },
    ]);
  });
});

describe("a request of another protocol", () => {
  const text = (said: string): Block => ({ type: "text", text: said });

  test("turns, in this protocol's order", () => {
    const { body, losses } = sent(
      asked({
        instructions: [text("One"), text("Two")],
        turns: [
          {
            role: "user",
            blocks: [text("Q"), { type: "image", media: { mime: "image/png", base64: "AAAA" } }],
          },
          {
            role: "assistant",
            blocks: [
              {
                type: "reasoning",
                text: "hidden",
                proof: { origin: "messages", kind: "signature", data: "S" },
              },
              text("A"),
              { type: "call", id: "c1", name: "f", tool: "function", args: "" },
              text("B"),
            ],
          },
          {
            role: "user",
            blocks: [
              text("After"),
              {
                type: "result",
                callId: "c1",
                blocks: [text("5"), { type: "image", media: { url: "https://i.example/a.png" } }],
                isError: true,
              },
            ],
          },
        ],
        tools: [{ type: "function", name: "f" }],
      }),
    );
    expect(body["messages"]).toEqual([
      {
        role: "system",
        content: [
          { type: "text", text: "One" },
          { type: "text", text: "Two" },
        ],
      },
      {
        role: "user",
        content: [
          { type: "text", text: "Q" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        ],
      },
      {
        role: "assistant",
        content: "AB",
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "5" },
      {
        role: "user",
        content: [
          { type: "text", text: "Output of the tool call c1:" },
          { type: "image_url", image_url: { url: "https://i.example/a.png" } },
          { type: "text", text: "After" },
        ],
      },
    ]);
    expect(losses).toEqual([
      "approximated messages",
      "dropped is_error",
      "approximated tool_result.content",
    ]);
  });

  test("fields", () => {
    const { body, losses } = sent(
      asked({
        stream: true,
        user: "u",
        output: {
          maxTokens: 9,
          stop: ["x"],
          format: { type: "schema", schema: { type: "object" } },
        },
        sampling: { temperature: 1, topP: 0.5, topK: 7, seed: 3, logprobs: 2 },
        reasoning: { mode: "budget", budget: 9000 },
        tools: [
          { type: "function", name: "a.b", schema: { type: "object" }, strict: true, cache: {} },
        ],
        toolChoice: { names: ["a.b"], must: true },
        parallelToolCalls: false,
        metadata: { a: "b" },
        tier: "standard_only",
        ext: { messages: { context_management: {}, betas: [] } },
      }),
    );
    const name = body["tools"][0].function.name as string;
    expect(name).toMatch(/^a_b_[0-9a-f]{8}$/);
    expect(body).toEqual({
      model: "up",
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "Hi" }],
      max_completion_tokens: 9,
      stop: ["x"],
      response_format: {
        type: "json_schema",
        json_schema: { name: "response", schema: { type: "object" } },
      },
      temperature: 1,
      top_p: 0.5,
      seed: 3,
      logprobs: true,
      top_logprobs: 2,
      reasoning_effort: "medium",
      tools: [
        { type: "function", function: { name, parameters: { type: "object" }, strict: true } },
      ],
      tool_choice: { type: "function", function: { name } },
      parallel_tool_calls: false,
      service_tier: "default",
      user: "u",
    });
    expect(losses).toEqual([
      "dropped context_management",
      "dropped tools.cache_control",
      "dropped top_k",
      "approximated thinking.budget_tokens",
      "dropped metadata",
    ]);
  });

  test("a field that the model rejects is not sent, and the client gets a warning", () => {
    const info = {
      model: "up",
      operation: "chat" as const,
      rejectedFields: ["temperature", "top_p"],
    };
    const of = createCallContext({ model: "up", info });
    const { body } = encodeOutgoing(client!, asked({ sampling: { temperature: 1, seed: 2 } }), of);
    expect(body).toMatchObject({ seed: 2 });
    expect(body).not.toHaveProperty("temperature");
    expect(of.losses).toMatchObject([{ field: "temperature", how: "dropped" }]);
  });

  test("a freeform tool becomes a function if unsupported, also in the history", () => {
    const { body, losses } = sent(
      asked({
        tools: [
          {
            type: "custom",
            name: "patch",
            description: "Patch.",
            raw: { type: "grammar", syntax: "lark", definition: "start: x" },
          },
        ],
        turns: [
          {
            role: "assistant",
            blocks: [{ type: "call", id: "1", name: "patch", tool: "custom", args: "*** Begin" }],
          },
        ],
      }),
      { customTools: false },
    );
    expect(body["tools"][0].function).toMatchObject({
      name: "patch",
      description: "Patch.\n\nThe input must follow this grammar:\nstart: x",
    });
    expect(JSON.parse(body["messages"][0].tool_calls[0].function.arguments)).toEqual({
      input: "*** Begin",
    });
    expect(losses).toEqual(["approximated tools.custom"]);
    const native = sent(
      asked({
        tools: [
          {
            type: "custom",
            name: "patch",
            raw: { type: "grammar", syntax: "lark", definition: "start: x" },
          },
        ],
      }),
    );
    expect(native.body["tools"][0].custom.format).toEqual({
      type: "grammar",
      grammar: { syntax: "lark", definition: "start: x" },
    });
  });

  test("so does a chat client's own in translated mode; in passthrough mode it is rejected", () => {
    const body = {
      messages: [
        { role: "user", content: "Q" },
        {
          role: "assistant",
          tool_calls: [{ id: "1", type: "custom", custom: { name: "sql", input: "select 1" } }],
        },
        { role: "tool", tool_call_id: "1", content: "1" },
      ],
      tools: [{ type: "custom", custom: { name: "sql" } }],
    };
    const { body: out } = sent(read(body as never), { customTools: false });
    expect(out["tools"][0]).toMatchObject({ type: "function", function: { name: "sql" } });
    expect(out["messages"][1].tool_calls[0].function).toEqual({
      name: "sql",
      arguments: '{"input":"select 1"}',
    });
    const bytes = createOutgoing({ model: "m", ...body });
    expect(
      refusal(() =>
        chatCompletions({ customTools: false }).client!.prepare!(bytes, createCallContext()),
      ),
    ).toMatchObject({
      kind: "unsupported",
      code: "unsupported_tool",
    });
  });

  test.each<[string, Partial<ChatRequest>, string]>([
    ["several choices", { sampling: { n: 2 } }, "n"],
    ["an answer kept elsewhere", { state: { previousId: "r" } }, "previous_response_id"],
    ["a conversation kept elsewhere", { state: { conversation: "c" } }, "conversation"],
    ["work in the background", { state: { background: true } }, "background"],
    [
      "another's hosted tool",
      { tools: [{ type: "hosted", name: "code_interpreter", origin: "responses", raw: {} }] },
      "tools",
    ],
    [
      "video",
      {
        turns: [{ role: "user", blocks: [{ type: "video", media: { url: "https://v.example" } }] }],
      },
      "messages[0].content[0]",
    ],
    [
      "a document by address",
      {
        turns: [
          { role: "user", blocks: [{ type: "document", media: { url: "https://d.example" } }] },
        ],
      },
      "messages[0].content[0]",
    ],
    [
      "another's file",
      {
        turns: [
          { role: "user", blocks: [{ type: "image", media: { fileId: "f", origin: "messages" } }] },
        ],
      },
      "messages[0].content[0]",
    ],
    [
      "an image by the assistant",
      { turns: [{ role: "assistant", blocks: [{ type: "image", media: { base64: "A" } }] }] },
      "messages[0]",
    ],
    [
      "what nobody can read",
      {
        turns: [
          { role: "user", blocks: [{ type: "opaque", origin: "messages", raw: { type: "x" } }] },
        ],
      },
      "messages[0].content[0]",
    ],
  ])("%s is rejected, so that another candidate is tried", (_, more, param) => {
    expect(refusal(() => sent(asked(more)))).toMatchObject({ kind: "unsupported", param });
  });

  test("IDs of files and audio stored upstream are rejected in both modes", () => {
    const file = read({
      messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }],
    } as never);
    const audio = read({ messages: [{ role: "assistant", audio: { id: "audio_1" } }] } as never);
    expect(refusal(() => sent(file))).toMatchObject({
      kind: "unsupported",
      param: "messages[0].content[0].file.file_id",
    });
    expect(refusal(() => sent(audio))).toMatchObject({ param: "messages[0].audio.id" });
    const relayed = createCallContext({ model: "up", stateMode: "relay" });
    expect(encodeOutgoing(client!, file, relayed).body!["messages"]).toEqual([
      { role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] },
    ]);
  });
});

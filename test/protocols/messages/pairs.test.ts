// Messages together with chat completions, where the two differ: a coding client's requests to a
// chat backend, and a chat client's tools in this protocol and back.
import { describe, expect, test } from "vitest";
import { collectResponse } from "../../../src/model/response-collector.ts";
import type { ModelEvent } from "../../../src/model/event.ts";
import type { ChatRequest } from "../../../src/model/request.ts";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import type { ClientHalf, ServerHalf } from "../../../src/plugin/protocol.ts";
import { createResponseContext, createCallContext } from "../../../src/testing/codec-contexts.ts";
import { decode, encodeText } from "../../../src/testing/codec.ts";
import { say, think, encodeOutgoing, type ModelScript } from "../../../src/testing/index.ts";
import { client, server } from "./recorded.ts";

const chat = {
  client: chatCompletions().client as ClientHalf<"chat">,
  server: chatCompletions().server as ServerHalf<"chat">,
};

const bytes = (speech: ModelScript, wire: "messages" | "chat-completions", stream: boolean) =>
  Buffer.from(
    ([speech.toProtocol(wire, { stream }).body].flat() as any[])
      .map((piece) => String(piece.bytes ?? piece))
      .join(""),
  );
const heard = (speech: ModelScript, wire: "messages" | "chat-completions"): ModelEvent[] =>
  decode(
    (wire === "messages" ? client : chat.client) as never,
    [bytes(speech, wire, true)],
    createCallContext({ stream: true }),
  );

/** A backend with unsigned reasoning that must be sent back. */
const thoughtful = chatCompletions({
  reasoning: { control: "effort", echo: "reasoning_content" },
}).client as ClientHalf<"chat">;

const toChat = (body: object, backend = chat.client) => {
  const of = createCallContext();
  const request = server.decodeRequest(body as never, "generate") as ChatRequest;
  return {
    body: encodeOutgoing(backend, request, of).body as Record<string, any>,
    losses: of.losses,
  };
};
const toMessages = (body: object) => {
  const of = createCallContext();
  const request = chat.server.decodeRequest(body as never, "generate") as ChatRequest;
  return {
    body: encodeOutgoing(client, request, of).body as Record<string, any>,
    losses: of.losses,
  };
};

describe("a coding client on a chat backend", () => {
  const body = {
    model: "m",
    max_tokens: 32_000,
    stream: true,
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1;" },
      { type: "text", text: "You write code.", cache_control: { type: "ephemeral" } },
    ],
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "high" },
    context_management: { edits: [{ type: "clear_thinking_20251015" }] },
    metadata: { user_id: "u1" },
    tools: [
      {
        name: "Read",
        description: "Reads.",
        input_schema: { type: "object", properties: { path: { type: "string" } } },
        defer_loading: true,
      },
    ],
    messages: [
      { role: "user", content: "Read a.txt" },
      { role: "system", content: "Today is Saturday." },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Reading." },
          { type: "tool_use", id: "toolu_1", name: "Read", input: { path: "a.txt" } },
          { type: "tool_use", id: "toolu_2", name: "Read", input: { path: "b.txt" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "A" },
          {
            type: "tool_result",
            tool_use_id: "toolu_2",
            content: [{ type: "text", text: "B" }],
            is_error: true,
          },
          { type: "text", text: "Go on." },
        ],
      },
    ],
  };

  test("is decoded: system, interjections, parallel calls, and their results", () => {
    const { messages, ...sent } = toChat(body).body;
    expect(messages.map((m: any) => m.role)).toEqual([
      "system",
      "user",
      "system",
      "assistant",
      "tool",
      "tool",
      "user",
    ]);
    expect(JSON.stringify(messages)).not.toContain("billing");
    expect(messages[3].tool_calls.map((c: any) => [c.id, c.function.arguments])).toEqual([
      ["toolu_1", '{"path":"a.txt"}'],
      ["toolu_2", '{"path":"b.txt"}'],
    ]);
    expect(messages.slice(4, 6).map((m: any) => m.tool_call_id)).toEqual(["toolu_1", "toolu_2"]);
    expect(sent).toMatchObject({ reasoning_effort: "high" });
    expect(sent).not.toHaveProperty("context_management");
    expect(sent).not.toHaveProperty("thinking");
  });

  test("is warned of dropped fields", () => {
    const lost = toChat(body).losses.map((l) => l.field);
    expect(lost).toContain("context_management");
    expect(lost).toContain("is_error");
    expect(lost).not.toContain("thinking");
  });

  test("gets unsigned reasoning, which is sent back to backends that need it", () => {
    const answer = server.encodeResponse(
      collectResponse(
        heard(think("Hm, a.txt.").call("Read", { path: "a.txt" }, "call_1"), "chat-completions"),
      ),
      createResponseContext({ body: body as never }),
    ) as { content: any[] };
    const [thought] = answer.content;
    expect(thought).toMatchObject({ type: "thinking", thinking: "Hm, a.txt." });
    expect(thought.signature).not.toBe("");
    const next = {
      ...body,
      messages: [
        ...body.messages,
        { role: "assistant", content: JSON.parse(JSON.stringify(answer.content)) },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "A" }] },
      ],
    };
    const echo = toChat(next, thoughtful).body["messages"].at(-2);
    expect(echo).toMatchObject({ role: "assistant", reasoning_content: "Hm, a.txt." });
    // The same conversation, moved to Anthropic, where unsigned reasoning is an error.
    const moved = encodeOutgoing(
      client,
      server.decodeRequest(next as never, "generate") as ChatRequest,
      createCallContext(),
    );
    expect(JSON.stringify(moved.body)).not.toContain('"thinking":"Hm');
  });
});

describe("a chat client's tools in this protocol", () => {
  const grammar = { syntax: "lark", definition: "start: /.+/" };
  const custom = {
    model: "m",
    max_completion_tokens: 50,
    messages: [{ role: "user", content: "x" }],
    tools: [
      { type: "custom", custom: { name: "apply_patch", format: { type: "grammar", grammar } } },
      { type: "function", function: { name: "files.read", parameters: { type: "object" } } },
    ],
  };

  test("free text is wrapped in a string and restored", () => {
    const { body, losses } = toMessages(custom);
    const [wrapped] = body["tools"];
    expect(wrapped.description).toContain("start: /.+/");
    expect(losses.map((l) => l.code)).toContain("custom_tool_wrapped");
    const events = heard(
      say("").call("apply_patch", { input: '*** "Begin"\n+1' }, "c1"),
      "messages",
    );
    const answer = chat.server.encodeResponse(
      collectResponse(events),
      createResponseContext({ body: custom as never }),
    ) as any;
    expect(answer.choices[0].message.tool_calls).toEqual([
      { id: "c1", type: "custom", custom: { name: "apply_patch", input: '*** "Begin"\n+1' } },
    ]);
    const stream = encodeText(
      chat.server as never,
      events,
      createResponseContext({ stream: true, body: custom as never }),
    );
    const pieces = [...stream.matchAll(/"custom":\{[^}]*"input":("(?:[^"\\]|\\.)*")/g)];
    expect(pieces.map(([, piece]) => JSON.parse(piece!)).join("")).toBe('*** "Begin"\n+1');
  });

  test("a name that is invalid in this protocol is restored in the response", () => {
    const fitted = toMessages(custom).body["tools"][1].name;
    expect(fitted).toMatch(/^[a-zA-Z0-9_-]+$/);
    const events = heard(say("").call(fitted, {}, "c1"), "messages");
    const answer = chat.server.encodeResponse(
      collectResponse(events),
      createResponseContext({ body: custom as never }),
    ) as any;
    expect(answer.choices[0].message.tool_calls[0].function.name).toBe("files.read");
  });

  test("a name that is too long for chat is restored too", () => {
    const name = "mcp__a_server_with_a_long_name__and_a_tool_with_a_longer_name_still_than_that";
    const body = {
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user", content: "x" }],
      tools: [{ name, input_schema: { type: "object" } }],
    };
    const fitted = toChat(body).body["tools"][0].function.name;
    expect(fitted.length).toBeLessThanOrEqual(64);
    const events = heard(say("").call(fitted, {}, "c1"), "chat-completions");
    const answer = server.encodeResponse(
      collectResponse(events),
      createResponseContext({ body: body as never }),
    ) as any;
    expect(answer.content[0].name).toBe(name);
  });
});

// Requests of other protocols: what this wire cannot say is refused or declared, cell by cell.
import { describe, expect, test } from "vitest";
import type { Block, ChatRequest } from "../../../src/model/request.ts";
import { seal } from "../../../src/protocols/envelope.ts";
import { messages, type Dialect } from "../../../src/protocols/messages/index.ts";
import { asking } from "../../../src/testing/asking.ts";
import { freeze } from "../../../src/testing/freeze.ts";
import { asked, decode, encode, f, refusal } from "./asked.ts";

describe("what is lost is declared", () => {
  test.each<[string, Partial<ChatRequest>, string, object]>([
    ["no bound", { output: {} }, "max_tokens_defaulted", { max_tokens: 8192 }],
    [
      "a warm temperature",
      { sampling: { temperature: 1.7 } },
      "temperature_clamped",
      { temperature: 1 },
    ],
    ["a presence penalty", { sampling: { presence: 1 } }, "presence_penalty", {}],
    ["a frequency penalty", { sampling: { frequency: 1 } }, "frequency_penalty", {}],
    ["a seed", { sampling: { seed: 7 } }, "seed", {}],
    ["a logit bias", { sampling: { logitBias: { "1": 2 } } }, "logit_bias", {}],
    ["a verbosity", { output: { maxTokens: 100, verbosity: "low" } }, "verbosity", {}],
    ["metadata", { metadata: { a: "b" } }, "metadata", {}],
    ["a cache key", { cache: { key: "k" } }, "prompt_cache_key", {}],
    ["another tier", { tier: "flex" }, "service_tier", {}],
    ["what only another protocol knows", { ext: { other: { prediction: 1 } } }, "prediction", {}],
    ["a personal user", { user: "jo@example.com" }, "user_hashed", {}],
    [
      "a free tool",
      { tools: [{ type: "custom", name: "run" }] },
      "custom_tool_wrapped",
      { tools: [{ name: "run", input_schema: { required: ["input"] } }] },
    ],
    [
      "a choice of several",
      {
        tools: [f, { ...f, name: "g" }, { ...f, name: "h" }],
        toolChoice: { names: ["f", "g"], must: true },
      },
      "tools_filtered",
      { tools: [{ name: "f" }, { name: "g" }], tool_choice: { type: "any" } },
    ],
    [
      "JSON without a schema",
      { output: { maxTokens: 1, format: { type: "json" } } },
      "json_by_instruction",
      { system: expect.stringContaining("JSON object") },
    ],
    [
      "a system turn",
      {
        turns: [
          ...asked().turns,
          { role: "system", blocks: [{ type: "text", text: "Now in French." }] },
        ],
      },
      "system_moved",
      {
        messages: [
          {
            role: "user",
            content: [
              { text: "Hi" },
              { text: "<system-reminder>\nNow in French.\n</system-reminder>" },
            ],
          },
        ],
      },
    ],
    [
      "another vendor's web search",
      {
        tools: [
          {
            type: "hosted",
            name: "web_search",
            origin: "responses",
            raw: { filters: { allowed_domains: ["a.b"] } },
          },
        ],
      },
      "tools.web_search",
      { tools: [{ type: "web_search_20250305", allowed_domains: ["a.b"] }] },
    ],
    [
      "an image's detail",
      {
        turns: [
          {
            role: "user",
            blocks: [{ type: "image", media: { url: "https://e.com/a.png" }, detail: "high" }],
          },
        ],
      },
      "image_url.detail",
      {},
    ],
    [
      "a refusal in the history",
      {
        turns: [
          ...asked().turns,
          { role: "assistant", blocks: [{ type: "refusal", text: "No." }] },
          ...asked().turns,
        ],
      },
      "refusal_as_text",
      {},
    ],
    [
      "another vendor's citation",
      {
        turns: [
          {
            role: "assistant",
            blocks: [{ type: "text", text: "x", citations: [{ type: "url_citation" }] }],
          },
          ...asked().turns,
        ],
      },
      "citations",
      {},
    ],
  ])("%s", (_what, more, code, body) => {
    const sent = encode(asked(more));
    expect(sent.losses.map((l) => [l.code, l.field]).flat()).toContain(code);
    expect(sent.body).toMatchObject(body);
    // Strict: the same loss is an error.
    const strict = asking({ model: "m" }, true);
    expect(() => messages().client!.request(freeze(asked(more)), strict)).toThrow();
  });

  test("bookkeeping is no loss", () => {
    expect(encode(asked({ state: { store: true }, tier: "default", user: "u1" }))).toMatchObject({
      losses: [],
      body: { service_tier: "standard_only", metadata: { user_id: "u1" } },
    });
  });
});

describe("what would be another request is refused", () => {
  const turn = (block: Block, role: "user" | "assistant" = "user") => ({
    turns: [{ role, blocks: [block] }, ...asked().turns],
  });
  test.each<[string, Partial<ChatRequest>, string]>([
    ["several answers", { sampling: { n: 2 } }, "n"],
    ["log probabilities", { sampling: { logprobs: 2 } }, "logprobs"],
    ["a voice", { output: { modalities: ["text", "audio"] } }, "modalities"],
    ["a stored conversation", { state: { previousId: "resp_1" } }, "previous_response_id"],
    ["another one", { state: { conversation: "conv_1" } }, "conversation"],
    ["work in the background", { state: { background: true } }, "background"],
    ["sound", turn({ type: "audio", media: { base64: "AA==", mime: "audio/wav" } }), "messages.0"],
    ["video", turn({ type: "video", media: { url: "https://e.com/v" } }), "messages.0"],
    [
      "a bitmap",
      turn({ type: "image", media: { base64: "AA==", mime: "image/bmp" } }),
      "messages.0",
    ],
    [
      "an image by the assistant",
      turn({ type: "image", media: { url: "https://e" } }, "assistant"),
      "messages.0",
    ],
    [
      "another's file",
      turn({ type: "document", media: { fileId: "f", origin: "responses" } }),
      "messages.0",
    ],
    [
      "a spreadsheet",
      turn({ type: "document", media: { base64: "AA==", mime: "text-x/xls" } }),
      "messages.0",
    ],
    ["what only its maker knows", turn({ type: "opaque", origin: "other", raw: {} }), "messages.0"],
    [
      "another's hosted tool",
      { tools: [{ type: "hosted", name: "file_search", origin: "responses" }] },
      "tools",
    ],
    ["two tools of one name", { tools: [f, { ...f, description: "other" }] }, "tools"],
    [
      "arguments that are no object",
      turn({ type: "call", id: "c", name: "f", tool: "function", args: "{'a'" }, "assistant"),
      "messages.0",
    ],
    [
      "nothing to say",
      { turns: [{ role: "user", blocks: [{ type: "text", text: "" }] }] },
      "messages",
    ],
    [
      "an image as system prompt",
      { instructions: [{ type: "image", media: { url: "https://e" } }] },
      "system",
    ],
  ])("%s", (_what, more, param) => {
    expect(refusal(() => encode(asked(more)))).toMatchObject({ kind: "unsupported", param });
  });

  test("a schema, where the model is known to take none", () => {
    const r = asked({ output: { format: { type: "schema", schema: {} } } });
    expect(refusal(() => encode(r, {}, { info: { can: { json_schema: false } } })).param).toBe(
      "response_format",
    );
  });
});

describe("turns", () => {
  test("what several tools answered stands together and first", () => {
    const { body } = encode(
      asked({
        turns: [
          {
            role: "assistant",
            blocks: [
              { type: "call", id: "a", name: "f", tool: "function", args: "" },
              { type: "call", id: "b|2", name: "f", tool: "function", args: '{"x":1}' },
            ],
          },
          {
            role: "tool",
            blocks: [
              {
                type: "result",
                callId: "a",
                blocks: [{ type: "text", text: "1" }],
                isError: false,
              },
            ],
          },
          { role: "user", blocks: [{ type: "text", text: "wait" }] },
          { role: "tool", blocks: [{ type: "result", callId: "b|2", blocks: [], isError: true }] },
        ],
      }),
    );
    const [assistant, user] = body["messages"];
    expect(assistant.content.map((c: any) => c.input)).toEqual([{}, { x: 1 }]);
    expect(user.content).toEqual([
      { type: "tool_result", tool_use_id: "a", content: "1" },
      { type: "tool_result", tool_use_id: assistant.content[1].id, is_error: true },
      { type: "text", text: "wait" },
    ]);
    expect(assistant.content[1].id).toMatch(/^[a-zA-Z0-9_-]+$/);
  });

  test("large numbers in arguments keep their digits", () => {
    const args = '{"channel":1234567890123456789,"n":1.5}';
    const { body } = encode(
      asked({
        turns: [
          {
            role: "assistant",
            blocks: [{ type: "call", id: "a", name: "f", tool: "function", args }],
          },
        ],
      }),
    );
    expect(JSON.stringify(body)).toContain(`"input":${args}`);
  });

  test("images and documents", () => {
    const { body } = encode(
      asked({
        turns: [
          {
            role: "user",
            blocks: [
              { type: "image", media: { mime: "image/jpg", base64: "/9j/" } },
              { type: "document", media: { mime: "text/plain", base64: "aGk=" }, title: "a.txt" },
              { type: "document", media: { mime: "application/pdf", bytes: Buffer.from("%PDF-") } },
            ],
          },
        ],
      }),
    );
    expect(body["messages"][0].content.map((b: any) => b.source)).toEqual([
      { type: "base64", media_type: "image/jpeg", data: "/9j/" },
      { type: "text", media_type: "text/plain", data: "hi" },
      { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
    ]);
  });
});

describe("proofs", () => {
  const thought = (origin: string, kind = "signature"): Block => ({
    type: "reasoning",
    text: "Hm.",
    proof: { origin, kind, data: "S" },
  });
  const history = (block: Block) =>
    asked({
      turns: [
        { role: "assistant", blocks: [block, { type: "text", text: "Hi." }] },
        ...asked().turns,
      ],
    });
  const first = (r: ChatRequest, dialect: Dialect = {}) =>
    encode(r, dialect).body["messages"][0].content[0];

  test("go back to who made them", () => {
    expect(first(history(thought("messages")))).toEqual({
      type: "thinking",
      thinking: "Hm.",
      signature: "S",
    });
    expect(first(history(thought("messages", "redacted")))).toEqual({
      type: "redacted_thinking",
      data: "S",
    });
    expect(first(history(thought("moonshot")), { signer: "moonshot" }).signature).toBe("S");
  });

  test("and to nobody else, without a word: that is what a change of model means", () => {
    for (const r of [history(thought("responses")), history({ type: "reasoning", text: "Hm." })]) {
      expect(first(r)).toEqual({ type: "text", text: "Hi." });
      expect(encode(r).losses).toEqual([]);
    }
  });

  test("unsigned thoughts go to those who sign none", () => {
    const r = history({ type: "reasoning", text: "Hm." });
    expect(first(r, { unsigned: true })).toMatchObject({ thinking: "Hm.", signature: "" });
  });

  test("another's proof rides in the envelope and comes out of it", () => {
    const proof = { origin: "responses", kind: "encrypted", data: "E", itemId: "rs_1" };
    const { turns } = decode({
      model: "m",
      max_tokens: 1,
      messages: [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Sum.", signature: seal({ proof, summary: true }) },
            { type: "tool_use", id: "c", name: "f", input: {} },
            { type: "redacted_thinking", data: seal({ proof, of: "call" }) },
          ],
        },
      ],
    });
    expect(turns[0]!.blocks).toEqual([
      { type: "reasoning", summary: ["Sum."], proof },
      { type: "call", id: "c", name: "f", tool: "function", args: "{}", proof },
    ]);
  });

  test("an envelope that was tampered with is nobody's proof", () => {
    for (const signature of ["tg1.", "tg1.!!!", "tg1.bnVsbA", `tg1.${"A".repeat(40)}`]) {
      const { turns } = decode({
        model: "m",
        max_tokens: 1,
        messages: [
          { role: "assistant", content: [{ type: "thinking", thinking: "x", signature }] },
        ],
      });
      expect(encode(asked({ turns })).losses).toEqual([]);
    }
  });
});

test("cache marks of others become this wire's own", () => {
  const blocks = ["5m", "1h", "30m", undefined].map((ttl): Block => ({
    type: "text",
    text: "x",
    cache: { mode: "explicit", ...(ttl && { ttl }) },
  }));
  const { body, losses } = encode(asked({ turns: [{ role: "user", blocks }] }));
  expect(body["messages"][0].content.map((b: any) => b.cache_control)).toEqual([
    { type: "ephemeral" },
    { type: "ephemeral", ttl: "1h" },
    { type: "ephemeral", ttl: "1h" },
    { type: "ephemeral" },
  ]);
  expect(losses.map((l) => l.field)).toEqual(["cache_control.ttl"]);
});

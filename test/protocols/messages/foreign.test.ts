// Requests of other protocols: content that this protocol cannot express is rejected or reported,
// case by case.
import { describe, expect, test } from "vitest";
import type { Block, ChatRequest } from "../../../src/model/request.ts";
import { messages } from "../../../src/protocols/messages/index.ts";
import { createCallContext } from "../../../src/testing/codec-contexts.ts";
import { deepFreeze } from "../../../src/testing/freeze.ts";
import { asked, encode, f, refusal } from "./asked.ts";

describe("a dropped field is reported", () => {
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
    const strict = createCallContext({ model: "m" }, true);
    expect(() => messages().client!.encodeRequest(deepFreeze(asked(more)), strict)).toThrow();
  });

  test("bookkeeping is not reported", () => {
    expect(encode(asked({ state: { store: true }, tier: "default", user: "u1" }))).toMatchObject({
      losses: [],
      body: { service_tier: "standard_only", metadata: { user_id: "u1" } },
    });
  });
});

describe("a field that changes the request is rejected", () => {
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

  test("a schema, if the model supports none", () => {
    const r = asked({ output: { format: { type: "schema", schema: {} } } });
    expect(refusal(() => encode(r, {}, { info: { can: { json_schema: false } } })).param).toBe(
      "response_format",
    );
  });
});

// The history: turns, media, proofs, and cache marks in this protocol.
import { describe, expect, test } from "vitest";
import type { Block, ChatRequest } from "../../../src/model/request.ts";
import { seal } from "../../../src/protocols/proof-envelope.ts";
import type { MessagesDialect } from "../../../src/protocols/messages/index.ts";
import { asked, decode, encode } from "./asked.ts";

describe("turns", () => {
  test("results of several tools are together and first", () => {
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
  const first = (r: ChatRequest, dialect: MessagesDialect = {}) =>
    encode(r, dialect).body["messages"][0].content[0];

  test("are sent back to their creator", () => {
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

  test("and to no other provider, without a warning, because this happens when the model changes", () => {
    for (const r of [history(thought("responses")), history({ type: "reasoning", text: "Hm." })]) {
      expect(first(r)).toEqual({ type: "text", text: "Hi." });
      expect(encode(r).losses).toEqual([]);
    }
  });

  test("unsigned reasoning is sent to backends that do not sign", () => {
    const r = history({ type: "reasoning", text: "Hm." });
    expect(first(r, { acceptsUnsignedThinking: true })).toMatchObject({
      thinking: "Hm.",
      signature: "",
    });
  });

  test("another provider's proof is kept in an envelope and restored", () => {
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
            { type: "redacted_thinking", data: seal({ proof, precedingBlock: "call" }) },
          ],
        },
      ],
    });
    expect(turns[0]!.blocks).toEqual([
      { type: "reasoning", summary: ["Sum."], proof },
      { type: "call", id: "c", name: "f", tool: "function", args: "{}", proof },
    ]);
  });

  test("a modified envelope is not a proof", () => {
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

test("cache marks of other protocols become this protocol's own", () => {
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

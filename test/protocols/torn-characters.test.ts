// A character that upstream split in two is joined, and an incomplete one is replaced.
import { describe, expect, it } from "vitest";
import { collectResponse, type ModelEvent } from "tollgate/plugin";
import { createResponseContext, encodeText } from "tollgate/testing";
import { chats } from "./generators/codecs.ts";
import { wireEvents } from "./wire/events.ts";

const answer = (texts: readonly string[]): ModelEvent[] => [
  { type: "start" },
  { type: "open", index: 0, block: { type: "text" } },
  { type: "open", index: 1, block: { type: "call", id: "c", name: "f", tool: "function" } },
  ...texts.flatMap((text): ModelEvent[] => [
    { type: "delta", index: 0, text },
    { type: "delta", index: 1, text },
  ]),
  { type: "close", index: 0 },
  { type: "close", index: 1 },
  { type: "usage", usage: { input: 1, output: 1 } },
  { type: "finish", reason: "tool_calls" },
];

describe.each(Object.keys(chats))("in a non-streaming response of %s", (wire) => {
  const told = (...texts: string[]) =>
    JSON.stringify(
      chats[wire]!.server!.encodeResponse(
        collectResponse(answer(texts)) as never,
        createResponseContext({ stream: false }),
      ),
    );

  it("two surrogate halves form one character, in text and in arguments", () => {
    const text = told('{"a":"b\ud83c', '\udf0dc"}');
    expect(text.split("🌍").length - 1).toBeGreaterThanOrEqual(2);
    expect(text).not.toContain("\ufffd");
  });

  // JSON.stringify escapes malformed text, which parsers of other languages reject.
  it("a single half is replaced", () => {
    for (const torn of ['{"a":"\ud83c"}', '{"a":"\udf0d"}', '{"a":"\udf0d\ud83c"}']) {
      const text = told(torn);
      expect(text).toContain("\ufffd");
      expect(text).not.toMatch(/\\u[dD][89a-fA-F]/);
    }
  });
});

describe.each(Object.keys(chats))("in a stream of %s", (wire) => {
  const streamed = (...texts: string[]) =>
    wireEvents(
      encodeText(
        chats[wire]!.server as never,
        answer(texts),
        createResponseContext({ stream: true }),
      ),
    )
      .map(({ data }) => data)
      .join("\n");

  it("two surrogate halves form one character, in text and in arguments", () => {
    const text = streamed('{"a":"', "b\ud83c", '\udf0dc"}');
    expect(text.split("🌍").length - 1).toBeGreaterThanOrEqual(2);
    expect(text).not.toContain("\ufffd");
  });

  it("a single half is replaced", () => {
    expect(streamed('"a', "\ud83c")).toContain("\ufffd");
    expect(streamed('"a\udf0db"')).toContain("\ufffd");
  });
});

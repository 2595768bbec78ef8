// A response with an ID of 10 MB: neither the ledger nor the log contains it, and the client has
// its response.
import { describe, expect, it } from "vitest";
import type { Settle } from "tollgate/plugin";
import { boundMessage, BOUNDS } from "../../../src/lib/bounds.ts";
import { NIGHTLY, everyNth } from "../../kit/law-effort.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";

/** Longer than the bound of an event. */
const ID = "i".repeat(NIGHTLY ? 10_000_000 : BOUNDS.event.max + 1_000);
const event = (data: object, name = "") =>
  `${name && `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
const named = (...all: { type: string }[]) => all.map((data) => event(data, data.type)).join("");

const chunk = (more: object) =>
  event({ id: ID, object: "chat.completion.chunk", created: 1, model: "m", choices: [], ...more });
const message = {
  id: ID,
  type: "message",
  role: "assistant",
  model: "m",
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
};
const item = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Hello", annotations: [] }],
};
const response = {
  id: ID,
  object: "response",
  model: "m",
  status: "completed",
  output: [item],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
const place = { output_index: 0, content_index: 0, item_id: "msg_1" };
const generated = {
  responseId: ID,
  candidates: [
    { content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP", index: 0 },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
};

/** An upstream that responds with Hello and that ID, streaming and non-streaming. */
const SAYS: { readonly [wire: string]: readonly [whole: () => string, streamed: () => string] } = {
  "chat-completions": [
    () =>
      JSON.stringify({
        id: ID,
        object: "chat.completion",
        choices: [
          { index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    () =>
      chunk({ choices: [{ index: 0, delta: { content: "Hello" }, finish_reason: "stop" }] }) +
      chunk({ usage: { prompt_tokens: 1, completion_tokens: 1 } }) +
      "data: [DONE]\n\n",
  ],
  messages: [
    () => JSON.stringify({ ...message, content: [{ type: "text", text: "Hello" }] }),
    () =>
      named(
        { type: "message_start", message: { ...message, content: [], stop_reason: null } } as never,
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "text", text: "" },
        } as never,
        {
          type: "content_block_delta",
          index: 0,
          delta: { type: "text_delta", text: "Hello" },
        } as never,
        { type: "content_block_stop", index: 0 } as never,
        {
          type: "message_delta",
          delta: { stop_reason: "end_turn" },
          usage: { output_tokens: 1 },
        } as never,
        { type: "message_stop" },
      ),
  ],
  responses: [
    () => JSON.stringify(response),
    () =>
      named(
        {
          type: "response.created",
          response: { ...response, status: "in_progress", output: [] },
        } as never,
        {
          type: "response.output_item.added",
          output_index: 0,
          item: { ...item, status: "in_progress", content: [] },
        } as never,
        { type: "response.output_text.delta", ...place, delta: "Hello" } as never,
        { type: "response.output_item.done", output_index: 0, item } as never,
        { type: "response.completed", response } as never,
      ),
  ],
  gemini: [() => JSON.stringify(generated), () => event(generated)],
};
/** The text, in any number of chunks. */
const said = (text: string): string =>
  /Hello/.test(text)
    ? "Hello"
    : [...text.matchAll(/"text":"([^"]*)"/g)].map(([, piece]) => piece).join("");
const NAMES = Object.keys(SAYS).flatMap((wire) =>
  Object.keys(chats).flatMap((from) =>
    [true, false].map((stream) => [wire, from, stream] as const),
  ),
);

describe("an ID of 10 MB", () => {
  it.each(everyNth(3, NAMES, 0))(
    "of %s to a client of %s, streamed: %s",
    async (wire, from, stream) => {
      await using up = await startBackend((_req, res) => {
        const type = stream ? "text/event-stream" : "application/json";
        res.writeHead(200, { "content-type": type }).end(SAYS[wire]![stream ? 1 : 0]());
      });
      await using s = await startTestServices({
        frontend: chats[from]!,
        providers: {
          p: { endpoints: [{ protocol: chats[wire]!, base: up.base, auth: "none" as const }] },
        },
      });
      const got = await s.ask({ model: "p/m", stream, ...LEAST[from] });
      const text = await got.text();
      // Its events contain text and are small: an event this large is not read, and its client gets
      // an error.
      if (stream && wire === "chat-completions")
        expect(text.slice(-1_000)).toContain(boundMessage("event"));
      else expect([got.status, said(text)]).toEqual([200, "Hello"]);
      const settles = s.journal.filter((c) => c.do === "settle") as Settle[];
      expect(settles.map(({ upstreamId }) => upstreamId)).toEqual([undefined]);
      const kept = JSON.stringify([s.journal, s.log], (_, v: unknown) =>
        typeof v === "bigint" ? `${v}` : v,
      );
      expect(kept).not.toContain("iiiiiiii");
      expect(kept.length).toBeLessThan(10_000);
    },
  );
});

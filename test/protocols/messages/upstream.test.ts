import { describe, expect, test } from "vitest";
import * as fc from "fast-check";
import { collectResponse } from "../../../src/model/response-collector.ts";
import { mergeUsage, type Usage } from "../../../src/model/usage.ts";
import { createResponseContext, createCallContext } from "../../../src/testing/codec-contexts.ts";
import { splitChunks } from "../../../src/testing/upstream/script-pieces.ts";
import {
  decode,
  decodeWhole,
  encodeText,
  comparableContent,
  runRelay,
} from "../../../src/testing/codec.ts";
import type { ModelEvent } from "../../../src/model/event.ts";
import { client, server, streams, wholes } from "./recorded.ts";
import { everyNth, trialCount } from "../../kit/law-effort.ts";

const of = createCallContext({ stream: true });
const to = createResponseContext({ stream: true, model: "anthropic/claude-sonnet-5" });

const usageOf = (events: readonly ModelEvent[]): Usage =>
  events.reduce((u, e) => (e.type === "usage" ? mergeUsage(u, e.usage) : u), {} as Usage);

describe.each(streams.map((r) => [r.name, r] as const))("the stream %s", (_name, recording) => {
  const { body } = recording;
  const events = decode(client, [body], of);
  const places = Array.from({ length: body.length - 1 }, (_, i) => i + 1);
  const cuts = everyNth(4, places, body.length);

  test("has the same content for any chunks", () => {
    for (const at of cuts)
      expect(decode(client, [body.subarray(0, at), body.subarray(at)], of)).toEqual(events);
    expect(decode(client, splitChunks([body], "bytes"), of)).toEqual(events);
  });

  test("is forwarded unchanged for any chunks", () => {
    const whole = runRelay(client, [body], to);
    for (const at of cuts) {
      const other = runRelay(client, [body.subarray(0, at), body.subarray(at)], to);
      expect(other.bytes.equals(whole.bytes), `cut at ${at}`).toBe(true);
      expect(other.usage).toEqual(whole.usage);
    }
    fc.assert(
      fc.property(fc.integer({ min: 0 }), fc.integer({ min: 1, max: 200 }), (seed, max) => {
        expect(
          runRelay(client, splitChunks([body], { seed, max }), to).bytes.equals(whole.bytes),
        ).toBe(true);
      }),
      { numRuns: trialCount(50) },
    );
  });

  test("passthrough and decoder report the same facts", () => {
    const tapped = runRelay(client, [body], to);
    const start = events.find((e) => e.type === "start");
    const finish = events.find((e) => e.type === "finish");
    expect(tapped.usage).toEqual(usageOf(events));
    expect(tapped.id).toEqual(start?.id);
    // A decoder has seen the blocks. Passthrough only has the stop reason.
    if (finish?.reason !== "tool_calls") expect(tapped.finish).toEqual(finish?.reason);
  });

  test("forwarded and decoded, it keeps its content", () => {
    const passed = runRelay(client, [body], to);
    const again = decode(client, [passed.bytes], of);
    const named = again.map((e) => ("model" in e && e.model ? { ...e, model: "x" } : e));
    const before = events.map((e) => ("model" in e && e.model ? { ...e, model: "x" } : e));
    expect(named).toEqual(before);
    expect(again.find((e) => e.type === "start")?.model).toBe(to.model);
  });

  test("only the terminal event waits for the finish, and content waits for nothing", () => {
    const passed = runRelay(client, splitChunks([body], "bytes"), to);
    const tail = passed.bytes.subarray(passed.finishOffset).toString();
    expect(tail).toMatch(/^event: message_stop\r?\ndata: /);
    const held = passed.bytes.subarray(0, passed.firstContentOffset).toString();
    expect(held).not.toContain("content_block_delta");
  });

  test("translated to its own protocol, it keeps its content", () => {
    const again = decode(client, [Buffer.from(encodeText(server, events, to))], of);
    expect(comparableContent(again)).toEqual(comparableContent(events));
  });

  test("a stream that is truncated at any byte is an error", () => {
    const end = Buffer.from(body.toString("latin1")).indexOf("stop_reason", 600);
    for (let at = 0; at < end; at += 7) {
      expect(() => decode(client, [body.subarray(0, at)], of)).toThrow();
      expect(() => runRelay(client, [body.subarray(0, at)], to)).toThrow();
    }
  });
});

test("only the model's name changes, byte for byte", () => {
  for (const { name, body, headers } of streams) {
    if (name === "no-event-lines" || name === "crlf") continue;
    const expected = body
      .toString()
      .replace(/("role":"assistant","model":)"[^"]*"/, `$1"${to.model}"`);
    expect(headers["content-type"]).toContain("event-stream");
    expect(runRelay(client, [body], to).bytes.toString()).toBe(expected);
  }
});

test("an unchanged chunk is forwarded as the same Buffer", () => {
  const [first, ...others] = streams
    .find((r) => r.name === "text")!
    .body.toString()
    .split("\n\n");
  const out: Buffer[] = [];
  const tap = client.createPassthrough!(
    {
      setContentType() {},
      write: (b) => out.push(b),
      reportContent() {},
      reportStart() {},
      reportUsage() {},
      reportFinish() {},
    },
    to,
    {},
  );
  tap.push(Buffer.from(`${first}\n\n`));
  const chunk = Buffer.from(`${others.slice(0, 3).join("\n\n")}\n\n`);
  out.length = 0;
  tap.push(chunk);
  expect(out).toHaveLength(1);
  expect(out[0]).toBe(chunk);
});

test("events without a name get one, because SDKs ignore them otherwise", () => {
  const { body } = streams.find((r) => r.name === "no-event-lines")!;
  const text = runRelay(client, [body], to).bytes.toString();
  for (const block of text.trimEnd().split("\n\n")) {
    const [name, data] = block.split("\n");
    expect(name).toBe(`event: ${JSON.parse(data!.slice(6)).type}`);
  }
  expect(text).not.toContain("[DONE]");
});

test("an end with a name but no data is completed", () => {
  const { body } = streams.find((r) => r.name === "text")!;
  const unsaid = body.subarray(0, body.indexOf("event: message_stop"));
  const passed = runRelay(client, [unsaid], to);
  expect(passed.bytes.toString()).toMatch(/message_stop"}\n\n$/);
  expect(passed.finish).toBe("stop");
  expect(decode(client, [unsaid], of).at(-1)).toEqual({ type: "finish", reason: "stop" });
});

test.each([
  ["no data", "\n"],
  ["data that is no JSON", 'data: {"type":"messa/**/ge_stop"\n\n'],
  ["half of its data", 'data: {"type":"message_stop"\n\n'],
  ["no name in its data", "data: {}\n\n"],
  ["another event's data", 'data: {"type":"content_block_stop","index":0}\n\n'],
])("an end whose event has %s is encoded again, because clients read its data", (_what, data) => {
  const { body } = streams.find((r) => r.name === "text")!;
  const before = body.subarray(0, body.indexOf("event: message_stop"));
  const said = Buffer.concat([before, Buffer.from(`event: message_stop\n${data}`)]);
  const good = runRelay(client, [before], to);
  expect(runRelay(client, [said], to)).toEqual(good);
  expect(good.bytes.toString()).toMatch(/data: {"type":"message_stop"}\n\n$/);
  // Without an end of the response, the event's name alone does not create one.
  const early = before.subarray(0, before.indexOf("event: message_delta"));
  const cut = Buffer.concat([early, Buffer.from(`event: message_stop\n${data}`)]);
  expect(() => runRelay(client, [cut], to)).toThrow(/ended before its response was complete/);
});

test("nothing follows the end", () => {
  const { body } = streams.find((r) => r.name === "text")!;
  const twice = Buffer.concat([body, body]);
  expect(runRelay(client, [twice], to).bytes).toEqual(runRelay(client, [body], to).bytes);
  expect(decode(client, [twice], of)).toEqual(decode(client, [body], of));
});

test("output is not reported before it is known: a truncated stream would be billed by its placeholder", () => {
  const { body } = streams.find((r) => r.name === "text")!;
  const events: ModelEvent[] = [];
  client.createDecoder((e) => void events.push(e), of, {}).push(body.subarray(0, 700));
  expect(usageOf(events)).toEqual({
    input: 14,
    cache_read: 0,
    cache_write_5m: 0,
    cache_write_1h: 0,
  });
});

describe("usage", () => {
  const used = (name: string) =>
    usageOf(decode(client, [streams.find((r) => r.name === name)!.body], of));

  test("units do not overlap, and cache writes keep the lifetime from the first event", () => {
    expect(used("caches")).toEqual({
      input: 100,
      cache_read: 900,
      cache_write_5m: 150,
      cache_write_1h: 50,
      output: 100,
      reasoning: 60,
    });
  });

  test("searches are counted", () => expect(used("web-search")).toMatchObject({ searches: 1 }));

  test("tokens of a compaction are added to the message's own", () =>
    expect(used("compacted")).toMatchObject({ input: 9500, output: 403 }));

  test("a fallback's tokens are billed for the fallback's model", () => {
    const { body } = streams.find((r) => r.name === "text")!;
    const usage = {
      input_tokens: 7,
      output_tokens: 5,
      iterations: [
        { type: "message", model: "claude-sonnet-5", input_tokens: 14, output_tokens: 1 },
        { type: "fallback_message", model: "claude-haiku-5-5", input_tokens: 7, output_tokens: 5 },
      ],
    };
    const text = body
      .toString()
      .replace(/"usage":\{"input_tokens":14[^}]*null\}\}\n\nevent: message_stop/, () => {
        return `"usage":${JSON.stringify(usage)}}\n\nevent: message_stop`;
      });
    const bills = decode(client, [Buffer.from(text)], of).filter((e) => e.type === "usage");
    expect(bills.at(-1)).toMatchObject({
      model: "claude-haiku-5-5",
      usage: { input: 7, output: 5 },
    });
    expect(bills.at(-2)).toMatchObject({ model: "claude-sonnet-5", usage: { output: 1 } });
  });
});

describe("blocks", () => {
  const folded = (name: string) =>
    collectResponse(decode(client, [streams.find((r) => r.name === name)!.body], of)).blocks;

  test("parallel calls keep their arguments exactly", () => {
    expect(folded("parallel-tools")).toEqual([
      {
        type: "reasoning",
        text: "",
        proof: { origin: "messages", kind: "signature", data: "EqQBOnlyASignature==" },
      },
      {
        type: "call",
        id: "toolu_a",
        name: "get_weather",
        tool: "function",
        args: '{"city":"Oslo"}',
      },
      {
        type: "call",
        id: "toolu_b",
        name: "get_weather",
        tool: "function",
        args: '{"city":"Rome","id":12345678901234567890}',
      },
      { type: "call", id: "toolu_c", name: "get_time", tool: "function", args: "{}" },
    ]);
  });

  test("blocks of newer types are kept complete", () => {
    expect(folded("newer-than-us")[0]).toEqual({
      type: "opaque",
      origin: "messages",
      raw: { type: "hologram", shape: "cube", note: "model-a", vertices: [1, 2, 3] },
    });
  });

  test("hosted tools and their results are kept complete", () => {
    expect(folded("web-search").map((b) => b.type)).toEqual(["text", "opaque", "opaque", "text"]);
    expect(folded("web-search")[1]).toMatchObject({
      raw: { type: "server_tool_use", input: { query: "new" } },
    });
  });
});

describe.each(wholes.map((r) => [r.name, r] as const))(
  "the non-streaming response %s",
  (_name, { body }) => {
    test("is forwarded with only its model's name changed", () => {
      const passed = runRelay(
        client,
        [body],
        createResponseContext({ model: "anthropic/claude-sonnet-5" }),
      );
      const text = body.toString();
      const own = JSON.stringify(JSON.parse(text).model);
      expect(passed.bytes.toString()).toBe(text.replace(own, '"anthropic/claude-sonnet-5"'));
      expect(passed.usage).toEqual(usageOf(decodeWhole(client, body, createCallContext())));
    });

    test("translated to its own protocol, it keeps its content", () => {
      const events = decodeWhole(client, body, createCallContext());
      const again = server.encodeResponse(collectResponse(events), createResponseContext());
      const twice = decodeWhole(client, Buffer.from(JSON.stringify(again)), createCallContext());
      expect(comparableContent(twice)).toEqual(comparableContent(events));
    });
  },
);

test("stream and non-streaming form of a message give the same events", () => {
  const whole = decodeWhole(
    client,
    wholes.find((r) => r.name === "whole")!.body,
    createCallContext(),
  );
  const stream = decode(client, [streams.find((r) => r.name === "thinking-tool")!.body], of);
  const blocks = (events: ModelEvent[]) => collectResponse(events).blocks.map((b) => b.type);
  expect(blocks(whole)).toEqual(blocks(stream));
  expect(collectResponse(whole).usage).toEqual(collectResponse(stream).usage);
  expect(collectResponse(whole).finish).toEqual(collectResponse(stream).finish);
});

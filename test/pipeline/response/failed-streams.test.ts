// A stream that fails after its headers is a failure for every client program: for the official
// SDKs, and for a program that reads to the end. Every kind of failure, before and after content,
// in both modes.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { expect, test } from "vitest";
import type { ServerResponse } from "node:http";
import type { Fault, ModelEvent } from "tollgate/plugin";
import { createResponseContext, encodeText } from "tollgate/testing";
import { installTestClock } from "../../kit/clock.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";

/** Part of a response before its failure: its start, or nothing that a client could read. */
const HALF: readonly ModelEvent[] = [
  { type: "start", id: "up1", model: "up" },
  { type: "open", index: 0, block: { type: "text" } },
  { type: "delta", index: 0, text: "Half of it" },
];
const to = createResponseContext({ stream: true });
const half = (wire: string) => encodeText(chats[wire]!.server!, HALF, to);
function failure(wire: string): string {
  let out = "";
  const encoder = chats[wire]!.server!.createEncoder((piece) => void (out += piece), to);
  encoder.writeFault({ kind: "upstream", message: "The model broke." });
  return out;
}

const more = (wire: string, text: string) =>
  encodeText(chats[wire]!.server!, [...HALF.slice(0, 2), { type: "delta", index: 0, text }], to);

/** How the upstream's response ends. */
const ROADS: { readonly [name: string]: (res: ServerResponse, wire: string) => void } = {
  reset: (res) => void res.destroy(),
  "too-soon": (res) => void res.end(),
  error: (res, wire) => void res.end(failure(wire)),
  "no-json": (res) => void res.end("data: {oops\n\n"),
  "hook-throws": (res, wire) => void res.end(more(wire, "THROW ")),
  "hook-stops": (res, wire) => void res.end(more(wire, "STOP ")),
  silence() {},
};

/** A guard that watches the text. */
const guard = {
  watch: (_call: unknown, stop: (fault: Fault) => void) => (event: ModelEvent) => {
    const text = event.type === "delta" ? event.text : "";
    if (text.includes("THROW")) throw new Error("A hook threw.");
    if (text.includes("STOP")) stop({ kind: "content_policy", message: "Stopped." });
  },
};

/** Reads the gateway's response to the end. Throws if the client detects a failure. */
type Fetch = (input: unknown, init: RequestInit | undefined) => Promise<Response>;
const READS: { readonly [id: string]: (ask: Fetch, road: string) => Promise<unknown> } = {
  "chat-completions": async (ask, road) => {
    const client = new OpenAI({ apiKey: "k", maxRetries: 0, fetch: ask as never });
    const stream = await client.chat.completions.create({ ...asked(road), ...CHAT, stream: true });
    for await (const _ of stream);
  },
  responses: async (ask, road) => {
    const client = new OpenAI({ apiKey: "k", maxRetries: 0, fetch: ask as never });
    const stream = await client.responses.create({ ...asked(road), input: "Hi", stream: true });
    let last = "";
    for await (const event of stream) last = event.type;
    if (last === "response.failed") throw new Error(last);
    return last;
  },
  messages: async (ask, road) => {
    const client = new Anthropic({ apiKey: "k", maxRetries: 0, fetch: ask as never });
    const stream = await client.messages.create({
      ...asked(road),
      ...CHAT,
      max_tokens: 9,
      stream: true,
    });
    for await (const _ of stream);
  },
  // Several of its clients ignore an error event: only a broken connection is a failure for all of
  // them.
  gemini: async (ask, road) => {
    const res = await ask("", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...LEAST["gemini"], ...asked(road), stream: true }),
    });
    await res.text();
  },
};
const CHAT = { messages: [{ role: "user" as const, content: "Hi" }] };
const asked = (road: string) => ({ model: `p/${road}` });

const pairs = Object.keys(chats).flatMap((client) =>
  [client, client === "messages" ? "responses" : "messages"].flatMap((wire) =>
    ["before", "after"].map((when) => [client, wire, when] as const),
  ),
);

test.each(pairs)(
  "%s, an upstream of %s: no client takes a stream that fails %s content for a complete response",
  async (client, wire, when) => {
    const time = installTestClock();
    const waiting = new Map<string, ServerResponse>();
    await using up = await startBackend((req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      if (when === "after") res.write(half(wire));
      else res.flushHeaders();
      const road = Object.keys(ROADS).find((one) => `${req.url}${req.body}`.includes(one))!;
      waiting.set(road, res);
    });
    await using s = await startTestServices({
      frontend: chats[client]!,
      hooks: [guard],
      providers: {
        p: { endpoints: [{ protocol: chats[wire]!, base: up.base, auth: "none" as const }] },
      },
    });
    const roads = Object.keys(ROADS);
    let opened = 0;
    const ask: Fetch = async (_, init) => {
      const res = await fetch(`${s.url}/toy`, { ...init, signal: null });
      if (res.status === 200) opened++;
      return res;
    };
    const reading = roads.map((road) =>
      READS[client]!(ask, road).then(
        (end) => `${road}: taken for an answer ${String(end ?? "")}`,
        () => undefined,
      ),
    );
    await until(() => waiting.size === roads.length);
    // Without content, headers are sent after ten seconds.
    if (when === "before") time.skip(11_000);
    await until(() => opened === roads.length);
    for (const [road, res] of waiting) ROADS[road]!(res, wire);
    const others = reading.filter((_, i) => roads[i] !== "silence");
    expect(await Promise.all(others)).toEqual(others.map(() => undefined));
    time.skip(45_000);
    expect(await Promise.all(reading)).toEqual(roads.map(() => undefined));
  },
);

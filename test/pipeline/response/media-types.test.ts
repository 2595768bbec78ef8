// The media type determines how a response is read: a document is buffered, and everything else is
// read in the requested form.
import { describe, expect, it } from "vitest";
import { bodyFormOf } from "../../../src/lib/media-type.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const STREAMS = [
  "application/x-ndjson",
  "application/ndjson; charset=utf-8",
  "application/jsonl",
  "application/x-jsonlines",
  "application/json-lines",
  "application/json-seq",
  "application/geo+json-seq",
  "application/stream+json",
  "application/vnd.amazon.eventstream",
  "text/event-stream",
  "Text/Event-Stream;charset=UTF-8",
];
const DOCUMENTS = [
  "application/json",
  "Application/JSON; charset=utf-8",
  "application/json;stream=ndjson",
  "text/json",
  "application/problem+json",
  "application/vnd.acme.v1+json",
];
const UNKNOWN = ["text/plain", "application/octet-stream", "", undefined];

describe("the form of a body by its media type", () => {
  it.each(STREAMS)("%s is a stream", (type) => expect(bodyFormOf(type)).toBe("stream"));
  it.each(DOCUMENTS)("%s is one document", (type) => expect(bodyFormOf(type)).toBe("document"));
  it.each(UNKNOWN)("%s decides nothing", (type) => expect(bodyFormOf(type)).toBeUndefined());
});

const LINES = [
  '{"id":"up1","model":"m"}',
  '{"say":"Hel"}',
  '{"say":"lo"}',
  '{"usage":{"input":3,"output":2},"end":"stop"}',
];

describe.each([
  ["passthrough", createToyProtocol()],
  ["translated", createToyProtocol("other")],
])("an upstream that streams, in %s mode", (_lane, protocol) => {
  it.each([...STREAMS, "text/plain", "application/octet-stream"])(
    "as %s reaches the client chunk by chunk",
    async (type) => {
      const first = Promise.withResolvers<void>();
      await using up = await startBackend((_req, res) => {
        res.writeHead(200, { "content-type": type });
        res.write(`${LINES.slice(0, 2).join("\n")}\n`);
        // The rest is sent after the client has the start, so a buffered response hangs here.
        void first.promise.then(() => res.end(`${LINES.slice(2).join("\n")}\n`));
      });
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" }] } },
      });
      const res = await s.ask(
        { model: "p/m", text: "x", stream: true },
        { signal: AbortSignal.timeout(5_000) },
      );
      const reader = res.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (!text.includes("Hel")) text += (await reader.read()).value ?? "";
      first.resolve();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
      }
      expect(text).toContain('"say":"lo"');
      expect(text).toContain('"end":"stop"');
    },
  );

  it("is collected for a non-streaming client, whatever type of stream it is", async () => {
    for (const type of STREAMS) {
      await using up = await startBackend((_req, res) => {
        res.writeHead(200, { "content-type": type });
        res.end(`${LINES.join("\n")}\n`);
      });
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" }] } },
      });
      const res = await s.ask({ model: "p/m", text: "x" });
      expect(await res.json(), type).toMatchObject({ model: "p/m", say: "Hello", end: "stop" });
    }
  });
});

describe("the media type of the response", () => {
  const lined = createToyProtocol();
  const ndjson = {
    ...lined,
    server: {
      ...lined.server!,
      contentType: ({ stream }: { stream: boolean }) =>
        stream ? "application/x-ndjson" : "application/vnd.toy+json",
    },
  };
  it.each([
    ["is the protocol's own", ndjson, "application/x-ndjson", "application/vnd.toy+json"],
    ["else that of events", lined, "text/event-stream; charset=utf-8", "application/json"],
  ])("%s", async (_how, frontend, streamed, whole) => {
    await using up = await startBackend((req, res) => {
      const stream = (JSON.parse(req.body) as { stream?: boolean }).stream === true;
      res.writeHead(200, { "content-type": stream ? "application/x-ndjson" : "application/json" });
      res.end(
        stream
          ? `${LINES.join("\n")}\n`
          : '{"id":"up1","model":"m","say":"Hello","usage":{"input":3,"output":2},"end":"stop"}',
      );
    });
    for (const protocol of [createToyProtocol(), createToyProtocol("other")]) {
      await using s = await startTestServices({
        frontend,
        providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" }] } },
      });
      for (const [stream, type] of [
        [true, streamed],
        [false, whole],
      ] as const) {
        const res = await s.ask({ model: "p/m", text: "x", stream });
        expect(res.headers.get("content-type")).toBe(type);
        await res.text();
      }
    }
  });
});

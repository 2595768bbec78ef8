// Streams of operations other than chat that fail after their headers: no client program takes one
// for a complete response. Every kind of failure, before and after content, in both modes.
import OpenAI, { toFile } from "openai";
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { ModelRequest, Protocol, PipelineRoute } from "tollgate/plugin";
import { completions } from "tollgate/protocols/completions";
import { images } from "tollgate/protocols/images";
import { speech } from "tollgate/protocols/speech";
import { transcriptions } from "tollgate/protocols/transcriptions";
import { installTestClock } from "../../kit/clock.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";

interface Streamed {
  readonly protocol: Protocol;
  readonly body?: PipelineRoute["body"];
  readonly mime: string;
  /** The first part of a response. */
  readonly half: string;
  readonly roads: readonly (keyof typeof ROADS)[];
  /** Reads to the end. Throws if the client detects a failure. */
  read(client: OpenAI, model: string): Promise<void>;
}

/** How the provider's response ends. */
const ROADS = {
  reset: (res: ServerResponse) => void res.destroy(),
  "too-soon": (res: ServerResponse) => void res.end(),
  error: (res: ServerResponse) =>
    void res.end(`data: ${JSON.stringify({ error: { message: "It broke.", code: "e" } })}\n\n`),
  "no-json": (res: ServerResponse) => void res.end("data: {oops\n\n"),
  silence: () => {},
};
const ALL = Object.keys(ROADS) as (keyof typeof ROADS)[];
const SSE = "text/event-stream";
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const event = (of: object) => `data: ${JSON.stringify(of)}\n\n`;

const WORKS: { readonly [name: string]: Streamed } = {
  completions: {
    protocol: completions(),
    mime: SSE,
    half: event({
      id: "c",
      object: "text_completion",
      created: 1,
      model: "up",
      choices: [{ index: 0, text: "Half of it", finish_reason: null, logprobs: null }],
    }),
    roads: ALL,
    async read(client, model) {
      const all = await client.completions.create({ model, prompt: "Hi", stream: true });
      for await (const _ of all);
    },
  },
  images: {
    protocol: images(),
    mime: SSE,
    half: event({
      type: "image_generation.partial_image",
      b64_json: PNG,
      partial_image_index: 0,
      created_at: 1,
    }),
    roads: ALL,
    async read(client, model) {
      const prompt = { model, prompt: "A cat", partial_images: 1, stream: true } as const;
      for await (const one of await client.images.generate(prompt))
        if (one.type === "image_generation.completed") return;
      throw new Error("There is no image.");
    },
  },
  // Raw audio has no end of its own: a complete HTTP message is a complete response.
  speech: {
    protocol: speech(),
    mime: "audio/mpeg",
    half: `ID3${" half of a sound".repeat(1_000)}`,
    roads: ["reset", "silence"],
    async read(client, model) {
      const res = await client.audio.speech.create({ model, input: "Hi", voice: "alloy" });
      await res.arrayBuffer();
    },
  },
  transcriptions: {
    protocol: transcriptions(),
    body: "multipart",
    mime: SSE,
    half: event({ type: "transcript.text.delta", delta: "Half of it" }),
    roads: ALL,
    async read(client, model) {
      const file = await toFile(Buffer.from("RIFF"), "a.wav", { type: "audio/wav" });
      for await (const one of await client.audio.transcriptions.create({
        model,
        file,
        stream: true,
      }))
        if (one.type === "transcript.text.done") return;
      throw new Error("There is no transcript.");
    },
  },
};

const cases = Object.keys(WORKS).flatMap((name) =>
  ["passthrough", "translated"].flatMap((lane) =>
    ["before", "after"].map((when) => [name, lane, when] as const),
  ),
);

test.each(cases)(
  "%s, %s: no client takes a stream that fails %s content for a complete response",
  async (name, lane, when) => {
    const { protocol, body, mime, half, roads, read } = WORKS[name]!;
    const time = installTestClock();
    const waiting: ServerResponse[] = [];
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": mime });
      if (when === "after") res.write(half);
      else res.flushHeaders();
      waiting.push(res);
    });
    await using s = await startTestServices({
      frontend: protocol,
      attempts: { perTarget: 1, total: 1 },
      ...(body && { body }),
      // A hook that may change requests disables passthrough mode.
      hooks: lane === "passthrough" ? [] : [{ rewrite: (request: ModelRequest) => request }],
      providers: {
        p: {
          endpoints: [{ protocol, base: up.base, auth: "none" as const }],
          facts: new Map(roads.map((model) => [model, { operation: protocol.operationSpec.name }])),
        },
      },
      // Clients read audio as it arrives, and do not request a stream.
      ...(name === "speech" && {
        read: (_x, { model }) => ({ model: String(model), stream: true }),
      }),
    });
    let opened = 0;
    const ask: typeof fetch = async (_, init) => {
      const res = await fetch(`${s.url}/toy`, { ...init, signal: null });
      if (res.status === 200) opened++;
      return res;
    };
    const client = new OpenAI({ apiKey: "k", maxRetries: 0, fetch: ask });
    for (const road of roads) {
      const before = opened;
      const reading = read(client, `p/${road}`).then(
        () => `${road}: taken for an answer`,
        () => undefined,
      );
      await until(() => waiting.length === 1);
      // Without content, headers are sent after ten seconds if the format has pings.
      if (when === "before") time.skip(11_000);
      if (when === "after" || protocol.server!.ping !== "") await until(() => opened > before);
      ROADS[road](waiting.pop()!);
      if (road === "silence") time.skip(45_000);
      expect(await reading).toBeUndefined();
    }
  },
);

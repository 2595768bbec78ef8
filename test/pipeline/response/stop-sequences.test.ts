// Stop sequences for a provider without them: the response ends before the first one, however it is
// split, the provider's call ends, and its output is billed.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ModelEvent, ModelRequest, Settle } from "tollgate/plugin";
import { createResponseContext, createCallContext, encodeText } from "tollgate/testing";
import { createStopFilter } from "../../../src/pipeline/response/stop-sequences.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { trialCount } from "../../kit/law-effort.ts";

const open = (index: number, type: "text" | "reasoning" = "text"): ModelEvent => ({
  type: "open",
  index,
  block: { type },
});
const delta = (index: number, text: string): ModelEvent => ({ type: "delta", index, text });
const FINISH: ModelEvent = { type: "finish", reason: "stop" };
const COUNTS: ModelEvent = { type: "usage", usage: { input: 3, output: 50 } };

function stopped(events: readonly ModelEvent[], texts: readonly string[], whole = false) {
  const out: ModelEvent[] = [];
  let ended = 0;
  const stage = createStopFilter((e) => void out.push(e), {
    sequences: texts,
    isWhole: whole,
    onStopped: () => void ended++,
  });
  for (const e of events) stage(e);
  const said = out.map((e) => (e.type === "delta" ? e.text : "")).join("");
  return { out, said, ended, finish: out.at(-1) };
}

/** End of the generation: at the text that is complete first, and at the longest of several. */
function due(text: string, texts: readonly string[]): string | undefined {
  for (let end = 1; end <= text.length; end++) {
    const found = texts.filter((one) => text.slice(0, end).endsWith(one));
    const longest = Math.max(0, ...found.map(({ length }) => length));
    if (longest > 0) return text.slice(0, end - longest);
  }
  return undefined;
}

const few = fc.constantFrom("a", "b", "ab", "\n", "é", "🌍");
const many = (min: number, max: number) =>
  fc.array(few, { minLength: min, maxLength: max }).map((all) => all.join(""));

it("the response ends before the stop text that is complete first, however it is split", () => {
  fc.assert(
    fc.property(
      fc.array(many(0, 6), { maxLength: 8 }),
      fc.array(many(1, 4), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      (pieces, texts, whole) => {
        const events = [
          open(0),
          ...pieces.map((one) => delta(0, one)),
          { type: "close", index: 0 } as const,
          COUNTS,
          FINISH,
        ];
        const text = pieces.join("");
        const cut = due(text, texts);
        const got = stopped(events, texts, whole);
        expect(got.said).toBe(cut ?? text);
        expect(got.finish).toMatchObject({ reason: cut === undefined ? "stop" : "stop_sequence" });
        expect(got.ended).toBe(cut === undefined ? 0 : 1);
        expect(got.out.filter(({ type }) => type === "finish")).toHaveLength(1);
        expect(got.out.filter(({ type }) => type === "close")).toHaveLength(1);
        expect(got.out.some(({ type }) => type === "usage")).toBe(cut === undefined || whole);
      },
    ),
    { numRuns: trialCount(500) },
  );
});

it("text that cannot start a sequence is not delayed; reasoning is not searched", () => {
  const { out } = stopped(
    [open(0, "reasoning"), delta(0, "STOP"), open(1), delta(1, "Go on. S"), delta(1, "o it is")],
    ["STOP"],
  );
  expect(out.map((e) => (e.type === "delta" ? e.text : e.type))).toEqual([
    "open",
    "STOP",
    "open",
    "Go on. ",
    "So it is",
  ]);
});

it("takes linear time for the worst sequences", () => {
  const texts = Array.from({ length: 16 }, (_, i) => `${"a".repeat(200 + i)}b`);
  const run = (pieces: number) => {
    const before = ownCpuMs();
    stopped([open(0), ...Array.from({ length: pieces }, () => delta(0, "a".repeat(100)))], texts);
    return ownCpuMs() - before;
  };
  run(500);
  expect(run(4_000) / Math.max(run(1_000), 1)).toBeLessThan(12);
});

describe.each(["chat-completions", "messages", "gemini"])(
  "unknown fields of a client of %s",
  (id) => {
    const STOPS: Record<string, object> = {
      "chat-completions": { stop: ["END"] },
      messages: { stop_sequences: ["END"] },
      gemini: { generationConfig: { stopSequences: ["END"] } },
    };
    const events: ModelEvent[] = [
      { type: "start", id: "up1", model: "up" },
      open(0),
      ...["One tw", "o. E", "N", "D and more"].map((text) => delta(0, text)),
      { type: "close", index: 0 },
      COUNTS,
      FINISH,
    ];
    const wire = chats["responses"]!;

    it.each([true, false])("streamed: %s", async (stream) => {
      const text = encodeText(wire.server!, events, createResponseContext({ stream: true }));
      const parts = text.split(/(?<=\n\n)/);
      const last = parts.findIndex((part) => part.includes("D and more"));
      await using up = await startBackend((req, res) => {
        expect(JSON.parse(req.body)).not.toHaveProperty("stop");
        if (stream) {
          // Its provider has more output, and continues until the connection is closed.
          res.writeHead(200, { "content-type": "text/event-stream" });
          return void res.write(parts.slice(0, last + 1).join(""));
        }
        const said = wire.server!.encodeResponse(
          {
            blocks: [{ type: "text", text: "One two. END and more" }],
            usage: { input: 3, output: 50 },
            finish: { type: "finish", reason: "stop" },
          },
          createResponseContext(),
        );
        res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said));
      });
      await using s = await startTestServices({
        frontend: chats[id]!,
        providers: { p: { endpoints: [{ protocol: wire, base: up.base, auth: "none" as const }] } },
      });
      const got = await s.ask({ ...LEAST[id], ...STOPS[id], model: "p/m", stream });
      const body = await got.text();
      const field = id === "chat-completions" ? "stop" : id === "messages" ? "stop_sequences" : "";
      expect(got.headers.get("x-tollgate-warnings")).toContain(`emulated;field=${field}`);
      const words = [...body.matchAll(/"(?:text|content)":"((?:[^"\\]|\\.)*)"/g)]
        .map(([, one]) => one)
        .join("");
      expect(words).toBe("One two. ");
      expect(body).toMatch(/"stop"|"stop_sequence"|"STOP"/);
      if (id === "messages") expect(body).toContain('"stop_sequence":"END"');
      if (stream) await until(() => up.asked[0]!.aborted);
      const settles = s.journal.filter((c) => c.do === "settle") as Settle[];
      expect(settles).toHaveLength(1);
      expect(settles[0]).toMatchObject({ finish: "stop_sequence" });
      if (stream) expect(settles[0]!.state).toBe("estimated");
      else expect(settles[0]!.usage).toMatchObject({ input: 3, output: 50 });
      expect(settles[0]!.usage.output).toBeGreaterThan(0);
    });

    it("a strict request is rejected, with the field's name", async () => {
      await using up = await startBackend((_req, res) => void res.end());
      await using s = await startTestServices({
        frontend: chats[id]!,
        strict: true,
        providers: { p: { endpoints: [{ protocol: wire, base: up.base, auth: "none" as const }] } },
      });
      const got = await s.ask({ ...LEAST[id], ...STOPS[id], model: "p/m" });
      expect([got.status, up.asked.length]).toEqual([400, 0]);
    });
  },
);

const texts = (count: number) => Array.from({ length: count }, (_, i) => `END${i}`);
const UPSTREAMS = ["chat-completions", "messages", "responses", "gemini"] as const;

it.each(UPSTREAMS)(
  "%s leaves to the provider what it declares, and no other stop sequence",
  (id) => {
    const { client } = chats[id]!;
    for (let count = 0; count <= 8; count++) {
      const request = chats["messages"]!.server!.decodeRequest(
        { ...LEAST["messages"], model: "p/m", stop_sequences: texts(count) } as never,
        "generate",
      );
      const cut: string[] = [];
      const cutAt = (all: readonly string[]) => cut.push(...all);
      client!.encodeRequest(
        request as never,
        Object.create(createCallContext(), { emulateStopSequences: { value: cutAt } }),
      );
      expect(cut).toEqual(texts(count).slice(client!.maxStopSequences ?? Infinity));
    }
  },
);

const ENDPOINTS = UPSTREAMS.flatMap((one) =>
  UPSTREAMS.filter((other) => other !== one).map((other) => [one, other] as const),
);

it.each(ENDPOINTS)(
  "a provider with %s and %s: the first endpoint that accepts all of them is called",
  async (...ids) => {
    await using up = await startBackend((_req, res) => void res.writeHead(500).end("{}"));
    await using s = await startTestServices({
      frontend: chats["messages"]!,
      // No endpoint receives the client's bytes unchanged.
      hooks: [{ rewrite: (request: ModelRequest) => request }],
      attempts: { perTarget: 1, total: 1 },
      providers: {
        p: {
          endpoints: ids.map((id) => ({
            protocol: chats[id]!,
            base: `${up.base}/${id}`,
            auth: "none" as const,
          })),
        },
      },
    });
    for (const count of [0, 1, 4, 5, 6]) {
      await s.ask({ ...LEAST["messages"], stop_sequences: texts(count), model: "p/m" });
      // The client's own format is preferred.
      const order = ids.toSorted((a, b) => Number(b === "messages") - Number(a === "messages"));
      const takes = order.find((id) => (chats[id]!.client!.maxStopSequences ?? Infinity) >= count);
      expect(up.asked.at(-1)!.url, `${count}`).toContain(`/${takes ?? order[0]}/`);
    }
  },
);

// The laws are only useful if they catch a broken codec: a small protocol passes all of them, and
// each of its mutants fails the law that is named for it.
import { describe, expect, it } from "vitest";
import {
  chatOperation,
  fail,
  type ChatRequest,
  type Decoder,
  type JsonObject,
  type Protocol,
} from "tollgate/plugin";
import { protocolChecks, type Recording } from "tollgate/testing";

/** One JSON object per line. */
interface Mutant {
  lineBuffer?: false;
  ignoreEnd?: true;
  relayKeepsFinish?: true;
  relayUsage?: number;
  wholeUsage?: number;
  dropSeed?: "silently" | "declared";
  foreignThrow?: true;
  mutate?: true;
  secondClose?: true;
  silentFault?: true;
  chunkDelta?: true;
}

const lines = (on: (o: any) => void, m: Mutant): Decoder => {
  let rest: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      rest = m.lineBuffer === false ? chunk : Buffer.concat([rest, chunk]);
      for (let i: number; (i = rest.indexOf(10)) >= 0; rest = rest.subarray(i + 1)) {
        if (i === 0) continue;
        try {
          on(JSON.parse(rest.toString("utf8", 0, i)));
        } catch (error) {
          if (error instanceof SyntaxError) fail("upstream", "A line is not JSON.");
          throw error;
        }
      }
    },
    end() {},
  };
};

const small = (m: Mutant = {}): Protocol<"chat"> => ({
  id: "small",
  operationSpec: chatOperation,
  client: {
    paths: { generate: "/say" },
    encodeRequest(r, of) {
      if (r.sampling.seed !== undefined && m.dropSeed === "declared")
        of.reportLoss("seed", "dropped");
      if (m.mutate) (r as { model: string }).model = "x";
      return {
        model: r.model,
        stream: r.stream,
        ...(!m.dropSeed && { seed: r.sampling.seed }),
        say: r.turns.map((t) => t.blocks.map((b) => (b.type === "text" ? b.text : "")).join("")),
      };
    },
    createDecoder(emit) {
      let open = false;
      let done = false;
      const d = lines((o) => {
        if (!open) {
          emit({ type: "start" });
          emit({ type: "open", index: 0, block: { type: "text" } });
        }
        open = true;
        if (o.text) emit({ type: "delta", index: 0, text: o.text });
        if (!o.done) return;
        emit({ type: "close", index: 0 });
        if (m.secondClose) emit({ type: "close", index: 0 });
        if (o.out !== undefined) emit({ type: "usage", usage: { output: o.out } });
        emit({ type: "finish", reason: "stop" });
        done = true;
      }, m);
      return {
        push(chunk) {
          d.push(chunk);
          if (m.chunkDelta && open && !done) emit({ type: "delta", index: 0, text: "" });
        },
        end() {
          if (done) return;
          if (m.foreignThrow) throw new Error("It ended too soon.");
          if (m.ignoreEnd && open) {
            emit({ type: "close", index: 0 });
            emit({ type: "finish", reason: "stop" });
          } else fail("upstream", "It ended too soon.", { code: "truncated" });
        },
      };
    },
    decodeResponse(body, emit) {
      let o: any;
      try {
        o = JSON.parse(body.toString());
      } catch {
        fail("upstream", "The answer is not JSON.");
      }
      emit({ type: "start" });
      emit({ type: "open", index: 0, block: { type: "text" } });
      emit({ type: "delta", index: 0, text: o.text });
      emit({ type: "close", index: 0 });
      emit({ type: "usage", usage: { output: o.out + (m.wholeUsage ?? 0) } });
      emit({ type: "finish", reason: "stop" });
    },
    decodeFault: (status, _headers, body) => ({
      kind: status === 429 ? "rate_limited" : "upstream",
      message: m.silentFault ? "" : body.toString() || "It failed.",
    }),
    createPassthrough(sink, to) {
      let done = false;
      if (!to.stream)
        return {
          push(bytes) {
            sink.reportContent();
            sink.reportUsage({
              type: "usage",
              usage: { output: JSON.parse(bytes.toString()).out },
            });
            sink.reportFinish("stop");
            sink.write(bytes);
          },
          end() {},
          writeFault() {},
          isBetweenEvents: true,
        };
      const d = lines((o) => {
        const bytes = Buffer.from(`${JSON.stringify(o)}\n`);
        if (o.text) sink.reportContent();
        if (m.relayKeepsFinish) sink.write(bytes);
        if (o.done) {
          sink.reportUsage({ type: "usage", usage: { output: o.out + (m.relayUsage ?? 0) } });
          sink.reportFinish("stop");
          done = true;
        }
        if (!m.relayKeepsFinish) sink.write(bytes);
      }, m);
      return {
        push: d.push,
        end: () => void (done || fail("upstream", "It ended too soon.")),
        writeFault() {},
        isBetweenEvents: true,
      };
    },
  },
  server: {
    schema: { type: "object" },
    analyze: () => ({ features: [] }),
    decodeRequest: (b): ChatRequest => ({
      operation: "chat",
      model: b["model"] as string,
      stream: b["stream"] === true,
      instructions: [],
      tools: [],
      output: {},
      sampling: { seed: b["seed"] as number | undefined },
      reasoning: { mode: "auto" },
      state: {},
      rest: {},
      ext: {},
      turns: (b["say"] as string[]).map((text) => ({
        role: "user",
        blocks: [{ type: "text", text }],
      })),
    }),
    createEncoder(write) {
      let out: number | undefined;
      return {
        writeEvent(e) {
          if (e.type === "delta") write(`${JSON.stringify({ text: e.text })}\n`);
          if (e.type === "usage") out = e.usage.output;
          if (e.type === "finish") write(`${JSON.stringify({ done: true, out })}\n`);
        },
        writeFault() {},
      };
    },
    encodeResponse: (a): JsonObject => ({
      text: a.blocks.map((b) => (b.type === "text" ? b.text : "")).join(""),
      out: a.usage.output,
    }),
    encodeFault: (f) => ({ body: { error: f.message } }),
    ping: "\n",
  },
});

const request = { model: "m", stream: true, seed: 7, say: ["Hi"] };
const recorded = (body: string, more: Partial<Recording> = {}): Recording => ({
  name: "hello",
  request,
  status: 200,
  headers: { "content-type": "application/x-ndjson" },
  body: Buffer.from(body),
  events: undefined,
  ...more,
});
const hello = recorded('{"text":"Hé"}\n{"text":"llo"}\n\n{"done":true,"out":2}\n');
const whole = recorded('{"text":"Héllo","out":2}', {
  name: "whole",
  headers: { "content-type": "application/json" },
});
const refused = recorded("Slow down.", { name: "refused", status: 429, headers: {} });

async function broken(m: Mutant): Promise<string[]> {
  const names: string[] = [];
  for (const { name, run } of protocolChecks(small(m), {
    recordings: [hello, whole, refused],
    trials: 8,
  }))
    await run().catch(() => names.push(name.split(": ").slice(1).join(": ")));
  return names;
}

describe("the rules of a protocol", () => {
  it("pass for a protocol that follows them", async () => expect(await broken({})).toEqual([]));

  it.each<[string, Mutant, string]>([
    [
      "a decoder that needs whole chunks",
      { lineBuffer: false },
      "events do not depend on how the bytes are split: hello",
    ],
    [
      "events that depend on the chunks",
      { chunkDelta: true },
      "events do not depend on how the bytes are split: hello",
    ],
    [
      "a truncated answer that looks whole",
      { ignoreEnd: true },
      "a truncated response is never reported as complete: hello",
    ],
    [
      "an error that is no fault",
      { foreignThrow: true },
      "a truncated response is never reported as complete: hello",
    ],
    [
      "events out of their grammar",
      { secondClose: true },
      "recordings decode to the expected content: hello",
    ],
    [
      "a finish that is said after its bytes",
      { relayKeepsFinish: true },
      "passthrough and translation give the same result: hello",
    ],
    [
      "lanes that count differently",
      { relayUsage: 1 },
      "passthrough and translation give the same result: hello",
    ],
    [
      "a whole answer that counts differently",
      { wholeUsage: 1 },
      "streaming and non-streaming responses have the same content: whole",
    ],
    [
      "a field that is lost without a word",
      { dropSeed: "silently" },
      "a request round-trips through the codec: hello",
    ],
    [
      "a request that is changed",
      { mutate: true },
      "a request round-trips through the codec: hello",
    ],
    [
      "a fault without words",
      { silentFault: true },
      "an upstream error is decoded to a fault: refused",
    ],
  ])("detect %s", async (_what, mutant, law) => expect(await broken(mutant)).toContain(law));

  it("allow what is declared", async () =>
    expect(await broken({ dropSeed: "declared" })).toEqual([]));

  it("compare with a handwritten expectation", async () => {
    const wrong = { ...hello, events: [{ type: "start" as const }] };
    const failed: string[] = [];
    for (const { name, run } of protocolChecks(small(), { recordings: [wrong], trials: 1 }))
      await run().catch(() => failed.push(name));
    expect(failed).toEqual(["small: recordings decode to the expected content: hello"]);
  });
});

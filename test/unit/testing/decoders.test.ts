// A decoder is judged by its upstream's recorded response, cut and split by the kit, alone and
// through a real gateway. Each possible fault of a decoder is caught. Where there is nothing to
// judge it by, the author is told so.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  defineProvider,
  fail,
  type Decoder,
  type Definition,
  type ModelEvent,
  type Protocol,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { conformanceChecks, type ConformanceOptions } from "tollgate/testing";
import { createToyProtocol } from "../../pipeline/toy-protocol.ts";

const root = mkdtempSync(join(tmpdir(), "tollgate-decoders-"));
afterAll(() => rmSync(root, { recursive: true }));

const LINES =
  '{"id":"up1","model":"m"}\n{"say":"Hel"}\n{"say":"lo, "}\n{"say":"wörld ☕"}\n{"usage":{"input":3,"output":5},"end":"stop"}\n';
const WHOLE = '{"id":"up1","model":"m","say":"Hello","usage":{"input":3,"output":5},"end":"stop"}';
const ERROR = '{"error":"Slow down."}';
const recorded = (name: string, head: string, body: string, request: object) => {
  const folder = join(root, name.split("/")[0]!, name.split("/")[1]!);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "request.json"), JSON.stringify(request));
  writeFileSync(join(folder, "upstream.http"), `${head}\n\n${body}`);
};
const asked = (stream: boolean) => ({ model: "m", text: "Hi", stream });
for (const type of ["application/x-ndjson", "text/event-stream"])
  recorded(
    `toy/${type.replace("/", "-")}`,
    `HTTP/1.1 200 OK\ncontent-type: ${type}`,
    LINES,
    asked(true),
  );
recorded("toy/whole", "HTTP/1.1 200 OK\ncontent-type: application/json", WHOLE, asked(false));
recorded("toy/refused", "HTTP/1.1 429 Slow\ncontent-type: application/json", ERROR, asked(false));
recorded("native/one", "HTTP/1.1 200 OK\ncontent-type: application/x-ndjson", LINES, {});

/** The codec's own fault, if any, in how it handles events, pushes, and the end. */
interface Fault {
  event?(event: ModelEvent, emit: (event: ModelEvent) => void): void;
  push?(chunk: Buffer, decoder: Decoder): void;
  end?(decoder: Decoder, emit: (event: ModelEvent) => void): void;
}
function faulty({ event, push, end }: Fault, relay = true): Protocol<"chat"> {
  const good = createToyProtocol("toy", { relay });
  return {
    ...good,
    client: {
      ...good.client!,
      createDecoder(emit, of, headers) {
        const passed = event ? (e: ModelEvent) => event(e, emit) : emit;
        const decoder = good.client!.createDecoder(passed, of, headers);
        return {
          push: (chunk) => (push ? push(chunk, decoder) : decoder.push(chunk)),
          end: () => (end ? end(decoder, emit) : decoder.end()),
        };
      },
    },
  };
}

const provider = (protocol: Protocol, more: object = {}): Definition =>
  defineProvider({
    api: 1,
    name: "acme",
    summary: "Acme's own lines",
    setup: () => ({
      endpoints: [{ protocol, base: "https://acme.test/v1", auth: "none", ...more }],
    }),
  });
const broken = async (definition: Definition, options: ConformanceOptions): Promise<string> => {
  const failed: string[] = [];
  for (const { name, run } of conformanceChecks(definition, options))
    await run().catch((error: Error) => failed.push(`${name} | ${error.message}`));
  return failed.join("\n");
};

describe("a decoder with recordings", () => {
  it("without a defect passes, for any type of stream, with and without a relay", async () => {
    for (const relay of [true, false])
      expect(await broken(provider(faulty({}, relay)), { recordings: root })).toBe("");
  });

  it.each<[string, Fault, RegExp]>([
    ["never closes a block", { event: (e, emit) => e.type === "close" || emit(e) }, /grammar/],
    [
      "is content with half an answer",
      { end: (_d, emit) => emit({ type: "finish", reason: "stop" }) },
      /truncated|reported as complete|grammar/,
    ],
    ["says nothing at an end without a finish", { end() {} }, /truncated|complete|finish/],
    [
      "tears what comes in two chunks",
      { push: (chunk, d) => d.push(Buffer.from(chunk.toString())) },
      /split/,
    ],
    [
      "throws what is no fault",
      {
        end: (decoder) => {
          try {
            decoder.end();
          } catch {
            throw new RangeError("x");
          }
        },
      },
      /the thrown error must be a fault/,
    ],
  ])("that %s is rejected", async (_what, fault, law) => {
    expect(await broken(provider(faulty(fault, false)), { recordings: root })).toMatch(law);
  });

  it("with a wrong relay is rejected by the gateway", async () => {
    const good = createToyProtocol();
    const deaf: Protocol<"chat"> = {
      ...good,
      client: {
        ...good.client!,
        createPassthrough: (sink, to, headers) =>
          good.client!.createPassthrough!(
            {
              setContentType: (mime) => sink.setContentType(mime),
              write: (chunk) => sink.write(chunk),
              reportContent: (bytes) => sink.reportContent(bytes),
              reportStart: (id) => sink.reportStart(id),
              reportUsage() {},
              reportFinish: (reason) => sink.reportFinish(reason),
            },
            to,
            headers,
          ),
      },
    };
    expect(await broken(provider(deaf), { recordings: root })).toMatch(/usage|settled|passthrough/);
  });
});

describe("a decoder without recordings", () => {
  it("is not checked, which is a failure unless its author declares it", async () => {
    const of = provider(createToyProtocol());
    expect(await broken(of, {})).toMatch(
      /decoder of toy is not checked.*recordings\/toy.*recordings: false/,
    );
    expect(await broken(of, { recordings: false })).toBe("");
  });

  it("is checked nevertheless if the kit supports its protocol", async () => {
    const chat = chatCompletions();
    expect(await broken(provider(chat), {})).toBe("");
    const unclosed: Protocol<"chat"> = {
      ...chat,
      client: {
        ...chat.client!,
        createDecoder: (emit, of, headers) =>
          chat.client!.createDecoder((e) => e.type === "close" || emit(e), of, headers),
      },
    };
    expect(await broken(provider(unclosed), {})).toMatch(/grammar/);
  });
});

describe("a native endpoint", () => {
  const lines = (patient: boolean): Definition =>
    defineProvider({
      api: 1,
      name: "acme",
      summary: "Acme's own lines",
      setup: () => ({
        endpoints: [
          {
            operation: "chat",
            base: "https://acme.test",
            auth: "none",
            async *run(_request, call) {
              const got = await call.fetch("/say");
              if (!got.ok) fail("upstream", "Acme is not well.");
              yield { type: "start" };
              yield { type: "open", index: 0, block: { type: "text" } };
              let ended = false;
              for (const line of (await got.text()).split("\n").filter(Boolean)) {
                const said = JSON.parse(line) as { say?: string; end?: string };
                if (said.say) yield { type: "delta", index: 0, text: said.say };
                ended ||= said.end !== undefined;
              }
              if (!ended && patient) fail("upstream", "Acme broke off.", { code: "truncated" });
              yield { type: "close", index: 0 };
              yield { type: "finish", reason: "stop" };
            },
          },
        ],
      }),
    });
  it("with an upstream is checked only with recordings", async () => {
    expect(await broken(lines(true), {})).toMatch(/native endpoint.*not checked/);
    const found = await broken(lines(true), { recordings: root });
    expect(found).not.toMatch(/emit valid event streams/);
    expect(found).toMatch(/Add an expected\.json/);
    expect(found).toMatch(/max_tokens is dropped without a warning/);
    expect(found).toMatch(/must reach the client before the rest/);
  });
});

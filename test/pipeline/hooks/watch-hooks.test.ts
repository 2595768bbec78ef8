// Hooks that watch and change nothing. With a watcher, a client gets the same bytes as without it,
// in the same mode, for any chunks. The watcher sees the whole response, and content that it has
// not seen is not sent.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fail, createResponseCollector, type Hooks, type ModelEvent } from "tollgate/plugin";
import {
  createEventGrammar,
  say,
  think,
  startUpstream,
  type Chunks,
  type ModelScript,
} from "tollgate/testing";
import type { ScriptProtocol } from "tollgate/testing";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { CLIENTS, TARGETS } from "../protocol-pairs.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { codePoint } from "../../kit/code-points.ts";

const SPOKEN = ["chat-completions", "messages", "responses"] as const;
const ROADS = SPOKEN.flatMap((from) => SPOKEN.map((into) => [from, into] as const));

const speech = (text: string): ModelScript =>
  think("Hm.").say(text).call("look", { at: "Zürich" }).usage({ input: 7, output: 5 });

/** One gateway with one upstream that repeats the same response, in any chunks. */
async function stage(
  from: ScriptProtocol,
  into: ScriptProtocol,
  hooks: TestServicesOptions["hooks"],
) {
  let said: { speech: ModelScript; chunks: Chunks } = { speech: speech("Hi"), chunks: "pieces" };
  const up = await startUpstream({
    "POST /*": (asked) => {
      const body = JSON.parse(asked.body.toString()) as { stream?: boolean };
      const stream = body.stream === true;
      return {
        ...said.speech.toProtocol(into, { stream, responseNumber: 1, model: "m", body }),
        chunks: said.chunks,
      };
    },
  });
  const s = await startTestServices({
    frontend: CLIENTS[from]!.protocol,
    providers: {
      p: { endpoints: [{ protocol: TARGETS[into]!, base: `${up.url}/v1`, auth: "none" as const }] },
    },
    ...(hooks && { hooks }),
  });
  return {
    s,
    up,
    async ask(of: typeof said, stream: boolean) {
      said = of;
      const res = await s.ask({ model: "p/m", stream, ...CLIENTS[from]!.least });
      return { status: res.status, text: await res.text() };
    },
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

const lanes = (journal: readonly any[]) =>
  new Set(journal.filter((row) => row.do === "reserve").map((row) => row.clientRequest.mode));
/** Without values that differ in each response. */
const plain = (text: string) =>
  text.replace(
    /"(id|item_id|created|created_at|completed_at|obfuscation)":("[^"]*"|\d+)/g,
    '"$1":0',
  );

const chunks: fc.Arbitrary<Chunks> = fc.oneof(
  fc.constantFrom<Chunks>("pieces", "whole", "bytes"),
  fc.record({ seed: fc.integer(), max: fc.constantFrom(3, 40, 400) }),
);

describe.each(ROADS)("from %s to %s", (from, into) => {
  it("the same bytes are sent as without it, and it saw the whole response", async () => {
    let events: ModelEvent[] = [];
    const watch: Hooks["watch"] = () => {
      events = [];
      return (event) => void events.push(event);
    };
    await using bare = await stage(from, into, undefined);
    await using watched = await stage(from, into, [{ watch }]);
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: codePoint, minLength: 1, maxLength: 100 }),
        chunks,
        fc.boolean(),
        async (text, how, stream) => {
          const of = { speech: speech(text.toWellFormed()), chunks: how };
          const [one, other] = [await bare.ask(of, stream), await watched.ask(of, stream)];
          expect(other.status).toBe(200);
          expect(from === into ? other.text : plain(other.text)).toBe(
            from === into ? one.text : plain(one.text),
          );
          const judge = createEventGrammar();
          const fold = createResponseCollector();
          for (const event of events) {
            judge.event(event);
            fold.event(event);
          }
          judge.end();
          const { blocks, usage } = fold.answer();
          expect(blocks.find((block) => block.type === "text")).toMatchObject({
            text: text.toWellFormed(),
          });
          expect(blocks.find((block) => block.type === "call")).toMatchObject({ name: "look" });
          expect(usage).toMatchObject({ input: 7, output: 5 });
        },
      ),
      { numRuns: trialCount(15), endOnFailure: true },
    );
    expect(lanes(watched.s.journal)).toEqual(lanes(bare.s.journal));
    expect(lanes(bare.s.journal)).toEqual(new Set([from === into ? "passthrough" : "translated"]));
  });

  it("nothing is sent after a stop, and produced content is billed", async () => {
    const watch: Hooks["watch"] = (_call, stop) => (event) => {
      if (event.type === "delta" && event.text.includes("SECRET"))
        stop({ kind: "content_policy", message: "Stopped here." });
    };
    await using it = await stage(from, into, [{ watch }]);
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.boolean(), chunks, async (stream, first, how) => {
        const words = first ? say("SECRET of the house") : say("Good ").say("SECRET of the house");
        const got = await it.ask(
          { speech: words.usage({ input: 7, output: 5 }), chunks: how },
          stream,
        );
        expect(got.text).not.toMatch(/SECRET|of the house/);
        expect(got.text).toContain("Stopped here.");
        // A pause between chunks lets the rejection arrive before any content is sent.
        if (!stream || first) expect(got.status).toBe(400);
      }),
      { numRuns: 10, endOnFailure: true },
    );
    const rows = it.s.journal.filter((row) => row.do === "settle");
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.every((row) => row.state === "estimated")).toBe(true);
    expect(it.s.house.targetHealth.describeCooldowns()).toEqual([]);
  });
});

const LINES = [
  { id: "u", model: "m" },
  { say: "One " },
  { say: "two " },
  { say: "three" },
  { usage: { input: 1, output: 3 }, end: "stop" },
].map((line) => `${JSON.stringify(line)}\n`);

const speaking = (lines: readonly string[] = LINES) =>
  startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const line of lines) res.write(line);
    res.end();
  });

describe.each([
  ["passthrough", createToyProtocol()],
  ["translated", createToyProtocol("other")],
] as const)("%s", (lane, protocol) => {
  const asked = async (hooks: TestServicesOptions["hooks"], stream = true) => {
    await using up = await speaking();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" as const }] } },
      ...(hooks && { hooks }),
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream });
    const text = await res.text();
    return {
      status: res.status,
      text,
      rows: s.journal.filter((row) => row.do === "settle"),
      lanes: lanes(s.journal),
      rests: s.house.targetHealth.describeCooldowns(),
      log: s.log,
    };
  };
  const nth = (n: number, then: () => void) => {
    let deltas = 0;
    return (event: ModelEvent) => {
      if (event.type === "delta" && ++deltas === n) then();
    };
  };
  const boom = () => {
    throw new TypeError("a mistake in a plugin");
  };

  it("an exception ends the response, and the provider is not at fault", async () => {
    for (const n of [1, 2]) {
      const got = await asked([{ watch: () => nth(n, boom) }]);
      expect(got.text).not.toContain("two");
      expect(got.text).not.toContain("a mistake");
      expect(got.status).toBe(n === 1 ? 500 : got.status);
      expect(got.rests).toEqual([]);
      expect(got.rows).toMatchObject([{ state: "estimated" }]);
    }
    expect((await asked([{ watch: boom }])).status).toBe(500);
  });

  it("so does an exception of an event stage, whatever its kind", async () => {
    const event: Hooks["event"] = (_call, next) => (e) => {
      if (e.type === "delta") fail("overloaded", "The plugin's own queue is full.");
      next(e);
    };
    const got = await asked([{ event }]);
    expect(got.status).toBe(503);
    expect(got.text).not.toContain("p: ");
    expect(got.rests).toEqual([]);
  });

  it("under on_error: continue, an exception only ends the watching", async () => {
    for (const watch of [() => nth(1, boom), () => nth(2, boom), boom] as NonNullable<
      Hooks["watch"]
    >[]) {
      const got = await asked([{ watch, onError: "continue" }]);
      expect(got.status).toBe(200);
      expect(got.text).toContain("three");
      expect(got.lanes).toEqual(new Set([lane]));
      expect(got.rows).toMatchObject([{ outcome: "ok" }]);
      expect(got.log.filter(({ fields }) => fields.action === "skipped")).toHaveLength(1);
    }
  });

  it("but a rejection takes effect", async () => {
    const watch: Hooks["watch"] = () => () => fail("forbidden", "Not this.");
    expect(await asked([{ watch, onError: "continue" }])).toMatchObject({ status: 403 });
  });

  it("a stop from a promise is in time, or too late and without effect", async () => {
    let stopping: (() => void) | undefined;
    const late: Hooks["watch"] = (_call, stop) => {
      stopping = () => stop({ kind: "content_policy", message: "Too late." });
      return () => {};
    };
    const got = await asked([{ watch: late, settle: () => stopping!() }]);
    expect(got.text).toContain("three");
    expect(got.text).not.toContain("Too late.");
    expect(got.rows).toMatchObject([{ outcome: "ok" }]);
  });

  it("events after the finish are not lost through a late stop", async () => {
    let stopping: (() => void) | undefined;
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const line of LINES) res.write(line);
      setTimeout(() => {
        stopping!();
        res.end(`${JSON.stringify({ note: "tail" })}\n`);
      }, 100);
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" as const }] } },
      hooks: [
        {
          watch: (_call, stop) => {
            stopping = () => stop({ kind: "content_policy", message: "Too late." });
            return () => {};
          },
        },
      ],
    });
    const text = await (await s.ask({ model: "p/m", text: "hi", stream: true })).text();
    expect(text.includes("tail")).toBe(lane === "passthrough");
    expect(text).toContain('"end":"stop"');
    expect(text).not.toContain("Too late.");
  });

  it("runs at its place among the event stages", async () => {
    const seen: string[] = [];
    const watch = (name: string): Hooks => ({
      watch: () => (e) => void (e.type === "delta" && seen.push(`${name}:${e.text.trim()}`)),
    });
    const louder: Hooks = {
      event: (_call, next) => (e) =>
        next(e.type === "delta" ? { ...e, text: e.text.toUpperCase() } : e),
    };
    await asked([watch("a"), louder, watch("b")]);
    expect(seen).toEqual(["a:One", "b:ONE", "a:two", "b:TWO", "a:three", "b:THREE"]);
  });
});

describe("content that cannot be decoded", () => {
  /** A codec that cannot decode what its own relay forwards. */
  const blind = () => {
    const protocol = createToyProtocol();
    return {
      ...protocol,
      client: {
        ...protocol.client!,
        createDecoder: () => ({ push: () => fail("upstream", "What came is no line."), end() {} }),
      },
    };
  };
  it.each(["reject", "continue"] as const)(
    "passes only if every watcher has on_error: continue: %s",
    async (onError) => {
      await using up = await speaking();
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: {
          p: { endpoints: [{ protocol: blind(), base: up.base, auth: "none" as const }] },
        },
        hooks: [{ watch: () => () => {}, onError }],
      });
      const res = await s.ask({ model: "p/m", text: "hi", stream: true });
      expect(res.status).toBe(onError === "continue" ? 200 : 502);
      expect((await res.text()).includes("three")).toBe(onError === "continue");
    },
  );
});

it("a response with images is shown completely before its bytes pass, and can be stopped", async () => {
  const said = {
    created: 1,
    data: [{ b64_json: "AAAA" }],
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  };
  await using up = await startBackend((_req, res) => {
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify(said));
  });
  const asked = async (watch: NonNullable<Hooks["watch"]>) => {
    await using s = await startTestServices({
      frontend: CLIENTS["images"]!.protocol,
      providers: {
        p: {
          endpoints: [
            { protocol: TARGETS["images"]!, base: `${up.base}/v1`, auth: "none" as const },
          ],
          facts: new Map([["m", { operation: "image" as const }]]) as never,
          listModels: async () => [{ model: "m", operation: "image" as const }],
        },
      },
      hooks: [{ watch }],
    });
    await until(() => s.built.gen.catalog.find("p", "m").listed);
    const res = await s.ask({
      model: "p/m",
      ...CLIENTS["images"]!.least,
      response_format: "b64_json",
    });
    return { status: res.status, text: await res.text(), lanes: lanes(s.journal) };
  };
  const seen: string[] = [];
  const shown = await asked(() => (event) => void seen.push(event.type));
  expect(shown, shown.text).toMatchObject({ status: 200, lanes: new Set(["passthrough"]) });
  expect(shown.text).toContain("AAAA");
  expect(seen).toContain("media");
  const stopped = await asked((_call, stop) => (event) => {
    if (event.type === "media") stop({ kind: "content_policy", message: "Not this one." });
  });
  expect(stopped.status).toBe(400);
  expect(stopped.text).not.toContain("AAAA");
});

it("a native endpoint's events are shown too", async () => {
  const seen: string[] = [];
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: {
        endpoints: [
          {
            operation: "chat",
            async *run() {
              yield { type: "start" };
              yield { type: "open", index: 0, block: { type: "text" } };
              yield { type: "delta", index: 0, text: "Hello" };
              yield { type: "close", index: 0 };
              yield { type: "finish", reason: "stop" };
            },
          },
        ],
      },
    },
    hooks: [{ watch: () => (event) => void seen.push(event.type) }],
  });
  for (const stream of [true, false])
    await (await s.ask({ model: "p/m", text: "hi", stream })).text();
  const once = ["start", "open", "delta", "close", "finish"];
  expect(seen).toEqual([...once, ...once]);
});

it("without a watcher for this model, passthrough needs no decoding", async () => {
  await using up = await speaking();
  let decoded = 0;
  const protocol = createToyProtocol();
  const counting = {
    ...protocol,
    client: {
      ...protocol.client!,
      createDecoder: (...of: Parameters<NonNullable<typeof protocol.client>["createDecoder"]>) => {
        decoded++;
        return protocol.client!.createDecoder(...of);
      },
    },
  };
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: { endpoints: [{ protocol: counting, base: up.base, auth: "none" as const }] } },
    hooks: [{ watch: () => () => {}, scope: { models: ["p/other"] } }],
  });
  await (await s.ask({ model: "p/m", text: "hi", stream: true })).text();
  expect(decoded).toBe(0);
  await (await s.ask({ model: "p/other", text: "hi", stream: true })).text();
  expect(decoded).toBe(1);
});

describe("multiple choices", () => {
  const choice = (index: number, content: string) => ({
    index,
    delta: { content },
    message: { role: "assistant", content },
    finish_reason: "stop",
  });
  const answer = {
    id: "c",
    object: "chat.completion",
    model: "m",
    choices: [choice(0, "fine"), choice(1, "SECRET of the house")],
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  };
  const asked = async (
    n: number | undefined,
    hook: NonNullable<TestServicesOptions["hooks"]>[number],
    stream: boolean,
  ) => {
    await using up = await startUpstream({
      "POST /*": () => ({
        headers: { "content-type": stream ? "text/event-stream" : "application/json" },
        body: stream
          ? `data: ${JSON.stringify({ ...answer, object: "chat.completion.chunk" })}\n\ndata: [DONE]\n\n`
          : JSON.stringify(answer),
      }),
    });
    await using s = await startTestServices({
      frontend: CLIENTS["chat-completions"]!.protocol,
      providers: {
        p: {
          endpoints: [
            {
              protocol: TARGETS["chat-completions"]!,
              base: `${up.url}/v1`,
              auth: "none" as const,
            },
          ],
        },
      },
      hooks: [hook],
    });
    const least = CLIENTS["chat-completions"]!.least;
    const res = await s.ask({ model: "p/m", stream, ...least, ...(n !== undefined && { n }) });
    return { status: res.status, text: await res.text() };
  };
  const watch: Hooks["watch"] = (_call, stop) => (event) => {
    if (event.type === "delta" && event.text.includes("SECRET"))
      stop({ kind: "content_policy", message: "Stopped here." });
  };

  it.each([true, false])("are rejected if a watcher sees only one (stream: %s)", async (stream) => {
    const got = await asked(2, { watch }, stream);
    expect(got.text).not.toContain("SECRET");
    expect(got.status).toBe(400);
    expect(got.text).toContain("n_not_watched");
  });

  it("are allowed without a watcher", async () => {
    const elsewhere = { watch, scope: { models: ["other/*"] } };
    expect(await asked(2, elsewhere, false)).toMatchObject({ status: 200 });
    expect(await asked(2, {}, true)).toMatchObject({ status: 200 });
    for (const n of [1, undefined]) expect((await asked(n, { watch }, true)).status).toBe(200);
  });
});

it.each([true, false])(
  "content in the same chunk as the stopped word is billed (stream: %s)",
  async (stream) => {
    const line = (o: object) => `${JSON.stringify(o)}\n`;
    const said = "x".repeat(3_000);
    await using up = await startBackend((_req, res) => {
      if (!stream) return void res.end(line({ id: "u", say: said, end: "stop" }));
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(line({ id: "u" }) + line({ say: said }) + line({ say: "SECRET" }));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" as const }] },
      },
      hooks: [
        {
          watch: (_call, stop) => (event) => {
            if (event.type === "delta" && event.text.includes(stream ? "SECRET" : "xxx"))
              stop({ kind: "content_policy", message: "Stopped here." });
          },
        },
      ],
    });
    expect((await s.ask({ model: "p/m", text: "hi", stream })).status).toBe(400);
    const [row] = s.journal.filter((one) => one.do === "settle");
    expect(row).toMatchObject({ state: "estimated" });
    expect((row as { usage: { output: number } }).usage.output).toBeGreaterThanOrEqual(1_000);
  },
);

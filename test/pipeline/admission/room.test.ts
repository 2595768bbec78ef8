// Memory limits of a request, of a response, and in total; and that memory is released, however it
// ends.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { MemoryBudget } from "../../../src/pipeline/admission/memory-budget.ts";
import { ConcurrencyCounter } from "../../../src/pipeline/admission/request-permit.ts";
import { until } from "../../kit/wait.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const line = (o: object) => `${JSON.stringify(o)}\n`;
const SSE = { "content-type": "text/event-stream" };
const END = line({ usage: { input: 3, output: 2 }, end: "stop" });
const ASK = { model: "p/m", text: "Hi" };

const good = () =>
  startBackend((req, res) => {
    if ((JSON.parse(req.body) as { stream?: boolean }).stream)
      res.writeHead(200, SSE).end(line({ id: "u" }) + line({ say: "Hello" }) + END);
    else
      res
        .writeHead(200, { "content-type": "application/json" })
        .end(line({ id: "u", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" }));
  });
const to = (base: string, protocol = createToyProtocol()): TestServicesOptions["providers"] => ({
  p: { endpoints: [{ protocol, base, auth: "none" }] },
});

/** Headers with this content length, and as much of a body as given. */
async function visit(
  url: string,
  length: number | "chunked",
  body = "",
): Promise<Socket & { said(): string }> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  let text = "";
  socket.on("data", (chunk) => (text += chunk));
  const framing = length === "chunked" ? "transfer-encoding: chunked" : `content-length: ${length}`;
  socket.write(
    `POST /toy HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${framing}\r\n\r\n${body}`,
  );
  return Object.assign(socket, { said: () => text });
}

describe("memory for bodies", () => {
  it("is reserved before a byte of the body is read: a 503 with a retry time", async () => {
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to("http://127.0.0.1:9"),
      room: 1000,
    });
    // More than would be discarded to keep the connection.
    const socket = await visit(s.url, 200_000);
    await until(() => socket.said().includes("gateway_busy"));
    expect(socket.said()).toMatch(/^HTTP\/1\.1 503 /);
    expect(socket.said()).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(socket.said()).not.toMatch(/x-should-retry: false/i);
    expect(socket.said()).toMatch(/\r\nconnection: close\r\n/i);
    expect(s.house.memoryBudget.usedBytes).toBe(0);
    socket.destroy();
  });

  it("is reserved chunk by chunk if the length is unknown", async () => {
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to("http://127.0.0.1:9"),
      room: 200_000,
    });
    const piece = "x".repeat(50_000);
    const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;
    const socket = await visit(s.url, "chunked", chunk);
    await until(() => s.house.memoryBudget.usedBytes > 0);
    for (let i = 0; i < 6; i++) socket.write(chunk);
    await until(() => socket.said().includes("gateway_busy"));
    await until(() => s.house.memoryBudget.usedBytes === 0);
    socket.destroy();
  });

  const ends: [string, (s: Awaited<ReturnType<typeof startTestServices>>) => Promise<unknown>][] = [
    ["a whole answer", (s) => s.ask(ASK).then((r) => r.text())],
    ["a stream", (s) => s.ask({ ...ASK, stream: true }).then((r) => r.text())],
    ["a refusal", (s) => s.ask({ model: 7 }).then((r) => r.text())],
    ["nobody upstream", (s) => s.ask({ ...ASK, model: "q/m" }).then((r) => r.text())],
    [
      "too many values",
      (s) => s.ask({ ...ASK, all: Array(2000).fill(true) }).then((r) => r.text()),
    ],
    [
      "a client that goes in its body",
      async (s) => {
        const socket = await visit(s.url, 5000, "{");
        await until(() => s.house.memoryBudget.usedBytes === 5000);
        socket.destroy();
      },
    ],
  ];
  it.each(ends)("is released after %s", async (_, go) => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to(up.base),
      bounds: { jsonValues: 1000 },
    });
    await go(s);
    await until(() => s.house.memoryBudget.usedBytes === 0);
  });

  it("is shared: one key can use at most half of it", () => {
    const step = fc.record({
      who: fc.constantFrom("a", "b", "c"),
      bytes: fc.integer({ min: 0, max: 400_000 }),
      at: fc.nat(9),
      leave: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const room = new MemoryBudget(1_000_000);
        const held = new Map<string, { who: string; bytes: number }>();
        for (const { who, bytes, at, leave } of steps) {
          const name = `${who}${at}`;
          const mine = held.get(name) ?? { who, bytes: 0 };
          if (leave) {
            room.release(who, mine.bytes);
            held.delete(name);
          } else if (room.tryReserve(who, bytes, mine.bytes))
            held.set(name, { who, bytes: mine.bytes + bytes });
          const all = [...held.values()].reduce((sum, each) => sum + each.bytes, 0);
          expect(room.usedBytes).toBe(all);
          expect(all).toBeLessThanOrEqual(1_000_000);
          const own = [...held.values()].filter((h) => h.who === who && h.bytes >= 65_536);
          if (own.length > 1)
            expect(own.reduce((sum, h) => sum + h.bytes, 0)).toBeLessThanOrEqual(500_000);
        }
        for (const { who, bytes } of held.values()) room.release(who, bytes);
        expect(room.usedBytes).toBe(0);
        expect(room.tryReserve("z", 1_000_000, 0)).toBe(true);
      }),
    );
  });
});

describe("the content of a body", () => {
  it("is counted before it is parsed", async () => {
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to("http://127.0.0.1:9"),
    });
    const body = JSON.stringify({ ...ASK, all: Array.from({ length: 60_000 }, () => [[], []]) });
    const parse = vi.spyOn(JSON, "parse");
    const answer = await fetch(`${s.url}/toy`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(answer.status).toBe(413);
    expect(parse.mock.calls.filter(([text]) => text.length > 1000)).toEqual([]);
    parse.mockRestore();
  });

  it("that is not JSON is reported, however unusual it is", () => {
    // A finding of the byte scan must not be an error itself.
    return fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("{", "}", "[", "]", '"', "\\", ":", ",", "a", "\\u0061", " "), {
          maxLength: 40,
        }),
        async (pieces) => {
          const { scan } = await import("../../../src/lib/json/json-scanner.ts");
          expect(() => scan(Buffer.from(`{"a":${pieces.join("")}`))).not.toThrow();
          expect(() => scan(Buffer.from(pieces.join("")))).not.toThrow();
        },
      ),
      { numRuns: trialCount(2000) },
    );
  });
});

describe("concurrent requests", () => {
  it("are counted from the headers on: the second body of a key with a limit of one is not read", async () => {
    await using up = await good();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to(up.base),
      hooks: [{ admit: (x) => x.acquireSlot("key:k1", 1) }],
    });
    const body = JSON.stringify(ASK);
    const first = await visit(s.url, body.length, body.slice(0, 5));
    await until(() => s.house.memoryBudget.usedBytes > 0);
    const second = await visit(s.url, 1_000_000);
    await until(() => second.said().includes("rate_limit"));
    expect(second.said()).toMatch(/^HTTP\/1\.1 429 /);
    expect(s.house.memoryBudget.usedBytes).toBe(body.length);
    first.write(body.slice(5));
    await until(() => first.said().includes("Hello"));
    expect((await s.ask(ASK)).status).toBe(200);
    first.destroy();
    second.destroy();
  });

  it("are counted by the ledger once their call is reserved", async () => {
    let go = () => {};
    const waiting = new Promise<void>((resolve) => (go = resolve));
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE).write(line({ id: "u" }) + line({ say: "Hello" }));
      void waiting.then(() => res.end(END));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to(up.base),
      hooks: [{ admit: (x) => x.acquireSlot("key:k1", 1) }],
    });
    const first = await s.ask({ ...ASK, stream: true });
    const second = await s.ask({ ...ASK, stream: true });
    expect([first.status, second.status]).toEqual([200, 200]);
    go();
    await Promise.all([first.text(), second.text()]);
  });

  it("are released as they were counted", () => {
    const t = new ConcurrencyCounter();
    expect([
      t.tryAcquire("a", 2),
      t.tryAcquire("a", 2),
      t.tryAcquire("a", 2),
      t.tryAcquire("b", 1),
    ]).toEqual([true, true, false, true]);
    t.release("a");
    expect(t.tryAcquire("a", 2)).toBe(true);
  });
});

describe("an upstream that never ends", () => {
  const endless = (piece: string, head = "") =>
    startBackend((_req, res) => {
      res.writeHead(200, SSE).write(head);
      const more = () => {
        while (!res.destroyed && res.write(piece));
        if (!res.destroyed) res.once("drain", more);
      };
      more();
    });
  const START = line({ id: "u" }) + line({ say: "Hello" });
  const lanes = [
    ["verbatim, what its relay keeps", createToyProtocol(), "x".repeat(60_000)],
    ["translated", createToyProtocol("other", { relay: false }), line({ say: "x".repeat(1000) })],
    [
      "translated, what its decoder keeps",
      createToyProtocol("other", { relay: false }),
      "x".repeat(60_000),
    ],
  ] as const;
  it.each(lanes)(
    "%s: ends with the protocol's error at the size limit",
    async (_, protocol, piece) => {
      await using up = await endless(piece, START);
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: to(up.base, protocol),
        bounds: { responseBytes: 3_000_000 },
      });
      const text = await (await s.ask({ ...ASK, stream: true })).text();
      expect(text.slice(-300)).toContain("larger than 3000000 bytes");
      await until(() => s.house.memoryBudget.usedBytes === 0);
      expect(s.journal.filter((c) => c.do === "settle")).toMatchObject([{ state: "estimated" }]);
    },
  );

  it("as a stream for a non-streaming client: a rejection", async () => {
    await using up = await endless("x".repeat(60_000));
    for (const protocol of [createToyProtocol(), createToyProtocol("other", { relay: false })]) {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: to(up.base, protocol),
        bounds: { responseBytes: 3_000_000 },
      });
      const answer = await s.ask(ASK);
      expect([answer.status, await answer.text()]).toEqual([
        502,
        expect.stringContaining("larger than 3000000 bytes"),
      ]);
      await until(() => s.house.memoryBudget.usedBytes === 0);
    }
  });

  it("as a buffered response: a rejection that releases its memory", async () => {
    await using up = await endless(line({ say: "x".repeat(1000) }), START);
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to(up.base),
      bounds: { responseBytes: 3_000_000 },
    });
    const answer = await s.ask(ASK);
    expect([answer.status, await answer.text()]).toEqual([
      502,
      expect.stringContaining("larger than 3000000 bytes"),
    ]);
    await until(() => s.house.memoryBudget.usedBytes === 0);
  });

  it("as concurrent buffered responses: one without memory is a 503, and the process survives", async () => {
    await using up = await endless(line({ say: "x".repeat(1000) }), START);
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to(up.base),
      room: 5_000_000,
    });
    const all = await Promise.all([1, 2, 3].map(() => s.ask(ASK)));
    for (const answer of all)
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
        503,
        "gateway_busy",
      ]);
    await until(() => s.house.memoryBudget.usedBytes === 0);
  });

  it("is billed once, even if a codec cannot encode the error", async () => {
    const mute = createToyProtocol();
    const relay = mute.client!.createPassthrough!;
    mute.client!.createPassthrough = (sink, answering, headers) => ({
      ...relay(sink, answering, headers),
      writeFault() {
        throw new Error("no words");
      },
    });
    await using up = await endless("x".repeat(60_000), START);
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: to(up.base, mute),
      bounds: { responseBytes: 3_000_000 },
    });
    // It is truncated: without an error it would look complete.
    await expect((await s.ask({ ...ASK, stream: true })).text()).rejects.toThrow("terminated");
    expect(s.journal.filter((c) => c.do === "settle")).toHaveLength(1);
  });
});

// A large body: however it arrives, the provider reads the client's bytes with its model in place,
// and announced bytes take no memory.
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Auth } from "tollgate/plugin";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { waitUntilStable, turnEventLoop, until } from "../../kit/wait.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const MB = 1024 * 1024;
const ANSWER = JSON.stringify({
  model: "m",
  say: "ok",
  usage: { input: 1, output: 1 },
  end: "stop",
});

const provider = () =>
  startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(ANSWER);
  });

const gate = (base: string, auth: Auth<any> = "none") =>
  startTestServices({
    frontend: createToyProtocol(),
    bodyBytes: 32 * MB,
    providers: { p: { endpoints: [{ protocol: createToyProtocol(), base, auth }] } },
  });

async function client(url: string, framing: string): Promise<Socket & { said(): string }> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  let text = "";
  socket.on("data", (chunk) => (text += chunk));
  socket.write(
    `POST /toy HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`,
  );
  return Object.assign(socket, { said: () => text });
}

/** Its model is at the start, in the middle, or at the end. */
const bodyOf = (size: number, at: number, model = "p/m"): string => {
  const text = "0123456789".repeat(Math.ceil(size / 10));
  const cut = Math.floor(text.length * at);
  return `{ "x" : "${text.slice(0, cut)}", "model":"${model}" , "text":"é${text.slice(cut)}"}`;
};

describe("the provider receives the client's bytes with its own model name", () => {
  it.each(["length", "chunked"])("with %s, in any chunks", async (framing) => {
    await using up = await provider();
    await using s = await gate(up.base);
    const sizes = fc.integer({ min: 100_000, max: 3 * MB });
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.constantFrom(0, 0.5, 1), cuts, async (size, at, list) => {
        const body = Buffer.from(bodyOf(size, at));
        const socket = await client(
          s.url,
          framing === "length" ? `content-length: ${body.length}` : "transfer-encoding: chunked",
        );
        const ends = [...list.map((one) => Math.floor(one * body.length)), body.length];
        let from = 0;
        for (const to of ends.toSorted((a, b) => a - b)) {
          if (to === from) continue;
          const piece = body.subarray(from, to);
          if (framing === "chunked") socket.write(`${piece.length.toString(16)}\r\n`);
          socket.write(piece);
          if (framing === "chunked") socket.write("\r\n");
          from = to;
          await turnEventLoop(1);
        }
        if (framing === "chunked") socket.write("0\r\n\r\n");
        await until(() => socket.said().includes('"end":"stop"'));
        socket.destroy();
        const { body: read, headers } = up.asked.pop()!;
        expect(read === bodyOf(size, at, "m")).toBe(true);
        expect(headers["content-length"]).toBe(String(Buffer.byteLength(read)));
      }),
      { numRuns: 8 },
    );
  });

  it("a signer receives the whole body, and this body is sent", async () => {
    const signed: string[] = [];
    await using up = await provider();
    await using s = await gate(up.base, ({ body }) => {
      signed.push(Buffer.from(body!).toString());
      return { "x-signed": "1", "content-length": String(body!.length) };
    });
    const res = await s.ask(JSON.parse(bodyOf(MB, 0)) as object);
    expect(res.status).toBe(200);
    expect(signed[0] === up.asked[0]!.body).toBe(true);
    expect(up.asked[0]!.headers["x-signed"]).toBe("1");
  });

  it("a response before the end of the body is used, and the next request gets a connection", async () => {
    let asked = 0;
    const hasty = createServer((_req, res) => {
      asked++;
      res.writeHead(200, { "content-type": "application/json" }).end(ANSWER);
    });
    await once(hasty.listen(0, "127.0.0.1"), "listening");
    await using s = await gate(`http://127.0.0.1:${(hasty.address() as AddressInfo).port}`);
    for (let i = 0; i < 5; i++) {
      const res = await s.ask(JSON.parse(bodyOf(3 * MB, 0)) as object);
      expect([res.status, ((await res.json()) as { say: string }).say]).toEqual([200, "ok"]);
    }
    expect(asked).toBe(5);
    hasty.closeAllConnections();
    hasty.close();
  });
});

describe("a body with a declared length", () => {
  it("gets no memory before an eighth of it has arrived", async () => {
    await using s = await gate("http://127.0.0.1:9");
    const before = process.memoryUsage().arrayBuffers;
    const sockets: Socket[] = [];
    for (let i = 0; i < 6; i++) {
      const socket = await client(s.url, `content-length: ${30 * MB}`);
      socket.write(Buffer.alloc(MB, " "));
      sockets.push(socket);
    }
    await waitUntilStable(() => process.memoryUsage().arrayBuffers);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30 * MB);
    for (const socket of sockets) socket.destroy();
  });

  it("that is incomplete reaches no provider", async () => {
    await using up = await provider();
    await using s = await gate(up.base);
    const socket = await client(s.url, `content-length: ${2 * MB}`);
    socket.write(bodyOf(MB, 0));
    await turnEventLoop();
    socket.end();
    await once(socket, "close");
    await turnEventLoop();
    expect(up.asked).toHaveLength(0);
    socket.destroy();
  });

  it("ends at its declared length: the rest is another request", async () => {
    await using up = await provider();
    await using s = await gate(up.base);
    const body = Buffer.from(bodyOf(MB, 0));
    const socket = await client(s.url, `content-length: ${body.length}`);
    socket.write(Buffer.concat([body, Buffer.from("more of it\r\n\r\n")]));
    await until(() => socket.said().includes('"end":"stop"') || socket.destroyed);
    for (const { body: read } of up.asked) expect(read === bodyOf(MB, 0, "m")).toBe(true);
    socket.destroy();
  });
});

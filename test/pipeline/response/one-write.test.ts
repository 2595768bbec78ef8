// Output of a relay in one push(), and of an encoder for one chunk, is sent to the client's socket
// in one write.
import { Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

/** Both of Node's methods that pass bytes to the system, by their private names. */
const spied = Socket.prototype as unknown as {
  _write(chunk: Buffer | string, encoding: string, done: () => void): void;
  _writev(chunks: readonly { chunk: Buffer | string }[], done: () => void): void;
};
const { _write, _writev } = spied;
afterEach(() => Object.assign(spied, { _write, _writev }));

/** Writes to clients of this port, one text each. */
function writesTo(port: number): string[] {
  const writes: string[] = [];
  const note = (socket: Socket, text: string) =>
    void (socket.localPort === port && writes.push(text));
  spied._write = function (this: Socket, chunk, encoding, done) {
    note(this, String(chunk));
    _write.call(this, chunk, encoding, done);
  };
  spied._writev = function (this: Socket, chunks, done) {
    note(this, chunks.map(({ chunk }) => String(chunk)).join(""));
    _writev.call(this, chunks, done);
  };
  return writes;
}

it.each(["toy", "other"])("in the mode to %s", async (id) => {
  const begun = Promise.withResolvers<void>();
  const many = Array.from({ length: 20 }, (_, i) => `${JSON.stringify({ say: `word-${i}` })}\n`);
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(`${JSON.stringify({ id: "u", model: "m" })}\n${JSON.stringify({ say: "first" })}\n`);
    void begun.promise.then(() => {
      res.write(many.join(""));
      setTimeout(
        () => res.end(`${JSON.stringify({ usage: { input: 1, output: 1 }, end: "stop" })}\n`),
        50,
      );
    });
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(id), base: up.base, auth: "none" }] },
    },
  });
  const writes = writesTo(Number(new URL(s.url).port));
  const answer = await s.ask({ model: "p/m", text: "x", stream: true });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("first")) text += (await reader.read()).value;
  begun.resolve();
  for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
  for (let i = 0; i < 20; i++) expect(text).toContain(`word-${i}`);
  expect(writes.filter((one) => one.includes("word-"))).toHaveLength(1);
});

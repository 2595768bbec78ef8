// Stop sequences for a provider whose format has none.
import { encodeText, createResponseContext } from "tollgate/testing";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import type { Driver, Outcome } from "./way.ts";

async function asked(from: string, more: object): Promise<Outcome> {
  const to = chats[from]!;
  await using up = await startBackend((_req, res) => {
    const said = encodeText(
      chats["responses"]!.server!,
      [
        { type: "start", id: "u", model: "m" },
        { type: "open", index: 0, block: { type: "text" } },
        { type: "delta", index: 0, text: "Hello" },
        { type: "close", index: 0 },
        { type: "usage", usage: { input: 1, output: 1 } },
        { type: "finish", reason: "stop" },
      ],
      createResponseContext({ stream: true }),
    );
    res.writeHead(200, { "content-type": "text/event-stream" }).end(said);
  });
  await using s = await startTestServices({
    frontend: to,
    providers: {
      p: { endpoints: [{ protocol: chats["responses"]!, base: up.base, auth: "none" as const }] },
    },
  });
  const got = await s.ask({ ...LEAST[from], model: "p/m", stream: true, ...more });
  const text = await got.text();
  return got.status === 200 ? "passes" : { status: got.status, text, to: to as never };
}

const all = (texts: (n: number) => readonly string[]): Driver => ({
  "from messages": { drive: (n) => asked("messages", { stop_sequences: texts(n) }) },
  "from gemini": {
    drive: (n) => asked("gemini", { generationConfig: { stopSequences: texts(n) } }),
  },
});

export const stops = {
  stopSequences: all((n) => Array.from({ length: n }, (_, i) => `<${i}>`)),
  stopSequenceLength: all((n) => ["x".repeat(n)]),
};

// A native endpoint receives its response as it arrives. Tested by the order of events: upstream
// sends its second part only when the client has the first.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { defineProvider } from "tollgate/plugin";
import { startTestGateway } from "tollgate/testing";
import { expect, it } from "vitest";
import { until } from "../../kit/wait.ts";

/** An upstream whose chunks the test sends one by one. */
async function upstreamOf(): Promise<
  AsyncDisposable & { url: string; answers: ServerResponse[]; closed: number }
> {
  const answers: ServerResponse[] = [];
  const server = createServer((req, res) => {
    req.resume().on("end", () => answers.push(res));
    res.on("close", () => at.closed++);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const at = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    closed: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
  return at;
}

type How = "each piece" | "head alone" | "until its end";

/** Emits each chunk of upstream as a delta. `how`: how it reads the body. */
const plugin = (url: string, how: How) =>
  defineProvider({
    api: 1,
    name: "pieces",
    summary: "Pieces of text",
    setup: () => ({
      endpoints: [
        {
          operation: "chat",
          base: url,
          streaming: "always",
          async *run(_request, call) {
            const answer = await call.fetch("say", { method: "POST", body: "{}" });
            yield { type: "start" };
            yield { type: "open", index: 0, block: { type: "text" } };
            if (how === "head alone") yield { type: "delta", index: 0, text: "head" };
            else
              for await (const piece of answer.body!) {
                const text = new TextDecoder().decode(piece);
                if (text === "END") break;
                yield { type: "delta", index: 0, text };
              }
            yield { type: "close", index: 0 };
            yield { type: "usage", usage: { input: 1, output: 1 } };
            yield { type: "finish", reason: "stop" };
          },
        },
      ],
    }),
  });

async function scene(how: How) {
  const up = await upstreamOf();
  const at = await startTestGateway({
    plugins: { pieces: plugin(up.url, how) },
    yaml: "frontends: [chat-completions]\nproviders: { p: { use: pieces } }\nretries: { per_target: 1, total: 1 }",
  });
  const ask = () =>
    fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "p/m",
        stream: true,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
  return {
    up,
    at,
    ask,
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

/** Reads until the text has arrived, and returns everything. */
async function readTo(reader: ReadableStreamDefaultReader<Uint8Array>, text: string) {
  let all = "";
  while (!all.includes(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`It ended without ${text}: ${all}`);
    all += new TextDecoder().decode(value);
  }
  return all;
}

it("the client receives the first part while the upstream holds the second", async () => {
  await using of = await scene("each piece");
  const asked = of.ask();
  await until(() => of.up.answers.length === 1);
  const [answer] = of.up.answers;
  answer!.writeHead(200).write("one");
  const reader = (await asked).body!.getReader();
  await readTo(reader, "one");
  answer!.write("two");
  await readTo(reader, "two");
  answer!.end();
  await readTo(reader, "[DONE]");
});

it("an upstream that keeps its connection open after the end blocks no client and no connection", async () => {
  await using of = await scene("until its end");
  const asked = of.ask();
  await until(() => of.up.answers.length === 1);
  const [answer] = of.up.answers;
  answer!.writeHead(200).write("one");
  const reader = (await asked).body!.getReader();
  await readTo(reader, "one");
  answer!.write("END");
  await readTo(reader, "[DONE]");
  await until(() => of.up.closed === 1);
});

it("a body that is not read blocks no connection", async () => {
  await using of = await scene("head alone");
  const asked = of.ask();
  await until(() => of.up.answers.length === 1);
  of.up.answers[0]!.writeHead(200).write("one");
  await readTo((await asked).body!.getReader(), "[DONE]");
  await until(() => of.up.closed === 1);
});

it("a truncated body ends with the provider's error, never as a complete response", async () => {
  await using of = await scene("each piece");
  const asked = of.ask();
  await until(() => of.up.answers.length === 1);
  const [answer] = of.up.answers;
  answer!.writeHead(200).write("one");
  const reader = (await asked).body!.getReader();
  await readTo(reader, "one");
  answer!.destroy();
  const rest = await readTo(reader, "error");
  expect(rest).toContain("truncated");
  expect(rest).not.toContain("[DONE]");
  expect(of.at.storeCommands.findLast((row) => row.do === "settle")).toMatchObject({
    state: "estimated",
  });
});

// A finished request is removed by the next collections of the young generation. Otherwise it is
// promoted to the old generation and kept until a full collection: at thousands of requests per
// second, this took a third of all CPU time. The cause was always a closure in a public field of a
// class instance: V8 keeps functions that it finds there. It does not keep methods and private
// fields.
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { startDaemon } from "../../kit/process/daemon.ts";
import { sendModern } from "../../plugins/frontends/mcp/client.ts";
import { startFakeServer } from "../../plugins/frontends/mcp/fake-server.ts";
import { WITNESS } from "./live-requests.ts";

test.each([["whole"], ["stream"]])("%s", async (form) => {
  const upstream = createServer((req, res) => {
    req.resume().once("end", () => {
      const said = { id: "c1", object: "chat.completion", created: 1, model: "m" };
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
      if (form === "whole") {
        res.setHeader("content-type", "application/json");
        const message = { role: "assistant", content: "x".repeat(2_000) };
        const choices = [{ index: 0, message, finish_reason: "stop" }];
        return void res.end(JSON.stringify({ ...said, choices, usage }));
      }
      res.setHeader("content-type", "text/event-stream");
      const chunk = (delta: object, finish_reason: string | null, more: object = {}) =>
        res.write(
          `data: ${JSON.stringify({ ...said, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`,
        );
      chunk({ role: "assistant", content: "x" }, null);
      chunk({}, "stop", { usage });
      res.end("data: [DONE]\n\n");
    });
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  try {
    await using gateway = await startDaemon({
      yaml: `
frontends: [chat-completions]
middleware: [auth, zdr, limits, usage, ./witness.ts]
providers:
  up: { use: openai-compatible, with: { base_url: "http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1", list_models: false } }
`,
      files: { "witness.ts": WITNESS },
    });
    const ask = async (headers: Record<string, string> = {}) => {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${gateway.key}`,
          "content-type": "application/json",
          ...headers,
        },
        body: JSON.stringify({
          model: "up/m",
          stream: form === "stream",
          messages: [{ role: "user", content: "hi" }],
        }),
      });
      await answer.text();
      expect(answer.status).toBe(200);
      return answer.headers.get("x-alive");
    };
    for (let i = 0; i < 20; i++) await ask();
    await ask({ "x-begin": "1" });
    for (let i = 0; i < 40; i++) await ask();
    const [alive, all] = (await ask({ "x-count": "1" }))!.split(" of ").map(Number);
    expect(all).toBe(41);
    // The last request on each connection is still referenced.
    expect(alive).toBeLessThan(8);
  } finally {
    upstream.closeAllConnections();
    upstream.close();
  }
});

test("a tool's call", async () => {
  await using server = await startFakeServer({ revision: "2026-07-28" });
  await using gateway = await startDaemon({
    yaml: `
frontends: [{ use: mcp, with: { servers: { one: { url: "${server.url}" } } } }]
middleware: [auth, zdr, limits, usage, ./witness.ts]
providers: { demo: { use: demo } }
`,
    files: { "witness.ts": WITNESS },
  });
  const client = { url: `${gateway.url}/mcp/one`, key: gateway.key };
  const call = async (headers: Record<string, string> = {}) => {
    const params = { name: "echo", arguments: { text: "x".repeat(2_000) } };
    const answer = await sendModern(client, "tools/call", params, { headers });
    expect(answer.error).toBeUndefined();
    return answer.headers.get("x-alive");
  };
  for (let i = 0; i < 20; i++) await call();
  await call({ "x-begin": "1" });
  for (let i = 0; i < 40; i++) await call();
  const [alive, all] = (await call({ "x-count": "1" }))!.split(" of ").map(Number);
  expect(all).toBe(41);
  expect(alive).toBeLessThan(8);
});

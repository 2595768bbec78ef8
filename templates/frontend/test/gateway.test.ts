// Runs the plugin in a gateway with a fake upstream.
import { startGateway } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

test("responds on each path", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin },
    config: {
      frontends: ["acme"],
      providers: { demo: { use: "demo" } },
    },
  });
  const ask = (path: string, body: object) =>
    fetch(`${at.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "Hello" }], ...body }),
    });
  for (const answer of [
    await ask("/acme/chat", { model: "demo/echo" }),
    await ask("/acme/demo/echo/chat", { model: "echo" }),
  ]) {
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
  }
  expect(await (await fetch(`${at.url}/acme/health`)).json()).toEqual({ ok: true });
  expect(at.calls).toHaveLength(2);
});

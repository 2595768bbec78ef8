import type { ServerResponse } from "node:http";
import { H3, type H3Event } from "h3";
import { afterEach, expect, test } from "vitest";
import { createNodeHandler } from "../../../src/runtime/http/h3-adapter.ts";
import {
  createAppHandler,
  createUnroutedResponder,
} from "../../../src/runtime/http/generation-app.ts";
import { listen, type ListenerHandle } from "../../../src/runtime/http/listener.ts";
import { turnEventLoop } from "../../kit/wait.ts";

let listening: ListenerHandle | undefined;
afterEach(() => listening?.close(0));

const handled = Symbol.for("h3.handled");
const nodeOf = (event: H3Event) => event.runtime!.node!.res as unknown as ServerResponse;

async function ask(
  answer: (event: H3Event) => unknown,
  path = "/x",
  ...more: [ReturnType<typeof createUnroutedResponder>?]
): Promise<Response> {
  const app = new H3({ silent: true });
  app.post("/x", answer as never);
  listening = await listen({
    host: "127.0.0.1",
    port: 0,
    handler: createNodeHandler({ loadRoutes: () => createAppHandler(app, ...more) }),
  });
  return fetch(`${listening.url}${path}`, { method: "POST", body: "hello" });
}

test("returns a handler's result as the response", async () => {
  const response = await ask(async (event) => ({ got: await event.req.text() }));
  expect([response.status, await response.json()]).toEqual([200, { got: "hello" }]);
});

test("leaves a response that a handler writes itself alone, however late it ends", async () => {
  const response = await ask(async (event) => {
    const res = nodeOf(event);
    res.writeHead(201, { "x-own": "yes" });
    res.write("one ");
    void turnEventLoop().then(() => res.end("two"));
    return handled;
  });
  expect([response.status, response.headers.get("x-own"), await response.text()]).toEqual([
    201,
    "yes",
    "one two",
  ]);
});

test("sends nothing for a handler that closed the connection", async () => {
  await expect(
    ask((event) => {
      nodeOf(event).destroy();
      return handled;
    }),
  ).rejects.toThrow("fetch failed");
});

test("a response that fails during sending ends the connection, not the process", async () => {
  const response = await ask(
    () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(new TextEncoder().encode("x"));
            await turnEventLoop();
            controller.error(new Error("broken"));
          },
        }),
      ),
  );
  await expect(response.text()).rejects.toThrow();
});

test("a failed handler is the gateway's error, and an invalid path is the client's", async () => {
  const failing = () => {
    throw new Error("planted");
  };
  for (const [path, status, code] of [
    ["/x", 500, "Internal error."],
    ["/%ff", 400, "Invalid percent-encoding in the path."],
  ] as const) {
    const response = await ask(failing, path, createUnroutedResponder([]));
    expect([response.status, await response.text()]).toEqual([
      status,
      expect.stringContaining(code),
    ]);
    await listening!.close(0);
  }
});

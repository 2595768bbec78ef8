// A generation that ends: subrequests of its last requests continue, and endless responses are
// notified.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { startDaemon } from "../../kit/process/daemon.ts";
import { killUntilExit } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

const GUARD = `
export default {
  "~tollgate": "middleware", api: 1, name: "guard", summary: "Asks an address", sends: "nowhere",
  options: { type: "object", additionalProperties: false, required: ["url"], properties: {
    url: { type: "string", "x-origin": true, description: "Where the guard listens" } } },
  setup: ({ url }, ctx) => ({
    async attempt(call, next) {
      const said = await ctx.fetch(url);
      if (!said.ok) throw new Error("no");
      return next();
    },
  }),
};`;

it("a hook's fetch survives a reload as long as its request", async () => {
  const asked: ServerResponse[] = [];
  const guard = createServer((_req, res) => void asked.push(res)).listen(0, "127.0.0.1");
  await once(guard, "listening");
  const url = `http://127.0.0.1:${(guard.address() as AddressInfo).port}/`;
  const yaml = (more = "") => `frontends: [chat-completions]
middleware: [auth, { use: ./guard.mjs, with: { url: "${url}" } }]
providers: { demo: { use: demo } }
${more}`;
  await using gateway = await startDaemon({ yaml: yaml(), files: { "guard.mjs": GUARD } });
  const got = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  });
  await until(() => asked.length === 1);
  await gateway.write(yaml("models: { other: [demo/echo] }\n"));
  await gateway.line(({ msg }) => msg === "reloaded");
  asked[0]!.end("ok");
  const res = await got;
  expect(res.status, await res.text()).toBe(200);
  guard.close();
});

const ENDLESS = `
export default {
  "~tollgate": "frontend", api: 1, name: "endless", summary: "Goes on", 
  setup: (_options, ctx) => ({
    routes: [{ method: "GET", path: "/on", allowUnauthenticated: true, handle: () => ({ status: 200, body: (async function* () {
      yield "on ";
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve, { once: true }));
      yield "and over";
    })() }) }],
  }),
};`;

it.each([
  ["a reload", 1],
  ...(NIGHTLY ? [["a stop", 1] as const] : []),
  ["a stop of workers", 2],
] as const)("%s can end a response that has no end of its own", async (what, workers) => {
  const yaml = (more = "") => `workers: ${workers}
frontends: [chat-completions, ./endless.mjs]
middleware: [auth]
providers: { demo: { use: demo } }
${more}`;
  await using gateway = await startDaemon({ yaml: yaml(), files: { "endless.mjs": ENDLESS } });
  const res = await fetch(`${gateway.url}/on`);
  const reader = res.body!.getReader();
  let text = Buffer.from((await reader.read()).value!).toString();
  expect(text).toBe("on ");
  if (what === "a reload") await gateway.write(yaml("models: { other: [demo/echo] }\n"));
  else gateway.kill("SIGTERM");
  for (let next = await reader.read(); !next.done; next = await reader.read())
    text += Buffer.from(next.value).toString();
  expect(text).toBe("on and over");
  if (what !== "a reload") expect((await gateway.exit).code).toBe(0);
  // Nothing had to be aborted.
  expect(gateway.output()).not.toContain("drain timeout reached");
});

it.each(NIGHTLY ? [1, 2] : [2])(
  "a shutdown is announced first and all requests are served, with %i workers",
  async (workers) => {
    const yaml = `workers: ${workers}
shutdown: { announce: 10m, timeout: 20s }
frontends: [chat-completions]
middleware: [auth]
providers: { demo: { use: demo } }
`;
    await using gateway = await startDaemon({ yaml });
    const ready = () => fetch(`${gateway.url}/readyz`, { headers: { connection: "close" } });
    expect((await ready()).status).toBe(200);
    const ask = () =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
      });
    // Its connection stays open for the next request.
    expect((await (await ask()).text()).includes("Hi")).toBe(true);
    gateway.kill("SIGTERM");
    await until(async () => (await ready()).status === 503);
    for (let i = 0; i < 6; i++) {
      const res = await ask();
      expect(res.status, await res.text()).toBe(200);
      expect(res.headers.get("connection")).toBe("close");
    }
    expect((await killUntilExit(gateway, "SIGTERM")).code).toBe(0);
  },
);

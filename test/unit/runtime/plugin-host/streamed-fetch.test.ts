// `ctx.fetchStream`: every body arrives whole and in order, is bounded, and ends with its request.
import fc from "fast-check";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { getFault, type StreamedRequestInit } from "tollgate/plugin";
import { StreamedRequests } from "../../../../src/runtime/plugin-host/streamed-fetch.ts";
import { until } from "../../../kit/wait.ts";

async function serving(listener: RequestListener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}/x?a=b`);
  const closed = new AbortController();
  const requests = new StreamedRequests(closed.signal);
  const reach = { reach: undefined, dispatcher: undefined, allowedOrigins: new Set([url.origin]) };
  return {
    closed,
    server,
    port,
    send: (init: Partial<StreamedRequestInit> = {}) =>
      requests.send(url, { idleMs: 60_000, ...init }, reach),
    async [Symbol.asyncDispose]() {
      closed.abort();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const problemOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (problem: unknown) => getFault(problem) ?? problem,
  );

it("delivers each body whole and in order, up to its limit, on connections that it keeps", async () => {
  let pieces: readonly Uint8Array[] = [];
  await using at = await serving((req, res) => {
    req.resume();
    req.on("end", () => {
      for (const piece of pieces) if (piece.length > 0) res.write(piece);
      res.end();
    });
  });
  let connections = 0;
  at.server.on("connection", () => connections++);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 40_000 }), { maxLength: 6 }),
      fc.constantFrom("bytes", "read", "cancel", "stop"),
      fc.nat(200_000),
      async (sent, way, maxBytes) => {
        pieces = sent;
        const whole = Buffer.concat(sent);
        const answer = await at.send({ method: "POST", body: "{}" });
        expect(answer.status).toBe(200);
        if (way === "bytes") {
          const got = await answer.bytes(maxBytes);
          expect(got === undefined).toBe(whole.length > maxBytes);
          if (got) expect(got.equals(whole)).toBe(true);
        } else if (way === "read") {
          const got: Buffer[] = [];
          await answer.read((piece) => void got.push(piece));
          expect(Buffer.concat(got).equals(whole)).toBe(true);
        } else if (way === "stop") {
          let count = 0;
          await answer.read(() => {
            count++;
            answer.cancel();
          });
          expect(count).toBe(whole.length > 0 ? 1 : 0);
        } else answer.cancel();
        await expect(answer.read(() => undefined)).rejects.toThrow("read or canceled");
      },
    ),
    { numRuns: 60 },
  );
  // Each request waits for its response only, so two bodies that were canceled can be on their way.
  expect(connections).toBeLessThan(20);
});

it("ends a request with its signal, with the generation, and after the idle time", async () => {
  let hasHead = true;
  const open = new Set<unknown>();
  await using at = await serving((_, res) => {
    open.add(res);
    res.on("close", () => open.delete(res));
    if (hasHead) res.writeHead(200).write("first");
  });
  for (const early of [false, true]) {
    hasHead = !early;
    const canceled = new AbortController();
    const sent = at.send({ signal: canceled.signal });
    const reading = early ? sent : sent.then((answer) => answer.bytes(100));
    await until(() => open.size >= 1);
    if (!early) await sent;
    canceled.abort();
    expect(await problemOf(reading)).toMatchObject({ kind: "canceled" });
    await until(() => open.size === 0);
    expect(await problemOf(at.send({ signal: canceled.signal }))).toMatchObject({
      kind: "canceled",
    });
    expect(
      await problemOf(early ? at.send({ idleMs: 50 }) : bodyOf(at.send({ idleMs: 50 }))),
    ).toMatchObject({
      kind: "timeout",
      code: "upstream_timeout",
    });
    await until(() => open.size === 0);
  }
  hasHead = true;
  const bodies = [1, 2, 3].map(() => problemOf(bodyOf(at.send())));
  await until(() => open.size >= 3);
  at.closed.abort();
  for (const problem of await Promise.all(bodies))
    expect(problem).toMatchObject({ kind: "canceled" });
  expect(await problemOf(at.send())).toMatchObject({ kind: "canceled" });
  await until(() => open.size === 0);
});

const bodyOf = async (sent: ReturnType<StreamedRequests["send"]>) => (await sent).bytes(1_000_000);

it("a body that is cut off, or whose reader fails, is an error", async () => {
  await using at = await serving((_, res) => {
    res.writeHead(200, { "content-length": "100" });
    res.write("first", () => setImmediate(() => res.destroy()));
  });
  expect(await problemOf(bodyOf(at.send()))).toMatchObject({ kind: "upstream", code: "truncated" });
  const answer = await at.send();
  const failing = answer.read(() => {
    throw new Error("unreadable");
  });
  await expect(failing).rejects.toThrow("unreadable");
});

it("joins the values of a repeated header, except cookies", async () => {
  await using at = await serving((_, res) => {
    const headers: [string, string][] = [
      ["Content-Type", "application/json"],
      ["Content-Type", "text/plain"],
      ["WWW-Authenticate", "Basic"],
      ["WWW-Authenticate", 'Bearer scope="a"'],
      ["Set-Cookie", "a=1"],
      ["Set-Cookie", "b=2"],
      ["X-Once", "1"],
    ];
    res.writeHead(200, headers.flat()).end();
  });
  const answer = await at.send();
  answer.cancel();
  expect(answer.headers).toMatchObject({
    "content-type": "application/json, text/plain",
    "www-authenticate": 'Basic, Bearer scope="a"',
    "set-cookie": ["a=1", "b=2"],
    "x-once": "1",
  });
});

it.each([
  ["tls_failed", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["connect_failed", "ECONNRESET"],
  ["connect_failed", "EHOSTUNREACH"],
])("states %s for %s only if nothing was sent", async (code, causeCode) => {
  const cause = Object.assign(new Error("failed"), { code: causeCode });
  for (const isSent of [false, true]) {
    type Handler = Record<"onRequestStart" | "onResponseError", (...of: unknown[]) => void>;
    const dispatch = (_: object, handler: Handler) => {
      if (isSent) handler.onRequestStart({});
      handler.onResponseError(undefined, cause);
    };
    const sent = new StreamedRequests(new AbortController().signal).send(
      new URL("http://tools.example"),
      { idleMs: 1_000 },
      { reach: undefined, dispatcher: { dispatch } as never, allowedOrigins: new Set() },
    );
    const expected = isSent ? "upstream_disconnected" : code;
    expect(await problemOf(sent)).toMatchObject({ kind: "upstream", code: expected });
  }
});

it("states that nothing was sent if there is no server, or none with TLS", async () => {
  const closed = new AbortController();
  let port = 0;
  const failureAt = (scheme: string) => {
    const url = new URL(`${scheme}://127.0.0.1:${port}`);
    const allowedOrigins = new Set([url.origin]);
    const reach = { reach: undefined, dispatcher: undefined, allowedOrigins };
    return problemOf(new StreamedRequests(closed.signal).send(url, { idleMs: 60_000 }, reach));
  };
  {
    await using at = await serving(() => expect.unreachable());
    port = at.port;
    expect(await failureAt("https")).toMatchObject({ code: "tls_failed" });
  }
  expect(await failureAt("http")).toMatchObject({ code: "connect_failed" });
});

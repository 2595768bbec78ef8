import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  DEFAULT_LIMITS,
  listen,
  type ListenerHandle,
  type ListenOptions,
} from "../../../../src/runtime/http/listener.ts";
import { toListenTarget } from "../../../../src/runtime/http/listen-targets.ts";
import { markAsStreamed } from "../../../../src/lib/net/streamed-bodies.ts";
import { getFault } from "../../../../src/model/error.ts";
import { installTestClock, type TestClock } from "../../../kit/clock.ts";
import { turnEventLoop, until } from "../../../kit/wait.ts";
import { dial, say } from "./raw-client.ts";

const open: ListenerHandle[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) {
    each.destroy();
    await each.close(0);
  }
});

async function up(
  handler: RequestListener,
  options: Partial<ListenOptions> = {},
): Promise<ListenerHandle> {
  const listening = await listen({ host: "127.0.0.1", port: 0, handler, ...options });
  open.push(listening);
  return listening;
}

/** Passes time in seconds, during which both sides can read and write. */
async function pass(time: TestClock, ms: number, each: () => void = () => {}): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    each();
    await turnEventLoop(10);
    time.skip(1_000);
    await turnEventLoop(10);
  }
}

const readAll = async (req: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of req) text += (chunk as Buffer).toString();
  return text;
};

/** Reads the whole body and reports its size. Records the requests that it saw. */
function echo(): { handler: RequestListener; seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    handler: (req, res) => {
      seen.push(`${req.method} ${req.url}`);
      if (req.headers.expect !== undefined) res.writeContinue();
      void readAll(req).then(
        (text) => res.end(`got ${text.length} at ${req.url}`),
        () => res.destroy(),
      );
    },
  };
}

const request = (lines: string[], body = "") => [...lines, "", body].join("\r\n");
const status = (answer: string) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
const answers = (text: string) => text.match(/HTTP\/1\.1 \d{3} /g)?.length ?? 0;

describe("rejected before the handler", () => {
  const H = "Host: localhost";
  const table: [name: string, status: number, text: string][] = [
    ["no Host", 400, request(["GET / HTTP/1.1"])],
    ["no Host in HTTP/1.0", 400, request(["GET / HTTP/1.0"])],
    ["two Hosts", 400, request(["GET / HTTP/1.1", H, "Host: localhost"])],
    ["a Host with a path", 400, request(["GET / HTTP/1.1", "Host: localhost/x"])],
    ["a Host with a user", 400, request(["GET / HTTP/1.1", "Host: a@localhost"])],
    ["an empty Host", 400, request(["GET / HTTP/1.1", "Host:"])],
    ["somebody else's Host", 421, request(["GET / HTTP/1.1", "Host: evil.test:8787"])],
    ["a Host that ends like ours", 421, request(["GET / HTTP/1.1", "Host: localhost.evil.test"])],
    [
      "Transfer-Encoding identity",
      400,
      request(["POST / HTTP/1.1", H, "Transfer-Encoding: identity"]),
    ],
    [
      "gzip, chunked",
      400,
      request(["POST / HTTP/1.1", H, "Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"),
    ],
    [
      "chunked twice",
      400,
      request(
        ["POST / HTTP/1.1", H, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        "0\r\n\r\n",
      ),
    ],
    [
      "chunked in HTTP/1.0",
      400,
      request(["POST / HTTP/1.0", H, "Transfer-Encoding: chunked"], "0\r\n\r\n"),
    ],
    [
      "length and chunked",
      400,
      request(
        ["POST / HTTP/1.1", H, "Content-Length: 5", "Transfer-Encoding: chunked"],
        "0\r\n\r\n",
      ),
    ],
    [
      "two lengths",
      400,
      request(["POST / HTTP/1.1", H, "Content-Length: 5", "Content-Length: 6"], "hello"),
    ],
    [
      "equal lengths, twice",
      400,
      request(["POST / HTTP/1.1", H, "Content-Length: 5", "Content-Length: 5"], "hello"),
    ],
    ["a negative length", 400, request(["POST / HTTP/1.1", H, "Content-Length: -1"])],
    ["a length in hex", 400, request(["POST / HTTP/1.1", H, "Content-Length: 0x5"], "hello")],
    [
      "a compressed body",
      415,
      request(["POST / HTTP/1.1", H, "Content-Encoding: gzip", "Content-Length: 5"], "hello"),
    ],
    ["another Expect", 417, request(["POST / HTTP/1.1", H, "Expect: 200-ok", "Content-Length: 5"])],
    [
      "100-continue and more",
      417,
      request(["POST / HTTP/1.1", H, "Expect: 100-continue, x", "Content-Length: 5"]),
    ],
    ["TRACE", 405, request(["TRACE / HTTP/1.1", H])],
    ["CONNECT", 405, request(["CONNECT evil.test:443 HTTP/1.1", "Host: evil.test:443"])],
    [
      "a WebSocket",
      426,
      request(["GET / HTTP/1.1", H, "Connection: Upgrade", "Upgrade: websocket"]),
    ],
    [
      "an upgrade with a body",
      426,
      request(
        ["POST / HTTP/1.1", H, "Connection: Upgrade", "Upgrade: h2c", "Content-Length: 5"],
        "he",
      ),
    ],
    ["another host in the target", 400, request(["GET http://evil.test/ HTTP/1.1", H])],
    ["a user in the target", 400, request(["GET http://a@localhost/ HTTP/1.1", H])],
    ["another scheme in the target", 400, request(["GET ftp://localhost/ HTTP/1.1", H])],
    ["a star to read", 400, request(["GET * HTTP/1.1", H])],
    ["HTTP/0.9", 505, "GET /\r\n\r\n"],
    [
      "101 headers",
      431,
      request(["GET / HTTP/1.1", H, ...Array.from({ length: 100 }, (_, i) => `x-${i}: 1`)]),
    ],
    ["a head of 20 KB", 431, request(["GET / HTTP/1.1", H, `x: ${"a".repeat(20_000)}`])],
    [
      "an unlisted Origin",
      403,
      request(["POST / HTTP/1.1", H, "Origin: https://evil.test", "Content-Length: 0"]),
    ],
    ["the null Origin", 403, request(["POST / HTTP/1.1", H, "Origin: null", "Content-Length: 0"])],
    [
      "a preflight from there",
      403,
      request([
        "OPTIONS / HTTP/1.1",
        H,
        "Origin: https://evil.test",
        "Access-Control-Request-Method: POST",
      ]),
    ],
    [
      "two Authorizations",
      400,
      request(["GET / HTTP/1.1", H, "Authorization: Bearer a", "Authorization: Bearer b"]),
    ],
    ["a space before the colon", 400, request(["GET / HTTP/1.1", H, "X : 1"])],
    ["a folded line", 400, request(["GET / HTTP/1.1", H, "X: 1", " 2"])],
    ["bare line feeds", 400, "GET / HTTP/1.1\nHost: localhost\n\n"],
    ["no HTTP at all", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ];
  test.each(table)("%s: %i", async (_, expected, text) => {
    const { handler, seen } = echo();
    const told: [status: number, id: string][] = [];
    const { port } = await up(handler, {
      onRejected: (refusal, { id }) => told.push([refusal.status, id]),
    });
    // A second request after the first must never be answered, because it would be smuggled.
    const answer = await say(port, `${text}GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    expect([status(answer), answers(answer), seen]).toEqual([expected, 1, []]);
    expect(answer.toLowerCase()).toContain("connection: close");
    if (answer.includes("content-type")) {
      const body = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))) as Record<string, object>;
      expect(body).toMatchObject({ type: "error", error: { message: expect.any(String) } });
      // Data that the test queries later.
      const [, id] = /^x-request-id: (\S+)\r$/im.exec(answer) ?? [];
      expect(told).toEqual([[expected, id]]);
    }
  });
});

describe("accepted requests", () => {
  test.each([
    ["localhost", "localhost"],
    ["with a port, forwarded from anywhere", "localhost:9999"],
    ["an address", "127.0.0.1:80"],
    ["IPv6", "[::1]:8787"],
    ["in capitals", "LocalHost"],
    ["with the dot of the root", "localhost."],
    ["a name of the operator's", "gateway.local"],
  ])("Host: %s", async (_, host) => {
    const { handler } = echo();
    const { port } = await up(handler, { hosts: ["gateway.local"] });
    expect(
      await say(port, request(["GET /x HTTP/1.1", `Host: ${host}`, "Connection: close"])),
    ).toMatch(/^HTTP\/1\.1 200 [\s\S]*got 0 at \/x$/);
  });

  test("an absolute URL of a proxy client becomes a path", async () => {
    const { handler } = echo();
    const { port } = await up(handler);
    const lines = [
      "GET http://localhost:80/a?b=c HTTP/1.1",
      "Host: localhost:80",
      "Connection: close",
    ];
    expect(await say(port, request(lines))).toContain("got 0 at /a?b=c");
  });

  test("a chunked body, and one with HTTP/1.0", async () => {
    const { handler } = echo();
    const { port } = await up(handler);
    expect(
      await say(
        port,
        request(
          [
            "POST /c HTTP/1.1",
            "Host: localhost",
            "Transfer-Encoding: chunked",
            "Connection: close",
          ],
          "5\r\nhello\r\n0\r\n\r\n",
        ),
      ),
    ).toContain("got 5 at /c");
    expect(
      await say(port, request(["POST /d HTTP/1.0", "Host: localhost", "Content-Length: 2"], "hi")),
    ).toContain("got 2 at /d");
  });

  test("any Host on a public address, because it may be a load balancer's name", async () => {
    const { handler } = echo();
    const { port, url } = await up(handler, { host: "0.0.0.0" });
    expect(url).toBe(`http://127.0.0.1:${port}`);
    const lines = ["GET / HTTP/1.1", "Host: models.example.com", "Connection: close"];
    expect(status(await say(port, request(lines)))).toBe(200);
  });

  test("a page of a listed origin, with its preflight request", async () => {
    const { handler, seen } = echo();
    const { port } = await up(handler, { origins: ["https://ui.test"] });
    const preflight = await say(
      port,
      request([
        "OPTIONS /v1/chat/completions HTTP/1.1",
        "Host: localhost",
        "Origin: https://ui.test",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: authorization,x-stainless-os,x-evil",
        "Connection: close",
      ]),
    );
    expect(status(preflight)).toBe(204);
    expect(preflight).toMatch(/access-control-allow-headers: .*authorization.*x-stainless-os\r\n/);
    expect(preflight).not.toContain("x-evil");
    expect(seen).toEqual([]);
    const lines = [
      "GET / HTTP/1.1",
      "Host: localhost",
      "Origin: https://ui.test",
      "Connection: close",
    ];
    expect(await say(port, request(lines))).toContain(
      "access-control-allow-origin: https://ui.test",
    );
  });

  test("many requests on a connection, and the response announces its end", async () => {
    const { handler, seen } = echo();
    const { port } = await up(handler, { limits: { requestsPerSocket: 3 } });
    const client = await dial(port);
    for (let i = 1; i <= 3; i++) {
      client.send(request([`POST /${i} HTTP/1.1`, "Host: localhost", "Content-Length: 2"], "hi"));
      await client.until(new RegExp(`got 2 at /${i}`));
    }
    expect((await client.closed()).match(/Connection: close/g)).toHaveLength(1);
    expect(seen).toHaveLength(3);
  });
});

describe("a response before a small body has arrived", () => {
  const head = request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 5"]);
  const busy: RequestListener = (_, res) => void res.writeHead(503).end("busy");

  test("keeps the connection: the body is discarded, and the next request is served", async () => {
    const time = installTestClock();
    const { port } = await up(busy);
    const client = await dial(port);
    client.send(head);
    expect(await client.until(/busy/)).not.toMatch(/connection: close/i);
    client.send("hello");
    // Longer than the headers' timeout: the data was no headers.
    await pass(time, 2 * DEFAULT_LIMITS.headTimeoutMs);
    expect(client.isClosed).toBe(false);
    client.send(`${head}hel`);
    await client.until(/busy[^]*busy/);
    client.send(`lo${head}hello`);
    expect(answers(await client.until(/busy[^]*busy[^]*busy/))).toBe(3);
    client.socket.destroy();
  });

  test("does not wait for the body, and no second response follows", async () => {
    const time = installTestClock();
    const { port } = await up(busy);
    const client = await dial(port);
    client.send(head);
    await pass(time, DEFAULT_LIMITS.requestTimeoutMs + 3_000);
    const all = await client.closed();
    expect([answers(all), status(all)]).toEqual([1, 503]);
  });

  test("ends the connection if the body is large or its length is unknown", async () => {
    const { port } = await up(busy);
    for (const framing of ["Content-Length: 70000", "Transfer-Encoding: chunked"]) {
      const answer = await say(port, request(["POST / HTTP/1.1", "Host: localhost", framing]));
      expect([framing, answer.toLowerCase().includes("connection: close")]).toEqual([
        framing,
        true,
      ]);
    }
  });
});

describe("Expect: 100-continue", () => {
  const head = request([
    "POST / HTTP/1.1",
    "Host: localhost",
    "Expect: 100-continue",
    "Content-Length: 5",
  ]);

  test("is not confirmed if the handler rejects, and the connection ends", async () => {
    const { port } = await up((_, res) => res.writeHead(401).end("no"));
    const answer = await say(port, head);
    expect(status(answer)).toBe(401);
    expect(answer).not.toContain("100 Continue");
    expect(answer.toLowerCase()).toContain("connection: close");
  });

  test("is not confirmed if the request is rejected before the handler", async () => {
    const { handler } = echo();
    const { port } = await up(handler);
    const answer = await say(port, head.replace("localhost", "evil.test"));
    expect([status(answer), answers(answer)]).toEqual([421, 1]);
  });

  test("is confirmed when the body is read", async () => {
    const { handler } = echo();
    const { port } = await up(handler);
    const client = await dial(port);
    client.send(head);
    await client.until(/100 Continue\r\n\r\n/);
    client.send("hello");
    expect(await client.until(/got 5/)).not.toMatch(/connection: close/i);
    client.socket.destroy();
  });
});

describe("timeouts", () => {
  test("end slow request headers with a 408", async () => {
    const time = installTestClock();
    const { handler, seen } = echo();
    const { port } = await up(handler);
    const client = await dial(port);
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n");
    const drip = () => client.send("x: 1\r\n");
    await pass(time, DEFAULT_LIMITS.headTimeoutMs - 3_000, drip);
    expect(client.isClosed).toBe(false);
    await pass(time, 6_000, drip);
    const answer = await client.closed();
    expect([status(answer), answers(answer), seen]).toEqual([408, 1, []]);
  });

  test("close a silent connection without a response", async () => {
    const time = installTestClock();
    const { port } = await up(echo().handler);
    const client = await dial(port);
    await pass(time, DEFAULT_LIMITS.headTimeoutMs - 3_000);
    expect(client.isClosed).toBe(false);
    await pass(time, 6_000);
    expect(await client.closed()).toBe("");
  });

  test("end slow headers on a reused connection too", async () => {
    const time = installTestClock();
    const { port } = await up(echo().handler);
    const client = await dial(port);
    client.send(request(["GET /1 HTTP/1.1", "Host: localhost"]));
    await client.until(/got 0 at \/1/);
    await pass(time, 2 * DEFAULT_LIMITS.headTimeoutMs);
    expect(client.isClosed).toBe(false);
    client.send("GET /2 HTTP/1.1\r\nHost: localhost\r\n");
    await pass(time, DEFAULT_LIMITS.headTimeoutMs + 3_000, () => client.send("x: 1\r\n"));
    const answer = await client.closed();
    expect(answer).toMatch(/HTTP\/1\.1 408 /);
  });

  test("end a slow body with a 408, and the handler gets an error", async () => {
    const time = installTestClock();
    let aborted = false;
    const { port } = await up((req) => {
      req.on("data", () => {});
      req.on("error", () => (aborted = true));
    });
    const client = await dial(port);
    client.send(request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 1000"]));
    await pass(time, DEFAULT_LIMITS.requestTimeoutMs + 3_000, () => client.send("x"));
    expect(status(await client.closed())).toBe(408);
    await until(() => aborted);
  });

  test("leave a streamed body time while it arrives at the minimum rate", async () => {
    const time = installTestClock();
    let received = 0;
    const { port } = await up((req) => {
      markAsStreamed(req);
      req.on("data", (chunk: Buffer) => (received += chunk.length));
      req.on("error", () => {});
    });
    const client = await dial(port);
    client.send(request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 90000000"]));
    const some = "x".repeat(64 * 1024);
    await pass(time, 2 * DEFAULT_LIMITS.requestTimeoutMs, () => client.send(some));
    expect(client.isClosed).toBe(false);
    expect(received).toBeGreaterThan(some.length);
    await pass(time, 3 * DEFAULT_LIMITS.minRateWindowMs, () => client.send("x"));
    expect(status(await client.closed())).toBe(408);
  });

  test("do not apply to a response or to an idle connection", async () => {
    const time = installTestClock();
    const asked = Promise.withResolvers<ServerResponse>();
    const { port } = await up((_, res) => asked.resolve(res));
    const client = await dial(port);
    client.send(request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 2"], "hi"));
    const answer = await asked.promise;
    await pass(time, 2 * DEFAULT_LIMITS.requestTimeoutMs);
    answer.end("late");
    await client.until(/late/);
    await pass(time, 2 * DEFAULT_LIMITS.headTimeoutMs);
    expect(client.isClosed).toBe(false);
    client.socket.destroy();
  });
});

describe("excessive input", () => {
  test("5,000 pipelined requests: 8 in progress, then a 429 and the end", async () => {
    let now = 0;
    let most = 0;
    const waiting: ServerResponse[] = [];
    const { port, inFlight } = await up((_, res) => {
      most = Math.max(most, ++now);
      waiting.push(res);
      res.once("close", () => now--);
    });
    const client = await dial(port);
    client.send(request(["GET / HTTP/1.1", "Host: localhost"]).repeat(5_000));
    await until(() => inFlight() === 9);
    await turnEventLoop(200);
    expect([most, inFlight()]).toEqual([8, 9]);
    for (const res of waiting) res.end("done");
    const answer = await client.closed();
    expect(answer.match(/HTTP\/1\.1 200 /g)).toHaveLength(8);
    expect(answer.match(/HTTP\/1\.1 429 /g)).toHaveLength(1);
    expect(answers(answer)).toBe(9);
    await until(() => inFlight() === 0);
  });

  for (const when of ["before reading", "after the first bytes"] as const)
    test(`300 MB after an early 413 (${when}): the connection closes soon, and the response can be read`, async () => {
      const { port } = await up(
        (req, res) => {
          const refuse = () => res.writeHead(413).end("too large");
          if (when === "before reading") refuse();
          else req.once("data", refuse);
        },
        // Longer than a test's timeout: only the amount of data closes it.
        { limits: { lingerMs: 600_000 } },
      );
      const client = await dial(port);
      const megabyte = Buffer.alloc(1 << 20, "x");
      client.send(request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 314572800"]));
      let sent = 0;
      const push = () => {
        while (sent < 300 && !client.isGone) {
          sent++;
          if (!client.socket.write(megabyte)) return void client.socket.once("drain", push);
        }
      };
      push();
      const answer = await client.closed();
      expect(status(answer)).toBe(413);
      expect(answer.toLowerCase()).toContain("connection: close");
      await until(() => client.isGone);
      // Only data in the kernel's buffers on both sides has left.
      expect(client.socket.bytesWritten).toBeLessThan(64 << 20);
    });

  test("a client that sends for a short time still gets the complete early response", async () => {
    const long = "x".repeat(1 << 20);
    const { port } = await up((_, res) => res.writeHead(413).end(long), {
      // Longer than a test's timeout.
      limits: { lingerMs: 600_000 },
    });
    const client = await dial(port);
    client.socket.pause();
    client.send(
      request(
        ["POST / HTTP/1.1", "Host: localhost", "Content-Length: 1000000"],
        "y".repeat(20_000),
      ),
    );
    for (let i = 0; i < 3; i++) {
      await turnEventLoop();
      client.send("y".repeat(10_000));
    }
    await turnEventLoop();
    client.socket.resume();
    expect((await client.closed()).length).toBeGreaterThan(long.length);
  });

  test("no connection stays open forever", async () => {
    const { port, server } = await up((_, res) => res.writeHead(401).end(), {
      limits: { lingerMs: 100 },
    });
    const client = await dial(port);
    client.send(request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 100"], "half"));
    await client.until(/401/);
    const connections = () =>
      new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n)));
    await until(async () => (await connections()) === 0);
    client.socket.destroy();
  });
});

describe("the port", () => {
  test("in use: an error that states this, and no other port is used", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const error: unknown = await up(echo().handler, { port }).catch((error: unknown) => error);
    other.close();
    expect(getFault(error)).toMatchObject({
      code: "port_taken",
      message: expect.stringContaining(`Port ${port} on 127.0.0.1 is already in use`) as string,
    });
  });

  test.each([
    ["an address of another machine", "203.0.113.7", 0],
    ["a name that is nobody's", "nobody.invalid", 0],
    ["an address that listhen would swap for localhost", "::1%lo", 0],
    ["a port that listhen would swap for 3000", "127.0.0.1", 6666],
  ])("%s: an error with an explanation", async (_, host, port) => {
    const error: unknown = await up(echo().handler, { host, port }).catch(
      (error: unknown) => error,
    );
    expect(getFault(error)?.code).toMatch(/^listen_/);
    expect(getFault(error)?.message).toContain(host);
  });

  test("a Unix socket accepts the host names of the proxy in front of it, also if it was handed over", async () => {
    const config = {
      host: "127.0.0.1",
      port: 8787,
      socket: "/run/tollgate.sock",
      mode: "0660",
      tls: undefined,
      hosts: [],
      origins: [],
    };
    for (const bound of [undefined, { socket: config.socket }, { fd: 3 }])
      expect(await toListenTarget(config, bound)).toMatchObject({ host: "", hosts: [] });
  });

  test("the host name of an address that several processes share stays the configured one", async () => {
    const config = {
      host: "gw.local",
      port: 0,
      socket: undefined,
      mode: undefined,
      tls: undefined,
      hosts: [],
      origins: [],
    };
    expect(await toListenTarget(config, { host: "127.0.0.7", port: 4000 })).toMatchObject({
      host: "gw.local",
      address: "127.0.0.7",
      port: 4000,
      isShared: true,
    });
  });

  test("binds to loopback only, in any environment", async () => {
    const env = { ...process.env };
    Object.assign(process.env, { NODE_ENV: "production", HOST: "0.0.0.0", PORT: "1" });
    try {
      const { server, port, url } = await up(echo().handler);
      expect(server.address()).toMatchObject({ address: "127.0.0.1", port });
      expect(url).toBe(`http://127.0.0.1:${port}`);
    } finally {
      for (const name of ["NODE_ENV", "HOST", "PORT"]) {
        if (env[name] === undefined) delete process.env[name];
        else process.env[name] = env[name];
      }
    }
  });

  test("handles no signals, which are left to the caller", async () => {
    const count = () => ["SIGTERM", "SIGINT", "SIGHUP"].map((name) => process.listenerCount(name));
    const before = count();
    await up(echo().handler);
    expect(count()).toEqual(before);
  });
});

describe("shutdown", () => {
  test("finishes open requests, closes idle connections, and rejects new ones", async () => {
    const waiting: ServerResponse[] = [];
    const listening = await up((_, res) => void waiting.push(res));
    const { port } = listening;
    const [idle, streaming, fresh] = [await dial(port), await dial(port), await dial(port)];
    const get = request(["GET / HTTP/1.1", "Host: localhost"]);
    idle.send(get);
    await until(() => waiting.length === 1);
    waiting.shift()!.end("first");
    await idle.until(/first/);
    streaming.send(get);
    fresh.send(get);
    await until(() => waiting.length === 2);
    expect(listening.inFlight()).toBe(2);
    const [begun, unbegun] = waiting;
    begun!.write("a");
    const closing = listening.close(60_000);
    await idle.closed();
    await expect(dial(port)).rejects.toThrow("ECONNREFUSED");
    await turnEventLoop();
    begun!.end("b");
    unbegun!.end("c");
    // Started before the shutdown, so it could not announce the end. It ends nevertheless if no
    // further request follows.
    expect(await streaming.closed()).toMatch(/a[\s\S]*b/);
    expect((await fresh.closed()).toLowerCase()).toContain("connection: close");
    expect(await closing).toBe(0);
  });

  test("serves requests that arrived before it, on idle and on new connections", async () => {
    const time = installTestClock();
    const listening = await up((_, res) => void res.end("told"), {
      limits: { closeGraceMs: 3_000 },
    });
    const { port } = listening;
    const [kept, fresh, late, silent] = await Promise.all([1, 2, 3, 4].map(() => dial(port)));
    const get = request(["GET / HTTP/1.1", "Host: localhost"]);
    kept!.send(get);
    await kept!.until(/told/);
    // Data sent from here on is not read before the shutdown starts.
    kept!.send(get);
    fresh!.send(get);
    const closing = listening.close(60_000);
    late!.send("GET / HTTP/1.1\r\n");
    await turnEventLoop();
    late!.send("Host: localhost\r\n\r\n");
    for (const client of [kept!, fresh!, late!])
      expect((await client.closed()).toLowerCase()).toMatch(/connection: close[^]*told$/);
    // A silent one only gets a moment, and not the headers' timeout.
    time.skip(3_000);
    await silent!.closed();
    expect(await closing).toBe(0);
  });

  test("serves a client that retries soon after the port closed, if it was told to retry", async () => {
    const time = installTestClock();
    const waiting: ServerResponse[] = [];
    const listening = await up((_, res) => void waiting.push(res), {
      limits: { closeGraceMs: 9_000 },
    });
    const [idle, streaming] = [await dial(listening.port), await dial(listening.port)];
    const get = request(["GET / HTTP/1.1", "Host: localhost"]);
    idle.send(get);
    await until(() => waiting.length === 1);
    waiting.shift()!.end("first");
    await idle.until(/first/);
    streaming.send(get);
    await until(() => waiting.length === 1);
    const begun = waiting.shift()!;
    begun.write("begun");
    await streaming.until(/begun/);
    const closing = listening.close(60_000);
    begun.end("ended");
    await streaming.until(/ended/);
    // There is a network between our message and its next one.
    await pass(time, 3_000);
    idle.send(get);
    streaming.send(get);
    await until(() => waiting.length === 2);
    for (const res of waiting) res.end("last");
    for (const client of [idle, streaming])
      expect((await client.closed()).toLowerCase()).toMatch(/connection: close[^]*last/);
    expect(await closing).toBe(0);
  });

  test("does not wait for a small body after its response", async () => {
    const listening = await up((_, res) => void res.end("told"));
    const client = await dial(listening.port);
    client.send(request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 4"]) + "a");
    await client.until(/told/);
    const closing = listening.close(60_000);
    await turnEventLoop();
    client.send("b");
    await turnEventLoop();
    client.send("cd");
    await client.closed();
    // None was aborted at the timeout.
    expect(await closing).toBe(0);
  });

  test("closes a connection that was silent for a long time together with the port", async () => {
    const time = installTestClock();
    const listening = await up((_, res) => void res.end("told"), {
      limits: { closeGraceMs: 60_000 },
    });
    const client = await dial(listening.port);
    client.send(request(["GET / HTTP/1.1", "Host: localhost"]));
    await client.until(/told/);
    // Two sweeps over all sockets.
    await pass(time, 3_000);
    const closing = listening.close(60_000);
    await client.closed();
    expect(await closing).toBe(0);
  });

  test("accepts a pending connection first", async () => {
    const listening = await up((_, res) => void res.end("told"));
    const get = request(["GET / HTTP/1.1", "Host: localhost", "Connection: close"]);
    const heard = Array.from({ length: 5 }, async () => {
      const socket = connect(listening.port, "127.0.0.1");
      socket.write(get);
      return (await socket.toArray()).join("");
    });
    // They are established by now, and no event was reported.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const closing = listening.close(60_000);
    for (const text of await Promise.all(heard)) expect(text).toMatch(/told$/);
    expect(await closing).toBe(0);
  });

  test("counts a client that waits for 100 Continue as open", async () => {
    const asked = Promise.withResolvers<[IncomingMessage, ServerResponse]>();
    const listening = await up((req, res) => asked.resolve([req, res]));
    const client = await dial(listening.port);
    client.send(
      request(["POST / HTTP/1.1", "Host: localhost", "Expect: 100-continue", "Content-Length: 2"]),
    );
    const [req, res] = await asked.promise;
    const closing = listening.close(60_000);
    await turnEventLoop();
    res.writeContinue();
    await client.until(/100 Continue/);
    client.send("hi");
    res.end(await readAll(req));
    expect(await client.closed()).toContain("hi");
    expect(await closing).toBe(0);
  });

  test("aborts at the timeout, and reports how many", async () => {
    const listening = await up((_, res) => void res.write("for ever"));
    const client = await dial(listening.port);
    client.send(request(["GET / HTTP/1.1", "Host: localhost"]));
    await client.until(/for ever/);
    await dial(listening.port);
    expect(await listening.close(100)).toBe(1);
    await client.closed();
    expect(listening.inFlight()).toBe(0);
  });
});

describe("a stalled client", () => {
  /** Complete: one write that exceeds the system's socket buffer. */
  const large = Buffer.alloc(40_000_000, 97);

  test("that does not read a non-streaming response is disconnected, and its memory is released", async () => {
    const time = installTestClock();
    let answer: ServerResponse | undefined;
    const { port } = await up((_req, res) => {
      answer = res;
      res.writeHead(200, { "content-length": large.length }).end(large);
    });
    const client = await dial(port);
    client.socket.pause();
    client.send(request(["GET / HTTP/1.1", "Host: localhost"]));
    await until(() => answer !== undefined);
    await pass(time, 3 * DEFAULT_LIMITS.stalledWindowMs);
    expect(answer!.destroyed).toBe(true);
    client.socket.destroy();
  });

  test("that reads a non-streaming response slowly receives all of it", async () => {
    const { port } = await up(
      (_req, res) => {
        res.writeHead(200, { "content-length": large.length }).end(large);
      },
      { limits: { stalledWindowMs: 2_000 } },
    );
    const client = await dial(port);
    let got = 0;
    client.socket.on("data", (chunk: Buffer) => {
      got += chunk.length;
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 5);
    });
    client.send(request(["GET / HTTP/1.1", "Host: localhost", "Connection: close"]));
    await client.closed();
    expect(got).toBeGreaterThan(large.length);
  });

  const half = (length: number) =>
    request(["POST / HTTP/1.1", "Host: localhost", `Content-Length: ${length}`]);

  test("that stops in the middle of a body is disconnected, however much has arrived", async () => {
    const time = installTestClock();
    const { handler } = echo();
    const { port } = await up(handler);
    const client = await dial(port);
    client.send(half(2_000_000));
    client.send("x".repeat(1_999_999));
    await turnEventLoop();
    await pass(time, 3 * DEFAULT_LIMITS.minRateWindowMs);
    expect(status(await client.closed())).toBe(408);
  });

  test("that sends a large body too slowly is disconnected, and one at the minimum rate is not", async () => {
    const time = installTestClock();
    const { handler } = echo();
    const { port } = await up(handler);
    const [dripping, steady] = [await dial(port), await dial(port)];
    dripping.send(half(2_000_000) + "x".repeat(1_000_000));
    steady.send(half(1_000_000));
    await pass(time, 20_000, () => {
      dripping.send("x");
      steady.send("x".repeat(50_000));
    });
    expect(status(await steady.until(/got 1000000/))).toBe(200);
    expect(status(await dripping.closed())).toBe(408);
    steady.socket.destroy();
  });

  test("is not slow while its body waits to be read", async () => {
    const time = installTestClock();
    const { handler } = echo();
    const read = Promise.withResolvers<void>();
    const { port } = await up((req, res) => void read.promise.then(() => handler(req, res)));
    const client = await dial(port);
    client.send(half(5_000_000) + "x".repeat(5_000_000));
    await pass(time, 3 * DEFAULT_LIMITS.minRateWindowMs);
    read.resolve();
    expect(status(await client.until(/got 5000000/))).toBe(200);
    client.socket.destroy();
  });
});

describe("connections", () => {
  test("are limited per address, and further ones get a retry time", async () => {
    const { handler } = echo();
    const listening = await up(handler, { limits: { connectionsPerAddress: 3 } });
    const { port } = listening;
    const inside = [await dial(port), await dial(port), await dial(port)];
    const refused = await say(port, "");
    expect(status(refused)).toBe(503);
    expect(refused).toContain("too_many_connections");
    expect(refused).toMatch(/retry-after: 1/i);
    inside[0]!.socket.destroy();
    const again = request(["GET / HTTP/1.1", "Host: localhost", "Connection: close"]);
    await until(async () => status(await say(port, again)) === 200);
    for (const each of inside) each.socket.destroy();
  });

  test("of WebSockets count until they are closed", async () => {
    const { handler } = echo();
    const taken: Socket[] = [];
    const { port } = await up(handler, {
      limits: { connectionsPerAddress: 1 },
      upgrade: (_req, socket) => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
        return taken.push(socket) > 0;
      },
    });
    const first = await dial(port);
    first.send(
      request([
        "GET / HTTP/1.1",
        "Host: localhost",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
      ]),
    );
    await first.until(/101/);
    expect(await say(port, "")).toContain("too_many_connections");
    taken[0]!.destroy();
    const again = request(["GET / HTTP/1.1", "Host: localhost", "Connection: close"]);
    await until(async () => status(await say(port, again)) === 200);
  });

  test("are limited in total, and a changed limit applies immediately", async () => {
    const { handler } = echo();
    const listening = await up(handler, { limits: { connections: 1 } });
    const first = await dial(listening.port);
    expect(status(await (await dial(listening.port)).closed())).toBe(503);
    listening.setLimits({ connections: 5, connectionsPerAddress: 5 });
    const second = await dial(listening.port);
    second.send(request(["GET / HTTP/1.1", "Host: localhost"]));
    expect(status(await second.until(/got 0/))).toBe(200);
    first.socket.destroy();
    second.socket.destroy();
  });
});

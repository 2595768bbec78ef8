// Errors of a failed connection to a provider: its cause, without any address.
import { createServer, type AddressInfo } from "node:net";
import { afterAll, expect, it } from "vitest";
import type { Dispatcher } from "undici";
import { ConnectionPools } from "../../../src/runtime/plugin-host/connection-pools.ts";
import { getFault } from "../../../src/model/error.ts";
import { TimerWheel } from "../../../src/pipeline/admission/timer-wheel.ts";
import { UpstreamHttpResponse } from "../../../src/pipeline/upstream/upstream-http-response.ts";
import { TIMEOUTS } from "../../kit/test-services.ts";

const pools = new ConnectionPools();
const dog = new TimerWheel();
afterAll(async () => {
  dog[Symbol.dispose]();
  await pools[Symbol.asyncDispose]();
});

/** Result of a call whose upstream sends this and closes. */
async function told(said: string | undefined, scheme = "http"): Promise<string> {
  const server = createServer((socket) => void socket.on("error", () => {}).end(said ?? ""));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  if (said === undefined) await new Promise((resolve) => server.close(resolve));
  const ended = await codeAt(`${scheme}://127.0.0.1:${port}`);
  server.close();
  return ended;
}

async function codeAt(origin: string): Promise<string> {
  const { pool, release } = pools.acquire(origin, 2_000);
  try {
    return await codeOf(pool);
  } finally {
    await release();
  }
}

async function codeOf(pool: Pick<Dispatcher, "dispatch">): Promise<string> {
  const flight = new UpstreamHttpResponse(dog, TIMEOUTS);
  const of = { method: "GET", path: "/", headers: [], body: null };
  const problem = await flight
    .dispatch({ failurePoint: "unsent", usesNewConnection: false }, { pool } as never, of)
    .then(
      () => new Promise((resolve) => flight.pipeTo({ onData() {}, onEnd: resolve })),
      (error: unknown) => error,
    );
  const fault = getFault(problem)!;
  expect(fault.message).not.toContain("127.0.0.1");
  expect(fault.message).not.toContain("169.254");
  return `${fault.kind} ${fault.code}`;
}

const HEAD = "HTTP/1.1 200 OK\r\n";

it.each([
  ["no status", "HTTP/1.1 abc\r\n\r\n"],
  ["another protocol", "SSH-2.0-x\r\n"],
  ["100 Continue that was not asked for", `HTTP/1.1 100 Continue\r\n\r\n${HEAD}\r\n`],
  [
    "two ways to frame it",
    `${HEAD}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  ["a chunk without a size", `${HEAD}transfer-encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n`],
  ["a header of 70 KB", `${HEAD}x: ${"x".repeat(70 * 1024)}\r\n\r\n`],
])("%s is invalid HTTP", async (_name, said) => {
  expect(await told(said)).toBe("upstream bad_http");
});

it("a connection that ends is distinguished from one that was never established", async () => {
  expect(await told("")).toBe("upstream upstream_disconnected");
  expect(await told(`${HEAD}content-length: 5\r\n\r\na`)).toBe("upstream upstream_disconnected");
  expect(await told(undefined)).toBe("upstream connect_failed");
});

it("an address that is not dialed was not reached, and closed nothing", async () => {
  const cause = Object.assign(new Error("meta (169.254.169.254)"), { code: "address_metadata" });
  const dispatch: Dispatcher["dispatch"] = (_of, handler) => {
    handler.onResponseError!(undefined as never, cause);
    return true;
  };
  expect(await codeOf({ dispatch })).toBe("upstream address_refused");
});

it("a proxy that rejects a call is distinguished from the provider behind it", async () => {
  const proxy = createServer((socket) =>
    socket.on("error", () => {}).end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
  );
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  const through = new ConnectionPools({ url: `http://127.0.0.1:${port}`, bypassHosts: [] });
  const { pool, release } = through.acquire("http://provider.example", 2_000);
  expect(await codeOf(pool)).toBe("upstream proxy_refused");
  await release();
  await through[Symbol.asyncDispose]();
  proxy.close();
});

it("a failed TLS handshake is a TLS error", async () => {
  expect(await told(`${HEAD}\r\n`, "https")).toBe("upstream tls_failed");
});

it.each(["CERT_HAS_EXPIRED", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "ERR_TLS_CERT_ALTNAME_INVALID"])(
  "the certificate error %s is a TLS error",
  async (code) => {
    const cause = Object.assign(new Error("certificate"), { code });
    const dispatch: Dispatcher["dispatch"] = (_of, handler) => {
      handler.onResponseError!(undefined as never, cause);
      return true;
    };
    expect(await codeOf({ dispatch })).toBe("upstream tls_failed");
  },
);

// Calls through an HTTP proxy: requests that use it, those that do not, and its errors.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createSecure } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import { Client } from "undici";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { createMetadataGuard } from "../../../src/lib/net/egress-guard.ts";
import { createTunnelConnector } from "../../../src/lib/net/http-proxy.ts";
import { authority } from "../../rig/faults/certificates.ts";

const ours = authority();
const { key, cert } = ours.issue({ name: "provider.test" });
const asked: string[] = [];
let answer: string | undefined;
let proxy: Server;
let provider: Server;
const portOf = (server: Server) => (server.address() as AddressInfo).port;

beforeAll(async () => {
  provider = createSecure({ key, cert }, (_req, res) => res.end("from the provider")) as never;
  provider.listen(0, "127.0.0.1");
  proxy = createServer().listen(0, "127.0.0.1");
  proxy.on("connect", (req: IncomingMessage, socket: Socket) => {
    asked.push(`${req.url} ${req.headers["proxy-authorization"] ?? ""}`.trim());
    if (answer !== undefined) return void socket.end(answer);
    const onward = connect(portOf(provider), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  await Promise.all([once(provider, "listening"), once(proxy, "listening")]);
});
afterAll(() => [proxy, provider].forEach((server) => server.close()));

async function get(origin: string, except: readonly string[] = [], user = ""): Promise<string> {
  const connector = createTunnelConnector(
    { url: `http://${user}127.0.0.1:${portOf(proxy)}`, bypassHosts: except },
    createMetadataGuard(2_000).connect,
    2_000,
    { ca: ours.root },
  );
  const client = new Client(origin, { connect: connector });
  onTestFinished(() => client.destroy());
  const { body } = await client.request({ method: "GET", path: "/" });
  return body.text();
}

it("TLS passes through it to the provider, and the proxy only receives the host", async () => {
  asked.length = 0;
  expect(await get("https://provider.test:8443", [], "ann:p%40ss@")).toBe("from the provider");
  expect(asked).toEqual([`provider.test:8443 Basic ${Buffer.from("ann:p@ss").toString("base64")}`]);
});

it("local addresses, excluded hosts, and the metadata service do not use it", async () => {
  asked.length = 0;
  const plain = createServer((_req, res) => res.end("straight")).listen(0, "127.0.0.1");
  await once(plain, "listening");
  onTestFinished(() => void plain.close());
  expect(await get(`http://127.0.0.1:${portOf(plain)}`)).toBe("straight");
  await expect(get("https://llm.nowhere.invalid", ["*.nowhere.invalid"])).rejects.toThrow();
  await expect(get("http://169.254.169.254")).rejects.toThrow("metadata");
  expect(asked).toEqual([]);
});

it.each([
  ["HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "answered 407"],
  ["HTTP/1.1 200 OK\r\n\r\nhello", "spoke too early"],
  ["nonsense\r\n\r\n", "cannot be reached"],
])("a proxy that responds with %j", async (text, words) => {
  answer = text;
  onTestFinished(() => void (answer = undefined));
  await expect(get("https://provider.test:8443")).rejects.toMatchObject({
    code: "proxy_refused",
    message: expect.stringContaining(words),
  });
});

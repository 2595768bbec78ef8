// WebSockets of providers over TLS, directly and through an HTTP proxy.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import tls from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { dial, isTerminal } from "../../kit/socket-client.ts";
import { openSocket } from "../../kit/sockets/socket-client.ts";
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../../kit/sockets/realtime-upstream.ts";
import {
  startResponsesUpstream,
  type ResponsesUpstream,
} from "../../kit/sockets/responses-upstream.ts";
import { authority } from "../../rig/faults/certificates.ts";

const KEY = "tls-key";
const portOf = (server: Server | tls.Server) => (server.address() as AddressInfo).port;
const portOfUrl = (url: string) => Number(new URL(url).port);
/** Connects two sockets in both directions. */
function join(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one);
  one.on("error", () => other.destroy());
  other.on("error", () => one.destroy());
}

const ours = authority();
const trusted = tls.getCACertificates("default");
const servers: (Server | tls.Server)[] = [];
/** Hosts to which the proxy opened a tunnel. */
const tunnels: string[] = [];
let responses: ResponsesUpstream;
let realtime: RealtimeUpstream;
let proxy: Server;
let ports: { responses: number; realtime: number };

/** Adds TLS to an upstream. The certificate is valid for both names of the test. */
async function secured(url: string): Promise<number> {
  const local = ours.issue({ name: "localhost" });
  const remote = tls.createSecureContext(ours.issue({ name: "provider.test" }));
  const server = tls.createServer(
    {
      ...local,
      SNICallback: (name, done) => done(null, name === "provider.test" ? remote : undefined),
    },
    (socket) => join(socket, connect(portOfUrl(url), "127.0.0.1")),
  );
  servers.push(server.listen(0));
  await once(server, "listening");
  return portOf(server);
}

beforeAll(async () => {
  tls.setDefaultCACertificates([...trusted, ours.root]);
  responses = await startResponsesUpstream();
  realtime = await startRealtimeUpstream();
  ports = { responses: await secured(responses.url), realtime: await secured(realtime.url) };
  proxy = createServer().listen(0, "127.0.0.1");
  servers.push(proxy);
  proxy.on("connect", (req: IncomingMessage, socket: Socket) => {
    tunnels.push(req.url!);
    const onward = connect(Number(req.url!.split(":")[1]), "localhost", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      join(onward, socket);
    });
    onward.on("error", () => socket.destroy());
  });
  await once(proxy, "listening");
});
afterAll(async () => {
  tls.setDefaultCACertificates(trusted);
  await Promise.all([responses.stop(), realtime.stop()]);
  for (const server of servers) server.close();
});

it.each(["localhost", "provider.test"])("at https://%s", async (host) => {
  tunnels.length = 0;
  const isRemote = host === "provider.test";
  const before = [responses.created.length, realtime.sockets.length];
  const base = (port: number) => `https://${host}:${port}/v1`;
  await using gateway = await startInProcess({
    yaml: `
frontends: [responses, realtime]
middleware: [{ use: auth, with: { keys: [{ id: one, digest: "${digestKey(KEY)}" }] } }]
store: memory
${isRemote ? `proxy: { url: "http://127.0.0.1:${portOf(proxy)}" }` : ""}
retries: { total: 1 }
providers:
  text: { use: openai, with: { base_url: "${base(ports.responses)}", api_key: k }, models: { m: {} } }
  voice:
    use: openai
    with: { base_url: "${base(ports.realtime)}", api_key: k }
    models: { gpt-realtime: { operation: realtime } }
`,
  });
  await using text = await dial(gateway.url, { key: KEY });
  text.send({ type: "response.create", model: "text/m", store: false, input: "Hi" });
  expect((await text.until(isTerminal)).at(-1).type).toBe("response.completed");
  const voice = await openSocket(`${gateway.url}/v1/realtime?model=voice/gpt-realtime`, {
    key: KEY,
  });
  await voice.wait("session.created");
  voice.send({ type: "response.create" });
  await voice.wait("response.done");
  voice.close();
  expect([responses.created.length, realtime.sockets.length]).toEqual(before.map((n) => n + 1));
  expect(responses.posts).toEqual([]);
  const at = (port: number) => `${host}:${port}`;
  expect(new Set(tunnels)).toEqual(
    new Set(isRemote ? [at(ports.responses), at(ports.realtime)] : []),
  );
});

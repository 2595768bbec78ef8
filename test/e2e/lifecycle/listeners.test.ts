// Several addresses of one gateway: a port, HTTPS with client certificates, a Unix socket; a
// certificate that is replaced under load; the same with workers; and sockets that were open before
// the gateway started.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { Agent, request as plain } from "node:http";
import { Agent as SecureAgent, request as secure, type RequestOptions } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createTestFolder } from "../../kit/process/command-line.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { programArgs, root } from "../../kit/process/program.ts";
import { authority } from "../../rig/faults/certificates.ts";

const HOST = "gw.test";
const ours = authority("Ours");
const strange = authority("Strange");
const first = ours.issue({ name: HOST });

const YAML = `state_dir: ./state
listen:
  - { host: 127.0.0.1, port: 0 }
  - { port: 0, tls: { cert: tls/cert.pem, key: tls/key.pem, client_certificates: { ca: tls/ca.pem } } }
  - { socket: ./gw.sock, mode: "0660" }
middleware:
  - use: client-certificates
    with: { names: { batch.example: { labels: { team: batch } }, "*.agents.example": {} } }
  - auth
  - limits
  - usage
providers: { demo: { use: demo } }
`;
const FILES = { "tls/cert.pem": first.cert, "tls/key.pem": first.key, "tls/ca.pem": ours.root };

const body = JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi." }] });

interface Answer {
  readonly status: number;
  readonly text: string;
}

function post(
  send: typeof plain | typeof secure,
  options: RequestOptions,
  key?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = send(
      {
        method: "POST",
        path: "/v1/chat/completions",
        ...options,
        headers: {
          host: "localhost",
          "content-type": "application/json",
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
        },
      },
      (res) => {
        let text = "";
        res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        res.once("end", () => resolve({ status: res.statusCode!, text }));
        res.once("error", reject);
      },
    );
    req.once("error", reject);
    req.end(body);
  });
}

const urlsOf = (gateway: Daemon) =>
  gateway.log.find(({ msg }) => msg === "listening")!["urls"] as readonly string[];
const over = (gateway: Daemon): RequestOptions => ({
  host: "127.0.0.1",
  port: new URL(urlsOf(gateway)[1]!).port,
  servername: HOST,
  ca: ours.root,
  agent: false,
});

describe("one process", () => {
  let gateway: Daemon;
  beforeAll(async () => {
    gateway = await startDaemon({ yaml: YAML, files: FILES });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  it("responds on all addresses, and each response names its address", async () => {
    const [http, https, socket] = urlsOf(gateway);
    expect([http, https]).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    ]);
    expect(socket).toBe(`unix:${join(gateway.dir, "gw.sock")}`);
    const port = new URL(http!).port;
    const asked = [
      post(plain, { host: "127.0.0.1", port, agent: false }, gateway.key),
      post(secure, over(gateway), gateway.key),
      post(plain, { socketPath: join(gateway.dir, "gw.sock"), agent: false }, gateway.key),
    ];
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(statSync(join(gateway.dir, "gw.sock")).mode & 0o777).toBe(0o660);
  });

  it("a client certificate is an identity; an unknown issuer or another name is rejected", async () => {
    const as = (of: ReturnType<typeof ours.issue>) =>
      post(secure, { ...over(gateway), cert: of.cert, key: of.key });
    expect((await as(ours.issue({ name: "batch.example" }))).status).toBe(200);
    expect((await as(ours.issue({ name: "one.agents.example" }))).status).toBe(200);
    expect((await as(ours.issue({ name: "other.example" }))).status).toBe(401);
    expect((await as(strange.issue({ name: "batch.example" }))).status).toBe(401);
    const totals = JSON.stringify(await gateway.ask("ledger.totals", { by: ["key"] }));
    expect(totals).toContain('"cert:batch.example"');
    expect(totals).toContain('"cert:one.agents.example"');
    expect(totals).not.toContain("other.example");
  });

  it("a replaced certificate is used from the next handshake on, and open connections stay", async () => {
    const kept = new SecureAgent({ keepAlive: true, maxSockets: 1 });
    const options = over(gateway);
    const before = await post(secure, { ...options, agent: kept }, gateway.key);
    const [answers, over_] = [[] as number[], new AbortController()];
    const load = (async () => {
      while (!over_.signal.aborted) answers.push((await post(secure, options, gateway.key)).status);
    })();
    const next = ours.issue({ name: HOST });
    writeFileSync(join(gateway.dir, "tls/cert.pem"), next.cert);
    writeFileSync(join(gateway.dir, "tls/key.pem"), next.key);
    const used = async () => {
      const socket = connect({
        ...(options as object),
        host: "127.0.0.1",
        port: Number(options.port),
      });
      await once(socket, "secureConnect");
      const { serialNumber } = (socket as TLSSocket).getPeerCertificate();
      socket.destroy();
      return Number.parseInt(serialNumber, 16);
    };
    let serial = await used();
    const was = serial;
    await until(
      async () => (serial = await used()) !== was,
      () => "another certificate",
    );
    const after = await post(secure, { ...options, agent: kept }, gateway.key);
    over_.abort();
    await load;
    kept.destroy();
    expect([before.status, after.status]).toEqual([200, 200]);
    expect(answers.length).toBeGreaterThan(0);
    expect(answers.filter((status) => status !== 200)).toEqual([]);
  });

  it("a mismatched key is rejected, and the previous certificate stays in use", async () => {
    writeFileSync(join(gateway.dir, "tls/key.pem"), strange.issue({ name: HOST }).key);
    await gateway.line(/^certificate rejected/);
    expect((await post(secure, over(gateway), gateway.key)).status).toBe(200);
  });

  it("TLS 1.1 and plain HTTP are rejected", async () => {
    await expect(
      post(secure, { ...over(gateway), maxVersion: "TLSv1.1", minVersion: "TLSv1" }, gateway.key),
    ).rejects.toThrow();
    const { port } = over(gateway);
    await expect(
      post(plain, { host: "127.0.0.1", port: port!, agent: new Agent() }, gateway.key),
    ).rejects.toThrow();
  });

  it("a shutdown closes all addresses and removes the socket", async () => {
    expect(await gateway.stop()).toBe(0);
    expect(existsSync(join(gateway.dir, "gw.sock"))).toBe(false);
  });
});

it("several processes, and a port from a service manager in place of the first address", async () => {
  const held = createServer().listen(0, "127.0.0.1");
  await once(held, "listening");
  const { port } = held.address() as AddressInfo;
  await using here = await createTestFolder({ "gateway.yaml": `workers: 2\n${YAML}` });
  mkdirSync(join(here.path, "tls"));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(here.path, name), text);
  // The PID of the shell becomes the program's.
  const script = `LISTEN_PID=$$ exec "$0" "$@"`;
  const args = [...programArgs(), "serve"];
  const { fd } = (held as unknown as { _handle: { fd: number } })._handle;
  const child = spawn("sh", ["-c", script, join(root, "node_modules/.bin/node"), ...args], {
    cwd: here.path,
    env: { PATH: process.env["PATH"], HOME: here.path, LISTEN_FDS: "1", LISTEN_FDNAMES: "clients" },
    stdio: ["ignore", "pipe", "inherit", fd],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout!.on("data", (piece: Buffer) => (text += piece.toString()));
  await until(
    () => text.includes('"msg":"listening"'),
    () => text,
  );
  held.close();
  const line = text.split("\n").find((each) => each.includes('"msg":"listening"'))!;
  const { url, urls, stateDir } = JSON.parse(line) as {
    url: string;
    urls: string[];
    stateDir: string;
  };
  expect(url).toBe(`http://127.0.0.1:${port}`);
  const key = readFileSync(join(stateDir, "first-key"), "utf8").trim();
  const secured = {
    host: "127.0.0.1",
    port: new URL(urls[1]!).port,
    servername: HOST,
    ca: ours.root,
  };
  const asked = await Promise.all([
    post(plain, { host: "127.0.0.1", port, agent: false }, key),
    post(secure, { ...secured, agent: false }, key),
    post(secure, { ...secured, agent: false, ...ours.issue({ name: "batch.example" }) }),
    post(plain, { socketPath: join(here.path, "gw.sock"), agent: false }, key),
  ]);
  expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(existsSync(join(here.path, "gw.sock"))).toBe(false);
});

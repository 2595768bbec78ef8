// Servers on the official SDKs, each as a program or on a port of this process: the examples of the
// TypeScript SDKs with sessions, the newest TypeScript SDK, the Python SDKs, and an example with OAuth.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { freePort } from "../../kit/process/ports.ts";
import { until } from "../../kit/wait.ts";
import { installed, SHELF, type Package } from "../install.ts";
import { environment } from "../python/venv.ts";
import { load } from "./sdk-clients.ts";

export const EVERYTHING: Package = {
  name: "@modelcontextprotocol/server-everything",
  version: "2026.8.31",
  main: "dist/index.js",
};
export const SERVER: Package = {
  name: "@modelcontextprotocol/server",
  version: "2.4.0",
  main: "package.json",
};

/** A running server. */
export interface ExampleServer extends AsyncDisposable {
  readonly url: string;
}

const EXAMPLES = "dist/esm/examples/server";
/** Some examples listen on a port that is written in their code. */
const PORT_HOOK = `data:text/javascript,${encodeURIComponent(`
import { Server } from "node:net";
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...more) {
  return listen.call(this, port === 3000 ? Number(process.env.MCP_PORT) : port, ...more);
};`)}`;

async function serving(child: ChildProcess, url: string): Promise<ExampleServer> {
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (data: Buffer) => void (output = (output + data.toString()).slice(-4_000)));
  await until(
    async () => {
      if (child.exitCode !== null) throw new Error(`The server ended: ${output}`);
      return fetch(url).then(
        (answer) => answer.body?.cancel().then(() => true) ?? true,
        () => false,
      );
    },
    () => output,
  );
  return {
    url,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Starts an example of a TypeScript SDK with sessions. */
export async function startExample(
  of: Package,
  example: string,
  args: readonly string[] = [],
): Promise<ExampleServer & { readonly issuer: string }> {
  const script = join(dirname(await installed(of)), EXAMPLES, `${example}.js`);
  const [port, authPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, ["--import", PORT_HOOK, script, ...args], {
    env: { ...process.env, MCP_PORT: String(port), MCP_AUTH_PORT: String(authPort) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = await serving(child, `http://localhost:${port}/mcp`);
  // With "--oauth", it starts an authorization server, too.
  return { ...server, issuer: `http://localhost:${authPort}/` };
}

/** Starts the server that has each feature of the protocol. */
export async function startEverything(): Promise<ExampleServer> {
  const port = await freePort();
  const child = spawn(process.execPath, [await installed(EVERYTHING), "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return serving(child, `http://127.0.0.1:${port}/mcp`);
}

/** Starts a server on a version of the Python SDK. */
export async function startPython(version: string): Promise<ExampleServer> {
  const python = await pythonWith(version);
  const port = await freePort();
  const script = join(import.meta.dirname, "mcp_server.py");
  const child = spawn(python, [script, String(port)], { stdio: ["ignore", "pipe", "pipe"] });
  return serving(child, `http://127.0.0.1:${port}/mcp`);
}

/** Returns an interpreter with a version of the Python SDK. */
export const pythonWith = (version: string): Promise<string> =>
  environment(join(SHELF, `python-mcp@${version}`), (pip) => pip(`mcp==${version}`));

/** Starts a server on the newest TypeScript SDK, which speaks each generation. */
export async function startNewest(): Promise<ExampleServer> {
  const { createMcpHandler, McpServer } = await load(SERVER, "dist/index.mjs");
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "newest", version: "1" });
    server.registerTool("greet", { description: "Greets." }, () => ({
      content: [{ type: "text", text: "Hello, matrix!" }],
    }));
    return server;
  });
  const server = createServer((req, res) => {
    void (async () => {
      const { status, headers, body } = (await handler.fetch(toRequest(req))) as Response;
      res.writeHead(status, Object.fromEntries(headers));
      if (!body) return void res.end();
      res.flushHeaders();
      Readable.fromWeb(body as never).pipe(res);
    })().catch((error: unknown) => res.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const toRequest = (req: IncomingMessage): Request =>
  new Request(`http://${req.headers.host}${req.url}`, {
    method: req.method!,
    headers: req.headers as Record<string, string>,
    ...(req.method === "POST" && { body: Readable.toWeb(req) as never, duplex: "half" }),
  });

// Official clients of MCP in front of servers of each revision: SDKs of two years and the Inspector's
// command line, with the SDK's server and `server-everything`. Prints what each combination did.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import { startFakeServer, type FakeServer } from "../../plugins/frontends/mcp/fake-server.ts";
import { installed, isInstalled, type Package } from "../install.ts";

const SDK_OLD: Package = {
  name: "@modelcontextprotocol/sdk",
  version: "1.23.0",
  main: "package.json",
};
const SDK: Package = { name: "@modelcontextprotocol/sdk", version: "1.32.2", main: "package.json" };
const CLIENT: Package = {
  name: "@modelcontextprotocol/client",
  version: "2.4.0",
  main: "package.json",
};
const EVERYTHING: Package = {
  name: "@modelcontextprotocol/server-everything",
  version: "2026.8.31",
  main: "dist/index.js",
};
const INSPECTOR: Package = {
  name: "@modelcontextprotocol/inspector",
  version: "2.12.0",
  main: "package.json",
};
const PACKAGES = [SDK_OLD, SDK, CLIENT, EVERYTHING, INSPECTOR];

const { CI, CLIENTS } = process.env;
const canRun = CI !== undefined || CLIENTS !== undefined || PACKAGES.every(isInstalled);

const { secret } = mintKey();
const headers = { Authorization: `Bearer ${secret}` };
const report: string[] = [];
let gateway: InProcessGateway;
let modern: FakeServer;
let legacy: FakeServer;
let everything: ChildProcess | undefined;

const freePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });

const load = async (of: Package, path: string): Promise<any> =>
  import(pathToFileURL(join(dirname(await installed(of)), path)).href);

interface Connected {
  readonly client: any;
  readonly revision: string;
}

async function connectSdk(of: Package, path: string, capabilities: object): Promise<Connected> {
  const { Client } = await load(of, "dist/esm/client/index.js");
  const { StreamableHTTPClientTransport } = await load(of, "dist/esm/client/streamableHttp.js");
  const client = new Client({ name: "matrix", version: "1" }, { capabilities });
  const { CreateMessageRequestSchema } = await load(of, "dist/esm/types.js");
  if ("sampling" in capabilities)
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      role: "assistant",
      model: "m",
      content: { type: "text", text: "sampled" },
    }));
  const url = new URL(`${gateway.url}/mcp${path}`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
  await client.connect(transport);
  return { client, revision: transport.protocolVersion };
}

async function connectNewest(path: string): Promise<Connected> {
  const { Client, StreamableHTTPClientTransport } = await load(CLIENT, "dist/index.mjs");
  const client = new Client(
    { name: "matrix", version: "1" },
    { capabilities: {}, versionNegotiation: { mode: "auto" } },
  );
  const url = new URL(`${gateway.url}/mcp${path}`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return { client, revision: client.getNegotiatedProtocolVersion() };
}

describe.skipIf(!canRun)("clients and servers of MCP", () => {
  beforeAll(async () => {
    const port = await freePort();
    const script = await installed(EVERYTHING);
    everything = spawn(process.execPath, [script, "streamableHttp"], {
      env: { ...process.env, PORT: String(port) },
      stdio: "ignore",
    });
    modern = await startFakeServer({ revision: "2026-07-28" });
    legacy = await startFakeServer({ revision: "2025-03-26" });
    const url = `http://127.0.0.1:${port}/mcp`;
    const reachable = () =>
      fetch(url).then(
        () => true,
        () => false,
      );
    await until(reachable);
    const servers = {
      everything: { url },
      modern: { url: modern.url },
      legacy: { url: legacy.url },
    };
    gateway = await startInProcess({
      yaml: `
frontends: [{ use: mcp, with: ${JSON.stringify({ servers })} }]
providers: { demo: { use: demo } }
middleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)} }] } }]
`,
    });
  });
  afterAll(async () => {
    console.log(report.toSorted().join("\n"));
    everything?.kill();
    await gateway?.[Symbol.asyncDispose]();
    await modern?.[Symbol.asyncDispose]();
    await legacy?.[Symbol.asyncDispose]();
  });

  const CONNECTS: readonly [string, (path: string) => Promise<Connected>][] = [
    ["sdk 1.23.0", (path) => connectSdk(SDK_OLD, path, {})],
    ["sdk 1.32.2", (path) => connectSdk(SDK, path, {})],
    ["client 2.4.0", connectNewest],
  ];
  const PATHS: readonly [path: string, tool: string, text: RegExp][] = [
    ["/everything", "echo", /Echo: hi/],
    ["/modern", "echo", /hi/],
    ["/legacy", "echo", /hi/],
    ["", "legacy__echo", /hi/],
  ];
  for (const [name, connect] of CONNECTS)
    it.each(PATHS)(`${name} calls a tool at /mcp%s`, async (path, tool, expected) => {
      const { client, revision } = await connect(path);
      const { tools } = await client.listTools();
      expect(tools.map((one: { name: string }) => one.name)).toContain(tool);
      const { content } = await client.callTool({ name: tool, arguments: { message: "hi" } });
      expect(content[0].text).toMatch(expected);
      report.push(`${name} | /mcp${path} | ${revision} | ${tools.length} tools`);
      await client.close();
    });

  it.each([SDK_OLD, SDK])("$version answers a server's request for sampling", async (of) => {
    const { client } = await connectSdk(of, "/everything", { sampling: {} });
    const { tools } = await client.listTools();
    const name = tools
      .map((one: { name: string }) => one.name)
      .find((one: string) => /sampl/i.test(one));
    const { content } = await client.callTool({ name, arguments: { prompt: "p", maxTokens: 10 } });
    expect(content[0].text).toContain("sampled");
    await client.close();
  });

  it("the Inspector's command line lists tools", async () => {
    const folder = dirname(await installed(INSPECTOR));
    const { default: manifest } = await import(pathToFileURL(join(folder, "package.json")).href, {
      with: { type: "json" },
    });
    const { stdout } = await promisify(execFile)(process.execPath, [
      join(folder, manifest.bin["mcp-inspector"]),
      "--cli",
      `${gateway.url}/mcp/everything`,
      "--transport",
      "http",
      "--header",
      `Authorization: Bearer ${secret}`,
      "--method",
      "tools/list",
    ]);
    const { tools } = JSON.parse(stdout) as { tools: readonly unknown[] };
    expect(tools.length).toBeGreaterThan(5);
    report.push(`inspector 2.12.0 | /mcp/everything | | ${tools.length} tools`);
  });
});

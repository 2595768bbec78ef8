// Official clients of MCP in front of servers of each revision: SDKs of two years and the Inspector's
// command line, with the SDK's server and `server-everything`. Prints what each combination did.
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { startFakeServer, type FakeServer } from "../../plugins/frontends/mcp/fake-server.ts";
import { installed, isInstalled, type Package } from "../install.ts";
import { EVERYTHING, startEverything, type ExampleServer } from "./example-servers.ts";
import { CLIENT, CONNECTS, connectSdk, SDK, SDK_OLD } from "./sdk-clients.ts";

const INSPECTOR: Package = {
  name: "@modelcontextprotocol/inspector",
  version: "2.12.0",
  main: "package.json",
};
const PACKAGES = [SDK_OLD, SDK, CLIENT, EVERYTHING, INSPECTOR];

const { CI, CLIENTS } = process.env;
const canRun = CI !== undefined || CLIENTS !== undefined || PACKAGES.every(isInstalled);

const { secret } = mintKey();
const report: string[] = [];
let gateway: InProcessGateway;
let modern: FakeServer;
let legacy: FakeServer;
let everything: ExampleServer | undefined;

describe.skipIf(!canRun)("clients and servers of MCP", () => {
  beforeAll(async () => {
    everything = await startEverything();
    modern = await startFakeServer({ revision: "2026-07-28" });
    legacy = await startFakeServer({ revision: "2025-03-26" });
    const servers = {
      everything: { url: everything.url },
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
    await gateway?.[Symbol.asyncDispose]();
    await everything?.[Symbol.asyncDispose]();
    await modern?.[Symbol.asyncDispose]();
    await legacy?.[Symbol.asyncDispose]();
  });

  const PATHS: readonly [path: string, tool: string, text: RegExp][] = [
    ["/everything", "echo", /Echo: hi/],
    ["/modern", "echo", /hi/],
    ["/legacy", "echo", /hi/],
    ["", "legacy__echo", /hi/],
  ];
  for (const [name, connect] of CONNECTS)
    it.each(PATHS)(`${name} calls a tool at /mcp%s`, async (path, tool, expected) => {
      const { client, revision } = await connect({ url: `${gateway.url}/mcp${path}`, key: secret });
      const { tools } = await client.listTools();
      expect(tools.map((one: { name: string }) => one.name)).toContain(tool);
      const { content } = await client.callTool({ name: tool, arguments: { message: "hi" } });
      expect(content[0].text).toMatch(expected);
      report.push(`${name} | /mcp${path} | ${revision} | ${tools.length} tools`);
      await client.close();
    });

  it.each([SDK_OLD, SDK])("$version answers a server's request for sampling", async (of) => {
    const url = `${gateway.url}/mcp/everything`;
    const { client } = await connectSdk(of, { url, key: secret, capabilities: { sampling: {} } });
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

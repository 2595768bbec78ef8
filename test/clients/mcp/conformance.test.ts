// The public conformance suite of MCP, against a server on the official SDK behind the gateway.
import { execFile } from "node:child_process";
import { createServer, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { installed, isInstalled, type Package } from "../install.ts";
import { startConformanceServer } from "./conformance-server.ts";

const SUITE: Package = {
  name: "@modelcontextprotocol/conformance",
  version: "0.1.16",
  main: "dist/index.js",
};
const SDK: Package = { name: "@modelcontextprotocol/sdk", version: "1.32.2", main: "package.json" };

const { CI, CLIENTS } = process.env;
const canRun = CI !== undefined || CLIENTS !== undefined || [SUITE, SDK].every(isInstalled);
const { secret } = mintKey();

/** The suite sends no credential, so a proxy adds the key. `target` is read for each request. */
async function startKeyProxy(
  target: () => string,
): Promise<AsyncDisposable & { readonly url: string }> {
  const proxy = createServer((req, res) => {
    const { hostname, port } = new URL(target());
    const headers = { ...req.headers, authorization: `Bearer ${secret}` };
    const options = { hostname, port, path: req.url, method: req.method, headers };
    const sent = sendRequest(options, (answer) => {
      res.writeHead(answer.statusCode!, answer.headers);
      res.flushHeaders();
      answer.pipe(res);
    });
    sent.on("error", () => res.destroy());
    res.on("close", () => sent.destroy());
    req.pipe(sent);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

it.skipIf(!canRun)(
  "the gateway passes the conformance suite for servers",
  async () => {
    await using server = await startConformanceServer(SDK);
    const options = { servers: { suite: { url: server.url } } };
    let url = "";
    await using proxy = await startKeyProxy(() => url);
    await using gateway = await startInProcess({
      // The suite checks that a website on this machine may use the server, and no other one.
      listen: `origins: ["${proxy.url}"]`,
      yaml: `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
providers: { demo: { use: demo } }
middleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)} }] } }]
`,
    });
    ({ url } = gateway);
    const script = await installed(SUITE);
    const out = await new Promise<string>((resolve) => {
      const args = [script, "server", "--suite", "all", "--url", `${proxy.url}/mcp/suite`];
      execFile(process.execPath, args, { maxBuffer: 1 << 26 }, (_, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
    const results = [...out.matchAll(/^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed/gm)];
    const failed = results.filter(([, mark]) => mark === "✗").map(([line]) => line);
    console.log(results.map(([line]) => line).join("\n"));
    expect(results.length).toBe(32);
    expect([failed, out]).toEqual([[], out]);
  },
  600_000,
);

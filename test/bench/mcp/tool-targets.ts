// Compares calls of a tool through the gateway with the same calls of the server. Agentgateway takes
// part if its program is on the path.
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../kit/process/ports.ts";
import { until } from "../../kit/wait.ts";
import { ended, run } from "../process.ts";
import { direct, tollgate, type Target } from "../targets.ts";

/** Generation of the protocol: without sessions, or with sessions and streams of events. */
export type Generation = "stateless" | "session";

const PATHS: Readonly<Record<Generation, string>> = {
  stateless: "/mcp",
  session: "/mcp-session",
};
const META = "io.modelcontextprotocol/";
const STATELESS = "2026-07-28";
const SESSION = "2025-11-25";
const ACCEPT = { accept: "application/json, text/event-stream" };

/** The call that every client sends. */
export const callOf = (generation: Generation): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "search",
      arguments: { query: "tides of the sea", limit: 10 },
      ...(generation === "stateless" && {
        _meta: {
          [`${META}protocolVersion`]: STATELESS,
          [`${META}clientInfo`]: { name: "bench", version: "1" },
          [`${META}clientCapabilities`]: {},
        },
      }),
    },
  });

/** The frontend of a gateway in front of the mock, in YAML's flow style. */
export const toolFrontend = (mock: number, generation: Generation): string =>
  `{ use: mcp, with: { servers: { bench: { url: "${urlOf(mock, generation)}" } } } }`;

const urlOf = (mock: number, generation: Generation): string =>
  `http://127.0.0.1:${mock}${PATHS[generation]}`;

/** Returns a gateway as the target of calls. */
export const toTools = (gate: Target, generation: Generation): Promise<Target> =>
  connected({ ...gate, path: "/mcp/bench" }, generation);

/** Returns the target with the headers of a client that has connected. */
async function connected(target: Target, generation: Generation): Promise<Target> {
  const headers = { ...ACCEPT, ...target.headers };
  if (generation === "stateless") {
    const more = { "mcp-protocol-version": STATELESS, "mcp-method": "tools/call" };
    return { ...target, headers: { ...headers, ...more, "mcp-name": "search" } };
  }
  const params = {
    protocolVersion: SESSION,
    capabilities: {},
    clientInfo: { name: "bench", version: "1" },
  };
  const answer = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }),
  });
  const session = answer.headers.get("mcp-session-id");
  await answer.arrayBuffer();
  if (!answer.ok || session === null)
    throw new Error(`${target.name} opens no session: ${answer.status}`);
  const more = { "mcp-session-id": session, "mcp-protocol-version": SESSION };
  return { ...target, headers: { ...headers, ...more } };
}

/** The server, gateways with each durability, and agentgateway. */
export async function toolTargets(
  mock: { readonly port: number; readonly pid: number },
  generation: Generation,
): Promise<readonly Target[]> {
  const frontend = toolFrontend(mock.port, generation);
  const targets = [await connected({ ...direct(mock), path: PATHS[generation] }, generation)];
  for (const durability of ["power", "process"])
    targets.push(await toTools(await tollgate(mock.port, { durability, frontend }), generation));
  const peer = await agentgateway(urlOf(mock.port, generation));
  if (peer) targets.push(await connected(peer, generation));
  return targets;
}

/** Checks no key and keeps no ledger in this setup. */
async function agentgateway(url: string): Promise<Target | undefined> {
  const command = "agentgateway";
  if (spawnSync(command, ["--version"]).status !== 0) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "tollgate-bench-agentgateway-"));
  const port = await freePort();
  const file = join(dir, "config.yaml");
  await writeFile(
    file,
    `binds: [{ port: ${port}, listeners: [{ routes: [{ backends: [{ mcp: { targets: [{ name: bench, mcp: { host: "${url}" } }] } }] }] }] }]\n`,
  );
  const child = run(["-f", file], 0, { cwd: dir, node: command, ipc: false });
  child.stdout!.resume();
  child.stderr!.resume();
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/mcp`).then(
      () => true,
      () => false,
    );
  await until(answers);
  return {
    name: "agentgateway",
    pid: child.pid!,
    port,
    path: "/mcp",
    headers: {},
    prefix: "",
    async stop() {
      await ended(child, "SIGKILL");
      await rm(dir, { recursive: true, force: true });
    },
  };
}

// Several gateways on one PostgreSQL, each with a road of its own to it.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway, type Daemon } from "./daemon.ts";
import { postgresStore } from "./postgres.ts";
import { tcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { until } from "./waits.ts";

export interface FleetNode {
  readonly road: TcpProxy;
  /** Undefined: it does not run. */
  daemon: Daemon | undefined;
  /** Another process in the same folder. */
  start(): Promise<Daemon>;
}

export interface Fleet extends AsyncDisposable {
  readonly nodes: readonly FleetNode[];
  /** The first key, which one of them made. */
  readonly key: string;
  /** One that runs. */
  any(): Daemon;
}

export interface FleetOptions {
  /** Its database, empty. */
  url: string;
  nodes: number;
  /** gateway.yaml without its store. */
  yaml: string;
  with?: Readonly<Record<string, string>>;
  built?: boolean;
}

export async function startFleet({
  url,
  nodes: many,
  yaml,
  with: more,
  built = false,
}: FleetOptions) {
  const nodes: FleetNode[] = [];
  const dirs: string[] = [];
  const fleet: Fleet = {
    nodes,
    get key() {
      return nodes.map(({ daemon }) => daemon?.key).find(Boolean) ?? "";
    },
    any: () => nodes.find(({ daemon }) => daemon)!.daemon!,
    async [Symbol.asyncDispose]() {
      for (const { daemon, road } of nodes) {
        daemon?.kill("SIGKILL");
        await daemon?.exit;
        await road[Symbol.asyncDispose]();
      }
      for (const dir of dirs) await rm(dir, { recursive: true, force: true });
    },
  };
  const { port } = new URL(url);
  for (let i = 0; i < many; i++) {
    const road = await tcpProxy({ port: Number(port) });
    const dir = await mkdtemp(join(tmpdir(), "tollgate-fleet-"));
    dirs.push(dir);
    const node: FleetNode = {
      road,
      daemon: undefined,
      async start() {
        const store = postgresStore(road.through(url), more);
        return (node.daemon = await startGateway({ yaml: `store: ${store}\n${yaml}`, dir, built }));
      },
    };
    nodes.push(node);
  }
  try {
    await Promise.all(nodes.map((node) => node.start()));
    await until(() => fleet.key !== "");
  } catch (error) {
    await fleet[Symbol.asyncDispose]();
    throw error;
  }
  return fleet;
}

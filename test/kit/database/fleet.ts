// Starts several gateways on one PostgreSQL, each with its own connection to it.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { preloaded, type ChangedSource } from "../../rig/mutants/changed-source.ts";
import { startDaemon, type Daemon } from "../process/daemon.ts";
import { postgresStoreYaml } from "./postgres.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { until } from "../wait.ts";

export interface FleetNode {
  readonly road: TcpProxy;
  /** Sets the offset of its wall clock. 0: the clock is right. */
  clock(offMs: number): Promise<void>;
  /** Undefined if it does not run. */
  daemon: Daemon | undefined;
  /**
   * Starts another process in the same folder. It may use another checkout, and it uses the
   * existing store.
   */
  start(root?: string): Promise<Daemon>;
}

export interface Fleet extends AsyncDisposable {
  readonly nodes: readonly FleetNode[];
  /** Of its database. */
  readonly url: string;
  /** The first key, which one of the gateways created. */
  readonly key: string;
  /** One that runs. */
  any(): Daemon;
}

export interface FleetOptions {
  /** Its database, empty. */
  url: string;
  nodes: number;
  /** Content of gateway.yaml without its store. */
  yaml: string;
  with?: Readonly<Record<string, string>>;
  built?: boolean;
  /** A line of each gateway's source that is replaced. */
  plant?: ChangedSource | undefined;
}

export async function startFleet({
  url,
  nodes: many,
  yaml,
  with: more,
  built = false,
  plant,
}: FleetOptions) {
  const nodes: FleetNode[] = [];
  const dirs: string[] = [];
  const fleet: Fleet = {
    nodes,
    url,
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
    const road = await startTcpProxy({ port: Number(port) });
    const dir = await mkdtemp(join(tmpdir(), "tollgate-fleet-"));
    dirs.push(dir);
    const clock = join(dir, "clock");
    const env = {
      ...preloaded(plant, new URL("../../rig/mutants/jumping-clock.mjs", import.meta.url).href),
      CLOCK_FILE: clock,
    };
    const node: FleetNode = {
      road,
      clock: (offMs) => writeFile(clock, String(offMs)),
      daemon: undefined,
      async start(root) {
        const store = postgresStoreYaml(road.through(url), more, root);
        const of = { yaml: `store: ${store}\n${yaml}`, dir, built, root, env };
        return (node.daemon = await startDaemon(of));
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

// Gateways of a fleet behind a load balancer that checks /readyz, replaced one after another under
// load: first with the same version, then with the next one, whose store changes the database
// schema. No request fails, both versions serve at the same time, and the ledger equals the bill.
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry } from "tollgate/plugin";
import { startFleet, type Fleet, type FleetNode } from "../../kit/database/fleet.ts";
import { startPostgres } from "../../kit/database/postgres.ts";
import { root } from "../../kit/process/program.ts";
import { startBalancer, type Backend } from "../lifecycle/balancer.ts";
import { startBillingUpstream } from "../money/billing-upstream.ts";
import { fleetYaml, readEntries } from "./fleet.ts";
import { judgedFleet } from "./fleet-checks.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import { ask, nextRequest, type ClientResult } from "../load/traffic.ts";

/**
 * The next version: this checkout with another number, and a store that adds a column that older
 * gateways do not know.
 */
async function nextVersion(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "tollgate-next-"));
  for (const name of ["src", "plugins", "schemas"])
    await cp(join(root, name), join(path, name), {
      recursive: true,
      filter: (from) => !from.includes("node_modules"),
    });
  await symlink(join(root, "node_modules"), join(path, "node_modules"));
  const manifest = await readFile(join(root, "package.json"), "utf8");
  await writeFile(
    join(path, "package.json"),
    manifest.replace(/"version": "[^"]+"/, '"version": "99.0.0"'),
  );
  const migrations = join(path, "plugins/stores/postgres/schema/migrations.ts");
  const text = await readFile(migrations, "utf8");
  const added = `  {
    version: 2,
    description: "what the next version adds",
    minVersion: 1,
    expand: (schema) => \`ALTER TABLE \${schema}.node ADD COLUMN next text;\`,
    contract: (schema) => \`ALTER TABLE \${schema}.node ALTER COLUMN next SET DEFAULT '';\`,
  },
`;
  const list = text.indexOf("export const MIGRATIONS");
  const end = text.indexOf("\n];", list) + 1;
  if (list < 0 || end === 0) throw new Error("The store's migrations are not where they were.");
  await writeFile(migrations, text.slice(0, end) + added + text.slice(end));
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

export async function fleetRoll(of: {
  nodes: number;
  clients: number;
  /** Interval of the load balancer's checks. */
  pollMs: number;
  announceMs: number;
  /** Rounds of a restart with the same version before the upgrade. */
  restarts: number;
  /** Time for which old and new versions serve together, with half of them replaced. */
  besideMs: number;
  seed: number;
  say?: (line: string) => void;
}): Promise<RigResult> {
  const { say = () => {} } = of;
  const chanced = createChance(of.seed);
  await using postgres = await startPostgres();
  await using upstream = await startBillingUpstream();
  await using next = await nextVersion();
  await using fleet = await startFleet({
    url: await postgres.database(),
    nodes: of.nodes,
    yaml: fleetYaml(upstream.up.url, `announce: ${of.announceMs}ms, timeout: 20s`),
  });
  const { key } = fleet;
  const backends = fleet.nodes.map(({ daemon }): Backend => ({
    url: daemon!.url,
    key,
    ready: false,
  }));
  await using front = await startBalancer(backends, of.pollMs);
  const heard: ClientResult[] = [];
  let [over, count, besideRequests] = [false, 0, 0];
  const clients = Array.from({ length: of.clients }, async () => {
    while (!over) {
      // No client disconnects: each waits for its complete response.
      const request = nextRequest(chanced, `r.${count++}`, { leave: 0, retried: 0.2 });
      heard.push(await ask(front.url, key, request));
    }
  });
  const wrong: string[] = [];
  const versions = new Set<string>();
  const besideOf: Record<string, number> = {};
  const roll = async (to: string | undefined) => {
    for (const [i, node] of fleet.nodes.entries()) {
      while (!backends.every(({ ready }) => ready)) await sleep(20);
      if (to !== undefined && i === Math.ceil(of.nodes / 2)) {
        say(`old and new serve side by side for ${of.besideMs / 1_000} s`);
        const before = heard.length;
        await sleep(of.besideMs);
        for (const version of await versionsOf(fleet))
          besideOf[version] = (besideOf[version] ?? 0) + 1;
        besideRequests = heard.length - before;
      }
      say(`gateway ${i + 1} is replaced${to === undefined ? "" : " by the next version"}`);
      await replaced(node, backends[i]!, to, wrong);
      for (const version of await versionsOf(fleet)) versions.add(version);
    }
  };
  for (let n = 0; n < of.restarts; n++) await roll(undefined);
  await roll(next.path);
  while (!backends.every(({ ready }) => ready)) await sleep(20);
  await sleep(500);
  over = true;
  await Promise.all(clients);
  const schema = (await fleet.any().ask("store/status", {})) as {
    version: number;
    olderGateways: number;
  };
  if (schema.version !== 2 || schema.olderGateways !== 0)
    wrong.push(
      `the database has schema version ${schema.version}, with ${schema.olderGateways} older gateways`,
    );
  if (versions.size < 2 || Object.keys(besideOf).length !== 2)
    wrong.push(`versions were not side by side: ${Object.keys(besideOf).join(" and ")}`);
  const entries: LedgerEntry[] = await readEntries(fleet);
  const { problems } = (await fleet.any().ask("ledger.verify")) as {
    problems: { message: string }[];
  };
  for (const { message } of problems) wrong.push(`verify: ${message}`);
  const failed = heard.filter(({ status, delivered }) => status !== 200 || !delivered);
  for (const { request, status } of failed.slice(0, 20))
    wrong.push(`${request.path} ${request.tag}: ${status ?? "no answer"}`);
  wrong.push(...judgedFleet(entries, upstream.bill, heard, []));
  return {
    wrong,
    counts: {
      requests: heard.length,
      failed: failed.length,
      replaced: of.nodes * (of.restarts + 1),
      versions: versions.size,
      "beside-s": of.besideMs / 1_000,
      "beside-requests": besideRequests,
      billed: upstream.bill.length,
    },
    seed: of.seed,
  };
}

/** Like an init system: a signal, the exit, and a new process in the same folder. */
async function replaced(
  node: FleetNode,
  backend: Backend,
  to: string | undefined,
  wrong: string[],
): Promise<void> {
  const code = await node.daemon!.stop();
  if (code !== 0) wrong.push(`a gateway that was told to end ended with ${code}`);
  node.daemon = undefined;
  backend.ready = false;
  const { url } = await node.start(to);
  backend.url = url;
}

async function versionsOf(fleet: Fleet): Promise<readonly string[]> {
  const found = (await fleet.any().ask("fleet", {})) as {
    nodes: { state: string; info?: { version: string } }[];
  };
  return found.nodes.flatMap(({ state, info }) => (state === "live" && info ? [info.version] : []));
}

export const rig: Rig = {
  options: {
    nodes: 3,
    clients: 8,
    poll: 1_000,
    announce: 3_000,
    restarts: 1,
    minutes: 0,
    seed: Date.now() % 1e6,
  },
  run: ({ nodes, clients, poll, announce, restarts, minutes, seed }, say) =>
    fleetRoll({
      nodes: Number(nodes),
      clients: Number(clients),
      pollMs: Number(poll),
      announceMs: Number(announce),
      restarts: Number(restarts),
      besideMs: Number(minutes) * 60_000,
      seed: Number(seed),
      say,
    }),
};

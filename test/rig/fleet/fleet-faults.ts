// Faults around gateways and their database under load. Each resolves when everything works again.
import { setTimeout as sleep } from "node:timers/promises";
import type { Fleet, FleetNode } from "../../kit/database/fleet.ts";
import { startReplica, type Postgres } from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";
import type { BilledRequest } from "../money/billing-upstream.ts";
import { deadlocksIn } from "./fleet-sql-mutants.ts";
import type { Lapse } from "./fleet-checks.ts";
import type { Chance } from "../rig.ts";

export const LEASE_MS = 3_000;
const HOUR_MS = 3_600_000;
/** Replication lag of a replica when it becomes the primary. */
const LAG_MS = 500;

export interface World {
  readonly fleet: Fleet;
  /** The primary. It changes with a failover. */
  postgres: Postgres;
  readonly chanced: Chance;
  readonly wrong: string[];
  readonly bill: readonly BilledRequest[];
  /** Parts of the bill that a new primary did not know at its first query. */
  readonly lapses: Lapse[];
}

/** A fault, and its repair when it resolves. */
export const FAULTS: Readonly<Record<string, (world: World) => Promise<void>>> = {
  async kill({ fleet, chanced }) {
    const node = await killed(running(fleet, chanced));
    await sleep(chanced.below(chanced.often(0.3) ? 2 * LEASE_MS : 1_000));
    await node.start();
  },
  async pause({ fleet, chanced }) {
    const { daemon } = running(fleet, chanced);
    daemon!.kill("SIGSTOP");
    await sleep(chanced.often(0.5) ? 200 + chanced.below(1_500) : LEASE_MS + chanced.below(4_000));
    daemon!.kill("SIGCONT");
  },
  async restart({ fleet, chanced, wrong }) {
    const node = running(fleet, chanced);
    const { daemon } = node;
    node.daemon = undefined;
    const code = await daemon!.stop();
    if (code !== 0) {
      const last = daemon!.log.slice(-3).map((line) => JSON.stringify(line).slice(0, 600));
      const { signal } = await daemon!.exit;
      wrong.push(
        `a daemon that was stopped ended with ${code ?? signal}, after ${last.join("; ")}`,
      );
    }
    await node.start();
  },
  async "database-kill"(world) {
    const { postgres, chanced } = world;
    await counted(world);
    await postgres.kill();
    await sleep(chanced.below(3_000));
    await postgres.start();
  },
  async "database-pause"({ postgres, chanced }) {
    postgres.freeze();
    await sleep(300 + chanced.below(4_000));
    postgres.thaw();
  },
  async "database-restart"({ postgres, chanced }) {
    await postgres.stop();
    await sleep(chanced.below(1_000));
    await postgres.start();
  },
  async failover(world) {
    const { fleet, chanced, postgres } = world;
    const replica = await startReplica(postgres);
    await until(
      async () => (await postgres.sql(postgres.url, FOLLOWS)) === "1",
      () => "a replica that follows",
    );
    const from = world.bill.length;
    await counted(world);
    await postgres.deafen();
    await sleep(LAG_MS);
    // Both copies of this gateway's last writes are lost, except on its own disk.
    const dead = chanced.often(0.3) ? await killed(running(fleet, chanced)) : undefined;
    await postgres.kill();
    await replica.promote();
    world.postgres = replica;
    world.lapses.push({ from, to: world.bill.length });
    for (const { road } of fleet.nodes) road.lead(replica.port);
    await postgres[Symbol.asyncDispose]();
    await dead?.start();
  },
  async reset({ fleet, chanced }) {
    for (const { road } of fleet.nodes) if (chanced.often(0.6)) road.reset();
    await sleep(100);
  },
  async cut({ fleet, chanced }) {
    const { road } = chanced.one(fleet.nodes);
    road.cut();
    await sleep(200 + chanced.below(2 * LEASE_MS));
    road.mend();
  },
  async hole({ fleet, chanced }) {
    const { road } = chanced.one(fleet.nodes);
    road.hold();
    await sleep(200 + chanced.below(2 * LEASE_MS));
    road.free();
  },
  async clock({ fleet, chanced }) {
    const node = running(fleet, chanced);
    await node.clock((chanced.often(0.5) ? 1 : -1) * HOUR_MS);
    await sleep(1_000 + chanced.below(3_000));
    await node.clock(0);
  },
  async slow({ fleet, chanced }) {
    const { road } = chanced.one(fleet.nodes);
    road.delay(1 + chanced.below(80));
    await sleep(1_000 + chanced.below(2_000));
    road.delay(0);
  },
};

/** It is streaming and has no lag. */
const FOLLOWS =
  "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lag IS NULL OR replay_lag < '100ms'";

/** A killed server loses its counters. */
async function counted({ postgres, fleet, wrong }: World): Promise<void> {
  wrong.push(...(await deadlocksIn((text) => postgres.sql(postgres.at(fleet.url), text))));
}

async function killed(node: FleetNode): Promise<FleetNode> {
  const { daemon } = node;
  node.daemon = undefined;
  daemon!.kill("SIGKILL");
  await daemon!.exit;
  return node;
}

export const running = (fleet: Fleet, chanced: Chance): FleetNode =>
  chanced.one(fleet.nodes.filter(({ daemon }) => daemon));

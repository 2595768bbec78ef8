// Guarantees for a fleet's operator, figure by figure, with default settings.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry } from "tollgate/plugin";
import { startDaemon } from "../../../kit/process/daemon.ts";
import { freePort } from "../../../kit/process/ports.ts";
import { postgresStoreYaml } from "../../../kit/database/postgres.ts";
import { until } from "../../../kit/wait.ts";
import { readEntries } from "../fleet.ts";
import { EACH, NODES, type Stage } from "./stage.ts";

export interface Heard {
  /** A reported value, and its maximum on an idle machine. */
  readonly figures: readonly (readonly [what: string, is: number, most: number])[];
  readonly wrong: readonly string[];
}
type Part = (stage: Stage, tries: number) => Promise<Heard>;

const round = (ms: number): number => Math.round(ms * 10) / 10;
const everywhere = <T>(work: (node: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: NODES }, (_, node) => work(node)));
const OPEN = 5;

/** A key that is revoked at one gateway: how long any gateway still accepts it. */
const revoked: Part = async ({ ask, command }, tries) => {
  let latest = 0;
  const one = async (n: number) => {
    const name = `revoked ${n}`;
    const made = await command<{ secret: string }>(n % NODES, "keys.create", { name });
    await until(async () => (await everywhere((node) => ask(node, made.secret))).every(is200));
    await command((n + 1) % NODES, "keys.revoke", { id: name });
    const since = performance.now();
    await everywhere(async (node) => {
      for (let refused = 0; refused < 3;) {
        const began = performance.now() - since;
        if (is200(await ask(node, made.secret))) latest = Math.max(latest, began);
        else refused++;
        await sleep(5);
      }
    });
  };
  for (let n = 0; n < tries; n += 10)
    await Promise.all(Array.from({ length: Math.min(10, tries - n) }, (_, i) => one(n + i)));
  return { figures: [["revoked_served_until_ms", round(latest), 1_500]], wrong: [] };
};
const is200 = (status: number) => status === 200;

/** A gateway that is killed with open calls: when the others have settled them. */
const killed: Part = async (stage) => {
  const { fleet, up, ask } = stage;
  const node = fleet.nodes[2]!;
  const before = up.requests.length;
  stage.waits(60_000);
  const asked = Array.from({ length: OPEN }, () => ask(2));
  await until(() => up.requests.length === before + OPEN);
  const began = performance.now();
  node.daemon!.kill("SIGKILL");
  await Promise.all([node.daemon!.exit, ...asked]);
  await until(async () => (await presumedIn(stage)).length === OPEN);
  const took = (performance.now() - began) / 1_000;
  stage.waits(0);
  await node.start();
  return { figures: [["killed_settled_s", round(took), 21]], wrong: [] };
};

/**
 * A gateway that is stopped for longer than its lease with open calls: each is recovered, and
 * corrected once.
 */
const stopped: Part = async (stage) => {
  const { fleet, up, ask } = stage;
  const was = (await presumedIn(stage)).length;
  const before = up.requests.length;
  stage.waits(3_000);
  const asked = Array.from({ length: OPEN }, () => ask(1));
  await until(() => up.requests.length === before + OPEN);
  const { daemon } = fleet.nodes[1]!;
  daemon!.kill("SIGSTOP");
  await sleep(40_000);
  daemon!.kill("SIGCONT");
  const answers = await Promise.all(asked);
  stage.waits(0);
  const recovered = (await presumedIn(stage)).slice(was);
  const mine = new Set(recovered.map(({ attempt }) => attempt));
  const all = async () =>
    (await readEntries(fleet)).filter(
      ({ attempt, kind }) => mine.has(attempt) && kind !== "reserve",
    );
  await until(async () => (await all()).length >= 2 * OPEN);
  // By then, any repeated report has arrived.
  await sleep(3_000);
  const rows = await all();
  const wrong: string[] = [];
  if (recovered.length !== OPEN) wrong.push(`${recovered.length} of ${OPEN} calls were recovered`);
  if (rows.length !== 2 * OPEN) wrong.push(`${rows.length} rows of ${OPEN} calls, not two each`);
  const sum = rows.reduce((nano, { costNano }) => nano + (costNano ?? 0n), 0n);
  if (sum !== BigInt(OPEN) * EACH)
    wrong.push(`they come to ${sum}, and the provider bills ${EACH} each`);
  if (!answers.every(is200)) wrong.push(`their clients got ${answers.join(", ")}`);
  return { figures: [["stopped_corrected", rows.length - OPEN, OPEN]], wrong };
};

const presumedIn = async ({ fleet }: Stage): Promise<readonly LedgerEntry[]> =>
  (await readEntries(fleet)).filter(({ outcome }) => outcome === "recovered");

/** Without clients: statements of a gateway per second. */
const idle: Part = async ({ postgres, fleet: { url } }) => {
  await postgres.sql(url, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
  await sleep(3_000);
  await postgres.sql(url, "SELECT pg_stat_statements_reset()");
  const seconds = 20;
  await sleep(seconds * 1_000);
  const said = await postgres.sql(
    url,
    "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'",
  );
  const each = Number(said) / NODES / seconds;
  return { figures: [["idle_statements_s", Math.round(each * 100) / 100, 2]], wrong: [] };
};

/** A gateway that starts during an outage: how long after the database returns it is ready. */
const late: Part = async ({ postgres, yaml }) => {
  const url = await postgres.database();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-late-"));
  const port = await freePort();
  await postgres.kill();
  const starting = startDaemon({
    yaml: `store: ${postgresStoreYaml(url)}\n${yaml}`,
    dir,
    args: ["--port", `${port}`],
  });
  const ready = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  await until(async () => (await ready()) === 503);
  // It has failed for so long that it retries at its longest interval.
  await sleep(15_000);
  await postgres.start();
  const began = performance.now();
  await until(async () => (await ready()) === 200);
  const took = performance.now() - began;
  await (await starting)[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
  return { figures: [["late_ready_ms", round(took), 2_000]], wrong: [] };
};

/**
 * One gateway's clock jumps by an hour in both directions: number of calls that an hourly limit
 * still admits.
 */
const clocks: Part = async ({ fleet, ask, command }) => {
  const limit = 300;
  const { secret } = await command<{ secret: string }>(0, "keys.create", {
    name: "clocks",
    limits: [`requests=${limit}/hour`],
  });
  let [passed, over] = [0, false];
  const began = performance.now();
  const jumping = (async () => {
    for (let n = 0; !over; n++) {
      await fleet.nodes[1]!.clock(((n % 3) - 1) * 3_600_000);
      await sleep(200);
    }
    await fleet.nodes[1]!.clock(0);
  })();
  await everywhere(async (node) => {
    for (let i = 0; i < limit; i++) if (is200(await ask(node, secret))) passed++;
  });
  // Rate limits refill continuously: amount refilled in the meantime.
  const due = limit * (1 + (performance.now() - began) / 3_600_000);
  over = true;
  await jumping;
  const off = (Math.abs(passed - due) / limit) * 100;
  return { figures: [["clock_off_percent", Math.round(off * 100) / 100, 1]], wrong: [] };
};

export const PARTS = { revoked, killed, stopped, idle, clocks, late } satisfies Record<
  string,
  Part
>;

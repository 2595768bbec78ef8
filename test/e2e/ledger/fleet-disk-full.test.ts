// The database's disk is full: it responds, and can store nothing. New calls are rejected and not
// sent, an open one finishes and is settled when there is space, and the ledger equals the bill.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { chownSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { startFleet } from "../../kit/database/fleet.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";

const run = promisify(execFile);
const NOBODY = 65_534;
const SIZE = "40m";
/** Calls while it is full. */
const ASKED = 60;

const yaml = (url: string) => `
frontends: [images]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: 0.04 } } } }
`;
const EACH = 40_000_000;

interface Disk extends AsyncDisposable {
  readonly url: string;
  fill(): Promise<void>;
  empty(): Promise<void>;
}

/** A small disk of its own, if the system allows a mount. */
async function smallDisk(postgres: Postgres): Promise<Disk | undefined> {
  const dir = await mkdtemp("/tmp/tollgate-disk-");
  const at = join(dir, "disk");
  await mkdir(at);
  const mounted = await run("mount", [
    "-t",
    "tmpfs",
    "-o",
    `size=${SIZE},mode=755`,
    "none",
    at,
  ]).then(
    () => true,
    () => false,
  );
  if (!mounted) return void (await rm(dir, { recursive: true }));
  const space = join(at, "space");
  await mkdir(space);
  for (const path of [dir, at, space]) chownSync(path, NOBODY, NOBODY);
  await postgres.sql(postgres.url, `CREATE TABLESPACE small LOCATION '${space}'`);
  await postgres.sql(postgres.url, "CREATE DATABASE small TABLESPACE small");
  const url = Object.assign(new URL(postgres.url), { pathname: "/small" }).href;
  return {
    url,
    async fill() {
      await postgres.sql(url, "CREATE TABLE filler (text text)");
      // Pages that were never written have no disk space yet.
      await postgres.sql(url, "CHECKPOINT");
      // A failed insert leaves the file enlarged, up to the last page.
      for (const many of [1_000, 1])
        await postgres.sql(
          url,
          `DO $$ BEGIN
             LOOP INSERT INTO filler SELECT repeat('x', 1500) FROM generate_series(1, ${many}); END LOOP;
           EXCEPTION WHEN disk_full THEN NULL; END $$`,
        );
    },
    empty: async () => void (await postgres.sql(url, "DROP TABLE filler")),
    async [Symbol.asyncDispose]() {
      await run("umount", ["-l", at]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

it.skipIf(!hasPostgres())(
  "a full database disk: new calls are rejected and not sent, open calls finish, and the ledger has all of them when there is space",
  async (context) => {
    // A vacuum would return pages, and the disk would not be full.
    await using postgres = await startPostgres({ settings: ["autovacuum=off"] });
    await using disk = await smallDisk(postgres);
    if (!disk) return context.skip("no disk can be mounted here");
    let sent = 0;
    let held: Promise<void> | undefined;
    await using up = await startUpstream({
      "POST /v1/images/generations": async () => {
        sent++;
        await held;
        return {
          ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
          billedUsage: { images: 1 },
        };
      },
      "GET /v1/models": jsonResponse({ object: "list", data: [] }),
    });
    await using fleet = await startFleet({ url: disk.url, nodes: 2, yaml: yaml(up.url) });
    const draw = async (i: number) => {
      const answer = await fetch(`${fleet.nodes[i % 2]!.daemon!.url}/v1/images/generations`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${fleet.key}` },
        body: JSON.stringify({ model: "up/draw", prompt: "a gate", response_format: "b64_json" }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    await until(async () => (await draw(0)).status === 200 && (await draw(1)).status === 200);
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    held = promise;
    const before = sent;
    const under = [draw(0), draw(1)];
    await until(() => sent === before + 2);
    held = undefined;
    await disk.fill();
    // Existing pages have space for some.
    let refused = await draw(0);
    await until(async () => {
      refused = await draw(0);
      return refused.status !== 200;
    });
    expect([refused.status, refused.text]).toEqual([
      503,
      expect.stringContaining("ledger_unavailable"),
    ]);
    answer();
    for (const { status, text } of await Promise.all(under))
      expect([status, text]).toEqual([200, expect.stringContaining("aGk=")]);
    // One line for many calls, because a log uses disk space too.
    const lines = () =>
      fleet.nodes[0]!.daemon!.log.filter(({ msg }) => /ledger unavailable/.test(String(msg)))
        .length;
    const [calls, said] = [sent, lines()];
    const statuses = (
      await Promise.all(Array.from({ length: ASKED }, async () => (await draw(0)).status))
    ).filter((status) => status !== 503);
    // An existing page may still store a row. A call with a row is sent, and no other.
    expect(statuses).toEqual(statuses.map(() => 200));
    expect(sent - calls).toBe(statuses.length);
    expect(lines() - said).toBeLessThan(ASKED / 4);
    await disk.empty();
    await until(async () => (await draw(0)).status === 200 && (await draw(1)).status === 200);
    await until(async () => {
      const { total } = (await fleet.any().ask("ledger.totals", {})) as unknown as {
        total: { costNano: string };
      };
      return total.costNano === `${up.bills.length * EACH}`;
    });
    expect(await fleet.any().ask("ledger.entries", { state: "open" })).toMatchObject({ items: [] });
    expect(await fleet.any().ask("ledger.verify")).toMatchObject({ problems: [] });
  },
);

// Meters without effect are removed from the database, and no others. The database is PGlite, which
// runs the SQL of PostgreSQL.
import { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MIGRATIONS } from "../../../../plugins/stores/postgres/schema/migrations.ts";
import { countMembersSql } from "../../../../plugins/stores/postgres/schema/meter-sweep-sql.ts";
import { meterId } from "../../../../src/store/meter.ts";
import { formatMemberScope } from "../../../../src/plugin/store/member-scope.ts";
import type { Limit } from "../../../../src/plugin/store/limit.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SCHEMA = "tollgate";

let db: PGlite;
beforeAll(async () => {
  db = new PGlite();
  await db.exec(`CREATE SCHEMA ${SCHEMA}`);
  for (const { expand } of MIGRATIONS) await db.exec(expand(SCHEMA));
});
afterAll(() => db?.close());

interface Row {
  per: Limit["per"];
  /** Age of the window's start. */
  age?: number;
  level?: number;
  reserved?: number;
  /** Time since the last call, or since a rate's level. */
  idle?: number;
  scope?: string;
  leased?: boolean;
  stays: boolean;
}

const member = formatMemberScope("g", 2 * HOUR, "m");
const ROWS: Readonly<Record<string, Row>> = {
  "a window of today": { per: "day", stays: true },
  "a window that has just ended": { per: "day", age: DAY, stays: true },
  "a window that ended long ago": { per: "day", age: 4 * DAY, stays: false },
  "a week": { per: "week", age: 17 * DAY, stays: false },
  "a month": { per: "month", age: 70 * DAY, stays: false },
  "a month that has not ended": { per: "month", stays: true },
  "a window without an end": { per: "total", age: 400 * DAY, stays: true },
  "an old window with an open call": { per: "day", age: 9 * DAY, reserved: 1, stays: true },
  "an old window with a lease": { per: "day", age: 9 * DAY, leased: true, stays: true },
  "a rate in use": { per: "minute", idle: HOUR, stays: true },
  "a rate at rest": { per: "minute", idle: 2 * DAY, stays: false },
  "open calls": { per: "open", level: 0, reserved: 2, stays: true },
  "no open calls": { per: "open", level: 0, stays: false },
  "a member in use": { per: "total", scope: member, idle: HOUR, stays: true },
  "a member that is idle": { per: "total", scope: member, idle: 3 * HOUR, stays: false },
  "an idle member's day": { per: "day", scope: member, idle: 3 * HOUR, stays: true },
  "an idle member with an open call": {
    per: "total",
    scope: member,
    idle: 3 * HOUR,
    reserved: 1,
    stays: true,
  },
};

it("removes only meters without effect, page by page", async () => {
  const now = Date.now();
  const expected: string[] = [];
  for (const [name, row] of Object.entries(ROWS)) {
    const { per, age = 0, level = 5, reserved = 0, idle = 0, scope = "key", leased } = row;
    const id = meterId(`${scope} ${name}`, "nano_usd", per, now - age);
    await db.query(
      `INSERT INTO ${SCHEMA}.meter (id, level, reserved, at, max) VALUES ($1, $2, $3, $4, 10)`,
      [id, level, reserved, now - idle],
    );
    if (leased)
      await db.query(
        `INSERT INTO ${SCHEMA}.budget_lease (meter, node, amount, is_offline) VALUES ($1, 'n', 1, false)`,
        [id],
      );
    if (row.stays) expected.push(name);
  }
  let after = "";
  let pages = 0;
  do {
    const { rows } = await db.query<{ reached: string | null }>(
      `SELECT reached FROM ${SCHEMA}.sweep_meters_1($1, 4)`,
      [after],
    );
    after = rows[0]!.reached ?? "";
    pages++;
  } while (after !== "");
  expect(pages).toBe(Math.floor(Object.keys(ROWS).length / 4) + 1);
  const left = await db.query<{ id: string }>(`SELECT id FROM ${SCHEMA}.meter`);
  const names = left.rows.map(({ id }) =>
    Object.keys(ROWS).find((name) => id.endsWith(` ${name}`)),
  );
  expect(names.toSorted()).toEqual(expected.toSorted());
});

it("counts the members that are present, each once", async () => {
  const now = Date.now();
  const scope = (group: string, name: string) => formatMemberScope(group, HOUR, name);
  const meters: readonly [scope: string, per: Limit["per"], idle: number, level: number][] = [
    [scope("c", "fresh"), "total", 0, 1],
    [scope("c", "fresh"), "minute", 0, 1],
    [scope("c", "own"), "total", 0, 1],
    [scope("c", "gone"), "total", 2 * HOUR, 1],
    [scope("c", "daily"), "day", 2 * HOUR, 1],
    [scope("c", "unused"), "day", 2 * HOUR, 0],
    [scope("other", "fresh"), "total", 0, 1],
  ];
  for (const [of, per, idle, level] of meters)
    await db.query(
      `INSERT INTO ${SCHEMA}.meter (id, level, reserved, at, max) VALUES ($1, $2, 0, $3, 10)`,
      [meterId(of, "requests", per, now), level, now - idle],
    );
  // A window that the clock of the test has left is not counted.
  const { rows } = await db.query(countMembersSql(SCHEMA), [["c"], [scope("c", "own")], now]);
  expect(rows).toEqual([{ name: "c", members: "2" }]);
});

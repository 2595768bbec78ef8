import { startPostgres } from "../kit/postgres.ts";
import { until } from "../kit/waits.ts";
import { makePostgres } from "../plugins/stores/made-postgres.ts";
import { asking, fill, Traffic } from "./ledger-size.ts";
import { chance } from "./rig.ts";
const calls = Number(process.argv[2] ?? 60000);
await using postgres = await startPostgres({
  settings: ["shared_buffers=1GB", "max_wal_size=4GB", "work_mem=64MB"],
});
const url = await postgres.database();
const made = await makePostgres(url);
const { store } = made;
await store.open({ instance: "filling" });
await postgres.sql(
  url,
  `SELECT tollgate.month_1(now() - make_interval(months => i)) FROM generate_series(0, 13) i`,
);
const traffic = new Traffic(chance(1), "r", Number(process.argv[4] ?? 395) * 86_400_000);
await fill(store, traffic, { rows: 2 * calls, most: 126 }, chance(1), console.log);
await until(
  async () =>
    Number(
      await postgres.sql(
        url,
        "SELECT c.pos - s.upto + (SELECT count(*) FROM tollgate.batch WHERE pos IS NULL) FROM tollgate.chain c, tollgate.summed s",
      ),
    ) === 0,
);
await postgres.sql(url, "ANALYZE");
const q = async (s: string) => console.log(await postgres.sql(url, s));
await q(
  `SELECT regexp_replace(c.relname, '_\\d{4}_\\d{2}', '') AS t, c.relkind, sum(pg_relation_size(c.oid)) / ${calls} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname='tollgate' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 24`,
);
await q(
  `SELECT kind, ${["attempt", "nth", "key", "account", "provider", "model", "credential", "frontend", "state", "outcome", "price", "labels", "up", "usage", "rest", "salt"].map((c) => `round(avg(pg_column_size(${c}))) AS ${c}`).join(", ")}, round(avg(pg_column_size(e.*))) AS row FROM tollgate.entry e GROUP BY 1`,
);
await q(`SELECT rest, salt, labels, usage, attempt FROM tollgate.entry LIMIT 6`);
const ask = asking(store);
const to = Math.floor(Date.now() / 86_400_000) * 86_400_000;
const month = { from: to - 30 * 86_400_000, to };
for (const [by, more] of [
  [["day"], { ...month, key: "key7" }],
  [["key"], month],
  [["model"], month],
  [["key", "day"], { ...month, tz: "Europe/Berlin" }],
] as const) {
  const took = [];
  for (let i = 0; i < 5; i++) took.push(Math.round((await ask(by as never, more)).ms * 10) / 10);
  console.log(by, took.join());
}
for (const [by, more] of [
  [["day", "model"], { from: Date.now() - 30 * 86_400_000 }],
  [["key", "day"], { ...month, tz: "Asia/Kathmandu" }],
] as const) {
  const took = [];
  for (let i = 0; i < 5; i++) took.push(Math.round((await ask(by as never, more)).ms * 10) / 10);
  console.log(by, more, took.join());
}
const t = performance.now();
const c = process.cpuUsage();
console.log(await store.verify!());
const u = process.cpuUsage(c);
console.log(
  "verify a second",
  calls / ((performance.now() - t) / 1000),
  "cpu us a call",
  (u.user + u.system) / calls,
);
if (process.argv[3]) {
  console.log(url);
  await new Promise((r) => setTimeout(r, 1e9));
}
await made.end();
process.exit(0);

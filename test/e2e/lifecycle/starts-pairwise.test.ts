// Each pair of workers, store, and feature, given to `tollgate check` and then started.
import { afterAll, beforeAll, expect, it } from "vitest";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { both } from "./check-and-start.ts";
import { pairwise } from "./start-features.ts";

const there = hasPostgres();
let postgres: Postgres | undefined;
beforeAll(async () => {
  if (there) postgres = await startPostgres();
});
afterAll(async () => postgres?.[Symbol.asyncDispose]());

const said = (row: Readonly<Record<string, string>>): string =>
  [
    `${row["workers"]} × ${row["store"]}`,
    ...Object.entries(row).flatMap(([name, value]) => (value === "on" ? [name] : [])),
  ].join(", ");

it.for(
  pairwise()
    .filter(({ store }) => there || store !== "postgres")
    .map((row) => [said(row), row] as const),
)("%s", async ([, row]) => {
  const { check, start } = await both(row, postgres);
  expect(check.ok, check.output).toBe(true);
  expect(start.ok, start.output).toBe(true);
});

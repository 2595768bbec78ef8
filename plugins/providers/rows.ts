// Providers that are data. Those marked beta have had their quirks pinned by wire fixtures; the others say what their
// documentation and other people's adapters say, and nobody here has tried them.
import { fromRow, type Compatible, type Row } from "tollgate/protocols/compatible";
import { clouds } from "./row-clouds.ts";
import { labs } from "./row-labs.ts";
import { local } from "./row-local.ts";
import { mainland } from "./row-mainland.ts";
import { routers } from "./row-routers.ts";

export const all: readonly Row[] = [...labs, ...mainland, ...clouds, ...routers, ...local];

export const rows: Readonly<Record<string, Compatible>> = Object.fromEntries(
  all.map((row) => [row.name, fromRow(row)]),
);

// Providers that are defined by data. Fixtures verify the quirks of each. A row lists properties
// that were not verified with the vendor in `unverified`. If its URL or protocols are unverified,
// the row is experimental.
import { fromRow, type CompatibleProvider } from "tollgate/protocols/compatible";
import type { Backend } from "./row-backend.ts";
import { clouds } from "./row-clouds.ts";
import { hosts, platforms, routers } from "./row-hosts.ts";
import { labs } from "./row-labs.ts";
import { local } from "./row-local.ts";
import { mainland } from "./row-china.ts";

export const ALL_ROWS: readonly Backend[] = [
  ...labs,
  ...mainland,
  ...clouds,
  ...hosts,
  ...platforms,
  ...routers,
  ...local,
];

export const rowProviders: Readonly<Record<string, CompatibleProvider>> = Object.fromEntries(
  ALL_ROWS.map((row) => [row.name, fromRow(row)]),
);

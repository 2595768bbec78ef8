// Writes the table of faults into docs/faults.md, from the list that `npm run rig faults` tests the gateway with.
//
//     npx node --conditions=tollgate-source .build/faults.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FAULTS, type Outcome } from "../test/rig/faults/failure-modes.ts";

export const PAGE = join(import.meta.dirname, "../docs/faults.md");
const HEAD = "| what a provider does | a whole answer | a stream | in the ledger |";

const CLIENT = {
  served: "all of it",
  passed: "as it came",
  broken: "content, then its protocol's error",
} as const;

const told = ({ client, of }: Outcome): string => {
  const what = typeof client === "number" ? `${client}` : CLIENT[client];
  return of ? `${what} (${of})` : what;
};
const each = (all: readonly string[]): string => [...new Set(all)].join(", or ");
const entry = ({ row, of }: Outcome): string => (of ? `${row} (${of})` : row);

const table = (): string =>
  [
    HEAD,
    "|---|---|---|---|",
    ...FAULTS.map(({ name, whole, stream }) => {
      const rows = each([...whole, ...stream].map(entry));
      return `| ${name} | ${each(whole.map(told))} | ${each(stream.map(told))} | ${rows} |`;
    }),
  ].join("\n");

/** Returns the page with the table replaced. */
export function written(page: string): string {
  const from = page.indexOf(HEAD);
  if (from < 0) throw new Error("docs/faults.md has no table of faults");
  const end = page.indexOf("\n\n", from);
  return page.slice(0, from) + table() + (end < 0 ? "\n" : page.slice(end));
}

if (import.meta.main) writeFileSync(PAGE, written(readFileSync(PAGE, "utf8")));

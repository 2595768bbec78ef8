// Compares the gateway's ledger rows with the upstream's bill, unit by unit.
import type { Usage } from "tollgate/plugin";
import type { TestGateway, TestUpstream } from "tollgate/testing";

interface Row {
  readonly state: string;
  readonly usage: Usage;
  readonly costNano: bigint | null;
}

/** The settled rows of a gateway in this process. */
export const rowsOf = ({ storeCommands }: TestGateway): Row[] =>
  storeCommands.filter((row) => row.do === "settle");

const sum = (all: readonly Usage[]): Usage => {
  const total: Record<string, number> = {};
  for (const usage of all)
    for (const [unit, count] of Object.entries(usage))
      if (count) total[unit] = (total[unit] ?? 0) + count;
  return total as Usage;
};

export const settled = (at: TestGateway): Usage => sum(rowsOf(at).map(({ usage }) => usage));
export const billOf = ({ bills }: TestUpstream): Usage => sum(bills.map(({ usage }) => usage));

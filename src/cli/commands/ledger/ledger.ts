import type { VerifyResult } from "../../../admin/commands/ledger-commands.ts";
import { plural } from "../../../lib/text.ts";
import { formatUsd } from "../../../money/decimal.ts";
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
} from "../../support/command.ts";
import {
  describeCommand,
  gatewayCommand,
  readCommandInput,
} from "../../support/gateway-command.ts";
import { MAINTENANCE_COMMANDS } from "./ledger-maintenance.ts";
import { csvLine, ROW_COLUMNS, rowCsvLine } from "../../format/reports/csv.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { readEntries } from "../../support/ledger-tail.ts";
import { formatTime, paint, paintRemark, printRemark, print } from "../../format/terminal.ts";

/** Members of `ledger.entries` that the export sets itself. */
const PAGING = ["after", "limit"];

const verify = gatewayCommand<VerifyResult>("ledger.verify", {
  toJson: (found) => ({ ok: isIntact(found), ...found }),
  print: printVerified,
  exitCode: (found) => (isIntact(found) ? EXIT_CODES.ok : EXIT_CODES.failed),
});

const exportCommand: Subcommand = {
  usage: "ledger export [options]",
  summary: "Export every row as JSON lines or CSV",
  description:
    "Exports every row as JSON lines with amounts in nano-dollars, or with --csv as " +
    "a CSV table.",
  options: {
    csv: { description: "Write a CSV table with amounts in decimal dollars" },
    ...describeCommand("ledger.entries", { omit: PAGING }).options,
  },
  examples: [
    "tollgate ledger export --since 2026-11-01 > november.jsonl",
    "tollgate ledger export --csv --since 2026-11-01 > november.csv",
  ],
  run: exportRows,
};

export const command: CliCommand = createCommandGroup(
  "ledger",
  "Verifies, exports, archives, and prunes the ledger.",
  {
    verify,
    adjust: gatewayCommand<{ readonly attempt: string; readonly costNano: string }>(
      "ledger.adjust",
      {
        print: ({ attempt, costNano }) => print(`${attempt}  ${formatUsd(BigInt(costNano))}`),
      },
    ),
    export: exportCommand,
    ...MAINTENANCE_COMMANDS,
  },
);

/** Whether the ledger is unchanged. Throws if the store cannot tell. */
const isIntact = ({ isVerifiable, problems, containsHash }: VerifyResult): boolean =>
  isVerifiable
    ? problems.length === 0 && containsHash !== false
    : fail("conflict", "Cannot verify: this store has no hash chain.");

function printVerified(found: VerifyResult, given: CliInput): void {
  const fine = isIntact(found);
  const { problems, head, containsHash, ledgerState } = found;
  const gone = ledgerState?.prunedRows ?? 0;
  for (const { path, message } of problems) print(`${paint("red", path)}  ${message}`);
  if (containsHash === false)
    print(
      `${paint("red", "head")}  ${given.getText("head")} is not in this ledger: the ledger was truncated, or it is a different ledger.${gone > 0 ? ` The hash may also belong to the ${plural(gone, "row")} that were pruned. Check the archive.` : ""}`,
    );
  if (fine) print(`${paint("green", "verified")}  ${formatRowRange(head?.seq ?? 0, ledgerState)}`);
  if (head) print(`${paint("gray", "head")}  ${head.hash}`);
}

/**
 * Formats the range of rows, such as "600 rows from 2026-01-01 00:00:00 UTC on; before it, sums of
 * 400 rows".
 */
function formatRowRange(all: number, kept: VerifyResult["ledgerState"]): string {
  if (!kept || kept.prunedRows === 0) return plural(all, "row");
  const since = kept.oldestAt == null ? "" : ` since ${formatTime(kept.oldestAt)}`;
  return `${plural(all - kept.prunedRows, "row")}${since}; totals of ${plural(kept.prunedRows, "earlier row")}`;
}

async function exportRows(given: CliInput): Promise<number> {
  const csv = given.has("csv");
  if (csv && given.json)
    fail("invalid", "--json and --csv cannot be used together.", { code: "usage" });
  await using store = await openStoreAccess(given);
  let count = 0;
  if (csv) process.stdout.write(csvLine(ROW_COLUMNS));
  for await (const entry of readEntries(store, readCommandInput("ledger.entries", given, PAGING))) {
    if (csv) process.stdout.write(rowCsvLine(entry));
    else print(JSON.stringify(entry));
    count++;
  }
  printRemark(paintRemark("gray", plural(count, "row")));
  return EXIT_CODES.ok;
}

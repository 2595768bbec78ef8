import type { VerifyResult } from "../../../admin/commands/ledger-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { plural } from "../../../lib/text.ts";
import { formatUsd } from "../../../money/format-usd.ts";
import type { JsonObject } from "../../../model/values.ts";
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { MAINTENANCE_COMMANDS } from "./ledger-maintenance.ts";
import { csvLine } from "../../format/reports/csv.ts";
import { ROW_COLUMNS, rowCsvLine } from "../../format/reports/row-csv.ts";
import { LEDGER_FILTER_OPTIONS, readFilters } from "../../format/ledger-filters.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { readEntries } from "../../support/ledger-tail.ts";
import {
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

const subcommands: Readonly<Record<string, Subcommand>> = {
  verify: {
    usage: "ledger verify [options]",
    summary: COMMAND_SPECS["ledger.verify"].summary,
    description:
      "Verifies that no row was changed, and prints the newest hash. Store that hash: " +
      "with --head, a later run detects whether the ledger was truncated.",
    options: {
      head: {
        placeholder: "hash",
        description: "Earlier hash that the ledger must still contain",
      },
      ...GATEWAY_OPTIONS,
    },
    examples: ["tollgate ledger verify"],
    run: verify,
  },
  adjust: {
    usage: "ledger adjust <attempt> [options]",
    summary: COMMAND_SPECS["ledger.adjust"].summary,
    description:
      "Adds a correction to the cost of a call, such as a refund, with the reason. The " +
      "call's own rows are unchanged, and its budgets count the correction. A call is " +
      "identified by `attempt`, which tollgate request shows.",
    options: {
      usd: {
        placeholder: "amount",
        description: "Amount in US dollars to add to the cost (negative to subtract)",
      },
      reason: {
        placeholder: "words",
        description: "Reason for the correction, recorded in the row",
      },
      ...GATEWAY_OPTIONS,
    },
    positionals: { least: 1, most: 1 },
    examples: ["tollgate ledger adjust r1x7-1 --usd=-0.25 --reason refund"],
    run: adjust,
  },
  export: {
    usage: "ledger export [options]",
    summary: "Export every row as JSON lines or CSV",
    description:
      "Exports every row as JSON lines with amounts in nano-dollars, or with --csv as " +
      "a CSV table.",
    options: {
      csv: { description: "Write a CSV table with amounts in decimal dollars" },
      ...LEDGER_FILTER_OPTIONS,
      ...GATEWAY_OPTIONS,
    },
    examples: [
      "tollgate ledger export --since 2026-11-01 > november.jsonl",
      "tollgate ledger export --csv --since 2026-11-01 > november.csv",
    ],
    run: exportRows,
  },
  ...MAINTENANCE_COMMANDS,
};

export const command: CliCommand = createCommandGroup(
  "ledger",
  "Verifies, exports, archives, and prunes the ledger.",
  subcommands,
);

async function verify(given: CliInput): Promise<number> {
  await using door = await openStoreAccess(given);
  const hash = given.getText("head");
  const found = (await door.run("ledger.verify", { hash })) as unknown as VerifyResult;
  if (!found.isVerifiable) fail("conflict", "Cannot verify: this store has no hash chain.");
  const { problems, head, containsHash, ledgerState } = found;
  const gone = ledgerState?.prunedRows ?? 0;
  const fine = problems.length === 0 && containsHash !== false;
  if (given.json) printJson({ ok: fine, ...found });
  else {
    for (const { path, message } of problems) print(`${paint("red", path)}  ${message}`);
    if (containsHash === false)
      print(
        `${paint("red", "head")}  ${hash} is not in this ledger: the ledger was truncated, or it is a different ledger.${gone > 0 ? ` The hash may also belong to the ${plural(gone, "row")} that were pruned. Check the archive.` : ""}`,
      );
    if (fine)
      print(
        `${paint("green", "as it was written")}  ${formatRowRange(head?.seq ?? 0, ledgerState)}`,
      );
    if (head) print(`${paint("gray", "head")}  ${head.hash}`);
  }
  return fine ? EXIT_CODES.ok : EXIT_CODES.failed;
}

/**
 * Formats the range of rows: "600 rows from 2026-01-01 00:00:00 UTC on; before it, sums of 400
 * rows".
 */
function formatRowRange(all: number, kept: VerifyResult["ledgerState"]): string {
  if (!kept || kept.prunedRows === 0) return plural(all, "row");
  const since = kept.oldestAt == null ? "" : ` since ${formatTime(kept.oldestAt)}`;
  return `${plural(all - kept.prunedRows, "row")}${since}; totals of ${plural(kept.prunedRows, "earlier row")}`;
}

async function adjust(given: CliInput): Promise<number> {
  await using door = await openStoreAccess(given);
  const asked = {
    attempt: given.positionals[0],
    usd: given.getText("usd"),
    reason: given.getText("reason"),
  };
  const { attempt, costNano } = (await door.run("ledger.adjust", asked as JsonObject)) as {
    attempt: string;
    costNano: string;
  };
  if (given.json) printJson({ attempt, costNano });
  else print(`${attempt}  ${formatUsd(BigInt(costNano))}`);
  return EXIT_CODES.ok;
}

async function exportRows(given: CliInput): Promise<number> {
  const csv = given.has("csv");
  if (csv && given.json)
    fail("invalid", "--json and --csv cannot be used together.", { code: "usage" });
  await using door = await openStoreAccess(given);
  let count = 0;
  if (csv) process.stdout.write(csvLine(ROW_COLUMNS));
  for await (const entry of readEntries(door, readFilters(given))) {
    if (csv) process.stdout.write(rowCsvLine(entry));
    else print(JSON.stringify(entry));
    count++;
  }
  printRemark(paintRemark("gray", plural(count, "row")));
  return EXIT_CODES.ok;
}

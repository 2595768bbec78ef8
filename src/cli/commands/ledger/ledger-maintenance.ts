// Commands that show the ledger's size, archive rows, and replace old rows by sums.
import { resolve } from "node:path";
import { wallClock } from "../../../lib/time/wall-clock.ts";
import type {
  ArchiveResult,
  PruneCommandResult,
} from "../../../admin/commands/maintenance-commands.ts";
import { failUnsupported } from "../../../admin/backup/unsupported.ts";
import { createClosedStore } from "../../../admin/backup/restore.ts";
import { parseDuration } from "../../../lib/time/units.ts";
import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { formatUsd } from "../../../money/decimal.ts";
import type { LedgerState, PrunePlan } from "../../../plugin/store/ledger-maintenance.ts";
import {
  formatBytes,
  formatSeconds,
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";
import { type CliInput, EXIT_CODES, type Subcommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { configFile, quietLog, requireGatewayConfig } from "../../support/load-config.ts";

const writeArchive = gatewayCommand<ArchiveResult>("ledger.archive", {
  options: {
    verify: { description: "Read the archive and verify it" },
    head: {
      placeholder: "hash",
      description: "Last hash that the archive must have (needs --verify)",
    },
  },
  print: printArchive,
});

export const MAINTENANCE_COMMANDS: Readonly<Record<"status" | "archive" | "prune", Subcommand>> = {
  status: gatewayCommand<LedgerState>("ledger.status", { print: printState }),
  archive: {
    ...writeArchive,
    run: (given) => (given.has("verify") ? verifyArchive(given) : writeArchive.run(given)),
  },
  prune: gatewayCommand<PruneCommandResult>("ledger.prune", {
    omit: ["before"],
    options: {
      older: { placeholder: "span", description: "Minimum age of rows to prune, such as 400d" },
    },
    toInput: (input, given) => ({ ...input, before: pruneBefore(given) }),
    print: printPruned,
  }),
};

function printState({ bytes, oldestAt, prunedRows }: LedgerState): void {
  const since = oldestAt == null ? "no rows" : `rows since ${formatTime(oldestAt)}`;
  const sums = prunedRows > 0 ? `, and totals of ${plural(prunedRows, "older row")}` : "";
  print(`${formatBytes(bytes)}, ${since}${sums}`);
}

function printArchive({ file, bytes, ms, rows, lastHash }: ArchiveResult): void {
  print(`${file}  ${plural(rows, "row")}, ${formatBytes(bytes)}, ${formatSeconds(ms)}`);
  print(`${paint("gray", "head")}  ${lastHash}`);
}

async function verifyArchive(given: CliInput): Promise<number> {
  const { config } = await requireGatewayConfig(configFile(given));
  await using idle = await createClosedStore(config, quietLog().log);
  const read =
    idle.store.maintenance?.readArchive ?? failUnsupported(config.store.use, "reading archives");
  const found = await read(resolve(given.positionals[0]!));
  const { problems, rows, from, to, lastHash, total } = found;
  const wanted = given.getText("head");
  const other = wanted !== undefined && wanted !== lastHash;
  const fine = problems.length === 0 && !other;
  if (given.json) printJson({ ok: fine, ...found });
  else {
    for (const { path, message } of problems) print(`${paint("red", path)}  ${message}`);
    if (other) print(`${paint("red", "head")}  The last hash is ${lastHash}, not ${wanted}.`);
    const span = from == null || to == null ? "" : `, ${formatTime(from)} to ${formatTime(to)}`;
    if (fine)
      print(
        `${paint("green", "verified")}  ${plural(rows, "row")}${span}, ${formatUsd(total.costNano)}`,
      );
    print(`${paint("gray", "head")}  ${lastHash}`);
  }
  return fine ? EXIT_CODES.ok : EXIT_CODES.failed;
}

function pruneBefore(given: CliInput): number {
  const span = parseDuration(given.getText("older") ?? "");
  return span === undefined
    ? fail(
        "invalid",
        "Missing minimum age. Pass --older, such as --older 400d. See tollgate ledger prune --help.",
        { code: "usage" },
      )
    : Math.max(0, wallClock() - span);
}

function printPruned({ plan, result }: PruneCommandResult): void {
  if (result === null) return printPlan(plan);
  const { rows, bytes, ms, longestStepMs, archive } = result;
  if (archive) printArchive(archive);
  print(`${plural(rows, "row")} pruned, ${formatBytes(bytes)} freed, ${formatSeconds(ms)}`);
  printRemark(paintRemark("gray", `the longest step took ${longestStepMs.toFixed(1)} ms`));
  printOpenCall(plan);
}

function printPlan(plan: PrunePlan): void {
  const { rows, bytes, ms, from, to } = plan;
  const when = from == null || to == null ? "" : `, ${formatTime(from)} to ${formatTime(to)}`;
  print(
    `${plural(rows, "row")} would be pruned${when}: about ${formatBytes(bytes)}, in about ${formatSeconds(ms)}`,
  );
  printOpenCall(plan);
}

function printOpenCall({ open }: PrunePlan): void {
  if (open)
    printRemark(
      paintRemark(
        "yellow",
        `Rows since ${formatTime(open.at)} are kept because call ${open.attempt} is open.`,
      ),
    );
}

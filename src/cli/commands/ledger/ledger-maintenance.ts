// Commands that show the ledger's size, archive rows, and replace old rows by sums.
import { resolve } from "node:path";
import { wallClock } from "../../../lib/time/wall-clock.ts";
import type {
  ArchiveResult,
  PruneCommandResult,
} from "../../../admin/commands/maintenance-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { failUnsupported } from "../../../admin/backup/unsupported.ts";
import { createClosedStore } from "../../../admin/backup/closed-store.ts";
import { parseDuration } from "../../../lib/time/units.ts";
import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { formatUsd } from "../../../money/format-usd.ts";
import type { LedgerState, PrunePlan } from "../../../plugin/store/ledger-maintenance.ts";
import { formatBytes, formatSeconds } from "../../format/format-amounts.ts";
import {
  type CliInput,
  EXIT_CODES,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { configFile, loadGatewayConfig, configName, quietLog } from "../../support/load-config.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import {
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

export const MAINTENANCE_COMMANDS: Readonly<Record<"status" | "archive" | "prune", Subcommand>> = {
  status: {
    usage: "ledger status [options]",
    summary: COMMAND_SPECS["ledger.status"].summary,
    description:
      "Shows the size of the ledger on disk, the time of its oldest row, and how many " +
      "rows rollups replaced.",
    options: GATEWAY_OPTIONS,
    examples: ["tollgate ledger status"],
    run: state,
  },
  archive: {
    usage: "ledger archive <file> [options]",
    summary: COMMAND_SPECS["ledger.archive"].summary,
    description:
      "Writes ledger rows as gzip-compressed JSON lines, with a proof of integrity. " +
      "The rows stay in the ledger. With --verify, it reads an archive and verifies it " +
      "without the ledger.",
    options: {
      before: {
        placeholder: "when",
        description: "Only rows before this time: 400d, 2026-01-01 (UTC)",
      },
      "no-labels": { description: "Leave out label values" },
      verify: { description: "Read the archive and verify it" },
      head: {
        placeholder: "hash",
        description: "Last hash that the archive must have (needs --verify)",
      },
      ...GATEWAY_OPTIONS,
    },
    positionals: { least: 1, most: 1 },
    examples: [
      "tollgate ledger archive 2026.jsonl.gz --before 2027-01-01",
      "tollgate ledger archive 2026.jsonl.gz --verify",
    ],
    run: (given) => (given.has("verify") ? verifyArchive(given) : runArchive(given)),
  },
  prune: {
    usage: "ledger prune [options]",
    summary: COMMAND_SPECS["ledger.prune"].summary,
    description:
      "Removes the oldest rows in whole commits and replaces them with totals. " +
      "Reports, budgets, and the hash chain stay the same, except for the rows and " +
      "their labels. It runs in short steps while a gateway serves, and resumes after " +
      "an interruption. Rows are kept while an older call is open. To see the effect " +
      "first, pass --dry-run.",
    options: {
      older: { placeholder: "span", description: "Minimum age of rows to prune, such as 400d" },
      "dry-run": { description: "Report the number of rows, bytes, and time, and prune nothing" },
      "archive-first": {
        placeholder: "file",
        description: "Archive for the rows, written before they are pruned",
      },
      ...GATEWAY_OPTIONS,
    },
    examples: [
      "tollgate ledger prune --older 400d --dry-run",
      "tollgate ledger prune --older 400d --archive-first old.jsonl.gz",
    ],
    run: prune,
  },
};

async function state(given: CliInput): Promise<number> {
  await using door = await openStoreAccess(given);
  const found = (await door.run("ledger.status", {})) as unknown as LedgerState;
  if (given.json) printJson(found);
  else {
    const since = found.oldestAt == null ? "no rows" : `rows since ${formatTime(found.oldestAt)}`;
    const sums =
      found.prunedRows > 0 ? `, and totals of ${plural(found.prunedRows, "older row")}` : "";
    print(`${formatBytes(found.bytes)}, ${since}${sums}`);
  }
  return EXIT_CODES.ok;
}

/** Parses the end of a range: an age such as `400d`, or a date. */
function parseBefore(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : wallClock() - span;
  return Number.isNaN(at)
    ? fail(
        "invalid",
        `Invalid --${option} "${text}". It must be a duration or a date, such as 400d or 2026-01-01.`,
        {
          code: "usage",
        },
      )
    : Math.max(0, at);
}

async function runArchive(given: CliInput): Promise<number> {
  const before = parseBefore(given.getText("before"), "before");
  await using door = await openStoreAccess(given);
  const made = (await door.run("ledger.archive", {
    file: resolve(given.positionals[0]!),
    before,
    labels: !given.has("no-labels"),
  })) as unknown as ArchiveResult;
  if (given.json) printJson(made);
  else printArchive(made);
  return EXIT_CODES.ok;
}

function printArchive({ file, bytes, ms, rows, lastHash }: ArchiveResult): void {
  print(`${file}  ${plural(rows, "row")}, ${formatBytes(bytes)}, ${formatSeconds(ms)}`);
  print(`${paint("gray", "head")}  ${lastHash}`);
}

async function verifyArchive(given: CliInput): Promise<number> {
  const file = configFile(given);
  const { config } = await loadGatewayConfig(file);
  if (!config)
    return fail("invalid", `${configName(file)} has errors. Run tollgate check for details.`);
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
        `${paint("green", "as it was written")}  ${plural(rows, "row")}${span}, ${formatUsd(total.costNano)}`,
      );
    print(`${paint("gray", "head")}  ${lastHash}`);
  }
  return fine ? EXIT_CODES.ok : EXIT_CODES.failed;
}

async function prune(given: CliInput): Promise<number> {
  const older = given.getText("older");
  const span = older === undefined ? undefined : parseDuration(older);
  if (span === undefined)
    return fail(
      "invalid",
      "Missing minimum age. Pass --older, such as --older 400d. See tollgate ledger " +
        "prune --help.",
      {
        code: "usage",
      },
    );
  const first = given.getText("archive-first");
  await using door = await openStoreAccess(given);
  const answer = (await door.run("ledger.prune", {
    before: Math.max(0, wallClock() - span),
    dryRun: given.has("dry-run"),
    archive: first === undefined ? undefined : resolve(first),
  })) as unknown as PruneCommandResult;
  if (given.json) printJson(answer);
  else if (answer.result === null) printPlan(answer.plan);
  else {
    const { rows, bytes, ms, longestStepMs, archive } = answer.result;
    if (archive) printArchive(archive);
    print(`${plural(rows, "row")} pruned, ${formatBytes(bytes)} freed, ${formatSeconds(ms)}`);
    printRemark(paintRemark("gray", `the longest step took ${longestStepMs.toFixed(1)} ms`));
    printOpenCall(answer.plan);
  }
  return EXIT_CODES.ok;
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

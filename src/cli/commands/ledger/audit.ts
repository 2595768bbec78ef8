import type { AuditedCommand } from "../../../plugin/store/audit.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { parseTimeOption } from "../../format/ledger-filters.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import {
  sanitize,
  alignColumns,
  formatTime,
  paint,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "audit [options]",
  description:
    "Lists the changes that admin commands made, newest first. Each change is " +
    "recorded in the ledger's hash chain before it takes effect, so tollgate ledger " +
    "verify detects changed or removed entries.",
  options: {
    limit: { placeholder: "n", description: "Maximum number of entries (default: 100)" },
    after: {
      placeholder: "next",
      description: "Only entries before this cursor, from `next` in the JSON output",
    },
    since: { placeholder: "when", description: "Only entries since this time: 7d, 2026-11-01" },
    until: { placeholder: "when", description: "Only entries before this time: 1d, 2026-12-01" },
    ...GATEWAY_OPTIONS,
  },
  examples: ["tollgate audit", "tollgate audit --limit 10 --json"],
  async run(given) {
    const limit = given.getText("limit");
    await using door = await openStoreAccess(given);
    const answer = await door.run("audit.list", {
      after: given.getText("after"),
      ...(limit !== undefined && { limit: Number(limit) }),
      from: parseTimeOption(given, "since"),
      to: parseTimeOption(given, "until"),
    });
    const { items } = answer as unknown as { items: readonly AuditedCommand[] };
    if (given.json) printJson(answer);
    else if (items.length === 0) printRemark("There are no changes yet.");
    else print(alignColumns(items.map(formatEntry)));
    return EXIT_CODES.ok;
  },
};

const formatEntry = (of: AuditedCommand): string[] => [
  paint("gray", formatTime(of.at)),
  sanitize(of.actor),
  of.channel,
  sanitize(of.address ?? ""),
  paint("bold", of.command),
  sanitize(of.target ?? ""),
  paint(of.outcome === "done" ? "green" : "yellow", of.code ?? of.outcome),
];

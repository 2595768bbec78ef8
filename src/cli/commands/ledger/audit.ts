import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
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
  description: `Will ${COMMAND_SPECS["audit.list"].summary}. Each stands in the ledger's chain of hashes from before it took effect on: tollgate ledger verify\nfinds one that was changed or taken out.`,
  options: {
    limit: { placeholder: "n", description: "how many at most; 100 by default" },
    after: { placeholder: "next", description: "those before, as `next` of --json says" },
    since: { placeholder: "when", description: "from then on: 7d, 2026-11-01" },
    until: { placeholder: "when", description: "up to then: 1d, 2026-12-01" },
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
    else if (items.length === 0) printRemark("Nothing was changed by a command yet.");
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

import type { AuditedCommand } from "../../../plugin/store/audit.ts";
import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import {
  sanitize,
  alignColumns,
  formatTime,
  paint,
  printRemark,
  print,
} from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<{ readonly items: readonly AuditedCommand[] }>(
  "audit.list",
  {
    print: ({ items }) =>
      items.length === 0
        ? printRemark("There are no changes yet.")
        : print(alignColumns(items.map(formatEntry))),
  },
);

const formatEntry = (of: AuditedCommand): string[] => [
  paint("gray", formatTime(of.at)),
  sanitize(of.actor),
  of.channel,
  sanitize(of.address ?? ""),
  paint("bold", of.command),
  sanitize(of.target ?? ""),
  paint(of.outcome === "done" ? "green" : "yellow", of.code ?? of.outcome),
];

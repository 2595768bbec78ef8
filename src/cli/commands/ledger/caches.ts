// Reports the share of the input that providers read from their prompt caches, and the tokens that
// were written to a cache and never read.
import type { CacheUse } from "../../../admin/commands/cache-use.ts";
import type { CacheReport } from "../../../admin/commands/ledger-commands.ts";
import { escapeControls } from "../../../lib/text.ts";
import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { alignColumns, paint, print, printRemark } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<CacheReport>("ledger.caches", {
  toJson: ({ by, rows, keyNames }) => ({ by, rows: rows.map((row) => toJson(row, keyNames)) }),
  print({ by, rows, keyNames }) {
    if (rows.length === 0) printRemark("No usage found.");
    else print(formatTable(rows, by, keyNames));
  },
});

/** Share of the input that was read from a cache, in percent with one decimal. */
const shareOf = ({ read, input }: CacheUse): number =>
  input === 0 ? 0 : Math.round((read / input) * 1_000) / 10;

const toJson = (row: CacheUse, keyNames: CacheReport["keyNames"]) => ({
  name: row.name,
  ...(keyNames[row.name] !== undefined && { key_name: keyNames[row.name] }),
  calls: row.calls,
  input_tokens: row.input,
  cached_tokens: row.read,
  cached_percent: shareOf(row),
  written_tokens: row.written,
  unread_tokens: row.unread,
});

const formatCount = (count: number): string => count.toLocaleString("en");

function formatTable(
  rows: readonly CacheUse[],
  title: string,
  keyNames: CacheReport["keyNames"],
): string {
  const titles = [title, "calls", "input", "cached", "share", "written", "never read"];
  return alignColumns([
    titles.map((each) => paint("gray", each)),
    ...rows.map((row) => [
      escapeControls(keyNames[row.name] ?? row.name) || "-",
      ...[row.calls, row.input, row.read].map(formatCount),
      `${shareOf(row).toFixed(1)}%`,
      formatCount(row.written),
      row.unread > 0 ? paint("yellow", formatCount(row.unread)) : "0",
    ]),
  ]);
}

// Reports the share of the input that providers read from their prompt caches, and the tokens that
// were written to a cache and never read. Also reports the places at which requests differ from
// earlier ones.
import type { PromptDifference } from "../../../admin/commands/cache-use.ts";
import type { CacheReport, CacheRow } from "../../../admin/commands/ledger-commands.ts";
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
const shareOf = ({ read, input }: CacheRow): number =>
  input === 0 ? 0 : Math.round((read / input) * 1_000) / 10;

const toJson = (row: CacheRow, keyNames: CacheReport["keyNames"]) => ({
  name: row.name,
  ...(keyNames[row.name] !== undefined && { key_name: keyNames[row.name] }),
  calls: row.calls,
  input_tokens: row.input,
  cached_tokens: row.read,
  cached_percent: shareOf(row),
  written_tokens: row.written,
  unread_tokens: row.unread,
  changed_calls: row.changed,
  first_differences: row.differences,
});

const formatCount = (count: number): string => count.toLocaleString("en");

/** Returns the most frequent place, with the number of its calls. */
const formatDifference = ([first]: readonly PromptDifference[]): string =>
  first === undefined ? "-" : `${escapeControls(first.place)} (${formatCount(first.calls)})`;

/** Titles of the columns after the name of the group. */
const TITLES = [
  "calls",
  "input",
  "cached",
  "share",
  "written",
  "never read",
  "changed",
  "first difference",
];

function formatTable(
  rows: readonly CacheRow[],
  title: string,
  keyNames: CacheReport["keyNames"],
): string {
  return alignColumns([
    [title, ...TITLES].map((each) => paint("gray", each)),
    ...rows.map((row) => [
      escapeControls(keyNames[row.name] ?? row.name) || "-",
      ...[row.calls, row.input, row.read].map(formatCount),
      `${shareOf(row).toFixed(1)}%`,
      formatCount(row.written),
      row.unread > 0 ? paint("yellow", formatCount(row.unread)) : "0",
      row.changed > 0 ? paint("yellow", formatCount(row.changed)) : "0",
      formatDifference(row.differences),
    ]),
  ]);
}

// Exports usage as CSV, with exact amounts. No cell is interpreted as a formula by a spreadsheet.
import { UNITS } from "./usage-units.ts";
import type { UsageReport } from "../../api-types.ts";

const exactUsd = (nano: string): string => {
  const n = BigInt(nano);
  const size = `${n < 0n ? -n : n}`.padStart(10, "0");
  return `${n < 0n ? "-" : ""}${size.slice(0, -9)}.${size.slice(-9)}`;
};

/**
 * Formats a cell. If a cell starts like a formula, it gets a leading quote, because spreadsheets
 * then treat it as text.
 */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toCsv({ rows, keyNames }: UsageReport, by: string): string {
  const units = UNITS.filter((unit) => rows.some(({ usage }) => usage[unit]));
  const head = [
    by,
    ...(by === "key" ? ["name"] : []),
    "calls",
    ...units,
    "cost_usd",
    "unpriced",
    "estimated",
  ];
  const lines = rows.map((row) => {
    const groupValue = row.by[by] ?? "";
    return [
      csvCell(groupValue),
      ...(by === "key" ? [csvCell(keyNames[groupValue] ?? "")] : []),
      row.calls,
      ...units.map((unit) => row.usage[unit] ?? 0),
      exactUsd(row.costNano),
      row.unpriced,
      row.estimated,
    ].join(",");
  });
  return `${[head.join(","), ...lines].join("\r\n")}\r\n`;
}

/** Downloads a text as a file. */
export function downloadText(name: string, text: string, type = "text/csv"): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

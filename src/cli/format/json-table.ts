// Formats any JSON for people: a list of objects as a table, one object as names and values.
import type { Json } from "../../model/values.ts";
import { alignColumns, paint } from "./terminal.ts";

/** Returns an empty string if there is no value. */
export function formatTable(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  if (isList(value)) {
    if (!value.some(isRecord)) return value.map(formatCell).join("\n");
    const things = value.map((each) => (isRecord(each) ? each : { "": each }));
    const names = [...new Set(things.flatMap((each) => Object.keys(each)))];
    return alignColumns([
      names.map((name) => paint("gray", name)),
      ...things.map((each) => names.map((name) => formatCell(each[name]))),
    ]);
  }
  if (!isRecord(value)) return formatCell(value);
  return alignColumns(
    Object.entries(value).map(([name, each]) => [paint("gray", name), formatCell(each)]),
  );
}

type JsonRecord = { readonly [name: string]: Json | undefined };

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);
const isRecord = (value: Json): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function formatCell(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return JSON.stringify(value);
  return typeof value === "number" ? value.toLocaleString("en") : value;
}

// Any JSON as people read it: a list of things as rows under their names, one thing as names and values.
import type { Json } from "../model/values.ts";
import { columns, paint } from "./terminal.ts";

/** Empty when there is nothing. */
export function table(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  if (isList(value)) {
    if (!value.some(isThing)) return value.map(cell).join("\n");
    const things = value.map((each) => (isThing(each) ? each : { "": each }));
    const names = [...new Set(things.flatMap((each) => Object.keys(each)))];
    return columns([
      names.map((name) => paint("gray", name)),
      ...things.map((each) => names.map((name) => cell(each[name]))),
    ]);
  }
  if (!isThing(value)) return cell(value);
  return columns(Object.entries(value).map(([name, each]) => [paint("gray", name), cell(each)]));
}

type Thing = { readonly [name: string]: Json | undefined };

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);
const isThing = (value: Json): value is Thing =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function cell(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return JSON.stringify(value);
  return typeof value === "number" ? value.toLocaleString("en") : value;
}

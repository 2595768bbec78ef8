// Limits that are written as mappings, as other products and people write them.
import { parseLimit } from "../plugin/store/limit.ts";
import { isMapping } from "./source/config-tree.ts";

/** What to write in place of a limit as a mapping, { unit: usd, max: 300, per: month }. Undefined: its members make no limit. */
export function suggestLimitText(value: unknown): string | undefined {
  if (!isMapping(value)) return undefined;
  const { unit, max, per } = value;
  const text = `${String(unit)}=${String(max)}${unit === "concurrent" ? "" : `/${String(per)}`}`;
  return parseLimit(text) && `write ${text}`;
}

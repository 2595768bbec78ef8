// Suggests limits for mappings, the form in which other products and people write limits.
import { parseLimit } from "../plugin/store/limit.ts";
import { isMapping } from "./source/config-tree.ts";

/**
 * Returns the text of a limit for a mapping such as { unit: usd, max: 300, per: month }. Returns
 * undefined if its members do not form a limit.
 */
export function suggestLimitText(value: unknown): string | undefined {
  if (!isMapping(value)) return undefined;
  const { unit, max, per } = value;
  const text = `${String(unit)}=${String(max)}${unit === "concurrent" ? "" : `/${String(per)}`}`;
  return parseLimit(text) && `write ${text}`;
}

// Rules that select the receivers of an alert, as the operator configured them.
import {
  RECOVERY_OF,
  ALERT_EVENTS,
  FILTER_FIELDS,
  type AlertEvent,
  type AlertSource,
} from "./alert.ts";

/** A rule as configured. If a property is unset, it matches everything. */
export interface AlertRule {
  readonly on?: readonly AlertEvent[] | undefined;
  readonly where?: AlertFilter | undefined;
  readonly to?: readonly string[] | undefined;
}

export type AlertFilter = {
  readonly [F in (typeof FILTER_FIELDS)[number]]?: readonly string[] | undefined;
} & { readonly percent?: readonly number[] | undefined };

/** Returns the receivers of an event without duplicates. */
export function findReceivers(
  rules: readonly AlertRule[],
  all: readonly string[],
  happening: AlertSource,
): readonly string[] {
  const found = new Set<string>();
  for (const { on = ALERT_EVENTS, where = {}, to = all } of rules)
    if (includesEvent(on, happening.type) && matchesFilter(where, happening))
      for (const name of to) found.add(name);
  return [...found];
}

/** Whether a rule includes the event type. A recovery belongs to its failure. */
export const includesEvent = (on: readonly AlertEvent[], type: AlertEvent): boolean =>
  on.includes(type) || on.includes(RECOVERY_OF[type] ?? type);

/** Whether an alert meets all conditions. A field that the alert lacks matches no pattern. */
function matchesFilter(where: AlertFilter, { filterValues, percent }: AlertSource): boolean {
  if (where.percent && (percent === undefined || !where.percent.includes(percent))) return false;
  return FILTER_FIELDS.every((facet) => {
    const wanted = where[facet];
    if (!wanted) return true;
    const value = filterValues[facet];
    if (value === undefined) return false;
    // A pattern for an account also matches all accounts nested under it.
    const values = facet === "account" ? value.split("/") : [value];
    return wanted.some((pattern) => values.some((each) => matchesPattern(pattern, each)));
  });
}

/** Whether a text matches a pattern, in which each `*` stands for any text. */
function matchesPattern(pattern: string, text: string): boolean {
  const [head = "", ...pieces] = pattern.split("*");
  const tail = pieces.pop();
  if (tail === undefined) return head === text;
  const end = text.length - tail.length;
  if (end < head.length || !text.startsWith(head) || !text.endsWith(tail)) return false;
  let at = head.length;
  for (const piece of pieces) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

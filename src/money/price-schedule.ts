// Which row of a price holds at a moment: dates, hours, and what holds otherwise.
import type { Price } from "../model/facts.ts";
import type { Opt } from "../model/values.ts";

export function activePrice(price: Price, at: Opt<number>): Price | undefined {
  if (at === undefined) return price;
  let row: Price | undefined = price;
  while (row && !isActive(row, at)) row = row.otherwise;
  return row;
}

function isActive({ from, until, hours }: Price, at: number): boolean {
  if (from === undefined && until === undefined && !hours) return true;
  const moment = new Date(at).toISOString();
  const day = moment.slice(0, 10);
  if ((from !== undefined && day < from) || (until !== undefined && day > until)) return false;
  if (!hours) return true;
  const time = moment.slice(11, 16);
  const weekday = new Date(at).getUTCDay();
  const on = (d: number): boolean => !hours.days || hours.days.includes(d);
  if (hours.from <= hours.to) return on(weekday) && time >= hours.from && time < hours.to;
  // Over midnight: the morning belongs to the evening before.
  return time >= hours.from ? on(weekday) : time < hours.to && on((weekday + 6) % 7);
}

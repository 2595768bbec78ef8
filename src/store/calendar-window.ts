// Calendar windows of budgets, in UTC: a day, an ISO week from Monday, a month, or all time.

/** Last moment that a Date can represent. A `total` window resets then. */
export const MAX_DATE_MS = 8_640_000_000_000_000;
const DAY_MS = 86_400_000;

/** Calendar periods. */
export type CalendarPeriod = "day" | "week" | "month" | "total";

/** Whether a limit counts in calendar windows, which have a start and an end. */
export const isCalendarPeriod = (per: string): per is CalendarPeriod =>
  per === "day" || per === "week" || per === "month" || per === "total";

/** A window in Unix milliseconds. `end` is exclusive. */
export interface CalendarWindow {
  start: number;
  end: number;
}

/** Returns the window that contains a moment. */
export function calendarWindow(per: CalendarPeriod, at: number): CalendarWindow {
  const day = Math.floor(at / DAY_MS) * DAY_MS;
  switch (per) {
    case "day":
      return { start: day, end: day + DAY_MS };
    case "week": {
      // January 1, 1970 was a Thursday.
      const start = day - ((Math.floor(at / DAY_MS) + 3) % 7) * DAY_MS;
      return { start, end: start + 7 * DAY_MS };
    }
    case "month": {
      const date = new Date(at);
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
      return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
    }
    case "total":
      return { start: 0, end: MAX_DATE_MS };
  }
}

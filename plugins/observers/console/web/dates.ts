// Dates and times in the reader's time zone.
const DAY = 86_400_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns the formatter of a time zone. Uses UTC if the browser does not know the zone. */
function formatFor(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    const how = {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    } as const;
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...how, timeZone: zone });
    } catch {
      format = new Intl.DateTimeFormat("en-GB", { ...how, timeZone: "UTC" });
    }
    formats.set(zone, format);
  }
  return format;
}

/** Formats a time for a local date-time field: "2026-11-28T09:30". */
export function toLocalField(at: number, zone: string): string {
  const of = Object.fromEntries(
    formatFor(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  return `${of["year"]}-${of["month"]}-${of["day"]}T${of["hour"]}:${of["minute"]}`;
}

const LOCAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/;

/**
 * Returns a local time in Unix milliseconds, or undefined if it is invalid. A time skipped by a
 * clock change maps to the time after it.
 */
export function parseLocalField(local: string, zone: string): number | undefined {
  const wanted = LOCAL.test(local) ? Date.parse(`${local}:00Z`) : NaN;
  if (Number.isNaN(wanted)) return undefined;
  let at = wanted;
  // The zone's offset at the result may differ from the offset at the first guess.
  for (let i = 0; i < 3; i++) {
    const off = Date.parse(`${toLocalField(at, zone)}:00Z`) - wanted;
    if (off === 0) break;
    at -= off;
  }
  return at;
}

/** Returns the start of the day that contains `at`, or of the day `before` days earlier. */
export function dayStart(at: number, zone: string, before = 0): number {
  const today = toLocalField(at, zone).slice(0, 10);
  const day = new Date(Date.parse(`${today}T00:00:00Z`) - before * DAY);
  return parseLocalField(`${day.toISOString().slice(0, 10)}T00:00`, zone) ?? at;
}

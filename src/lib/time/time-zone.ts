// Computes exact days and hours of a time zone. A day on which clocks are set forward has 23 hours,
// and an hour that occurs twice is treated as two hours.

/** 15 minutes in milliseconds. Every modern clock change occurs at a multiple of it. */
const QUARTER = 900_000;
const HOUR = 3_600_000;
/**
 * Limits of the times whose offset is computed. Years outside of them are formatted differently, so
 * the offset at the nearest limit is used.
 */
const EARLIEST = Date.UTC(100, 0, 2);
const LATEST = Date.UTC(9999, 11, 30);
/** Largest absolute time that a Date can hold, in milliseconds. */
const FARTHEST = 8.64e15;
const DAY = 86_400_000;
/** A local day, or a local day with a time. */
const WALL = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?$/;
/** Maximum number of cached quarter hours (11 years). */
const MAX_CACHED_QUARTERS = 400_000;

/** Local time in a time zone. All moments are Unix milliseconds. */
export interface ZoneClock {
  /**
   * Returns the offset from UTC at the given time, in milliseconds. The offset is positive if the
   * zone is ahead of UTC.
   */
  offset(at: number): number;
  /** "2026-03-29" */
  day(at: number): string;
  /** Returns the hour with its offset: "2026-03-29T01:00Z" or "2026-03-29T01:00+01:00". */
  hour(at: number): string;
  /** Returns the start of the hour that contains the moment. */
  hourStart(at: number): number;
  /**
   * Returns the Unix time of a local day or time, such as "2026-03-29" or "2026-03-29T12:30". NaN
   * if the text is not a valid time.
   */
  parseLocalTime(text: string): number;
  /** Whether the whole interval is in one day or one hour. `end` is exclusive. */
  isWithin(unit: "day" | "hour", start: number, end: number): boolean;
}

/** Whether a text is a time zone: a name such as "Europe/Berlin", or an offset such as "+05:30". */
export function isTimeZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).format(0) !== "";
  } catch {
    return false;
  }
}

const clocks = new Map<string, ZoneClock>();
const CLOCKS = 16;

/** Returns the clock of a time zone. Throws a RangeError if the zone does not exist. */
export function zoneClock(zone = "UTC"): ZoneClock {
  let clock = clocks.get(zone);
  if (!clock) {
    if (clocks.size >= CLOCKS) clocks.clear();
    clocks.set(zone, (clock = createZoneClock(zone)));
  }
  return clock;
}

const iso = (local: number): string =>
  new Date(Math.min(FARTHEST, Math.max(-FARTHEST, local))).toISOString();

function createZoneClock(zone: string): ZoneClock {
  const ahead = offsets(zone);
  const local = (at: number) => at + ahead(at);
  const hourStart = (at: number): number => {
    const offset = ahead(at);
    return Math.floor((at + offset) / HOUR) * HOUR - offset;
  };
  const same: Record<"day" | "hour", (at: number) => unknown> = {
    day: (at) => iso(local(at)).split("T")[0],
    hour: hourStart,
  };
  return {
    offset: ahead,
    day: (at) => iso(local(at)).split("T")[0]!,
    hour(at) {
      const offset = ahead(at);
      return `${iso(at + offset).split(":")[0]}:00${formatOffset(offset)}`;
    },
    hourStart,
    parseLocalTime(text) {
      if (!WALL.test(text)) return Number.NaN;
      const wall = Date.parse(`${text.length === 10 ? `${text}T00:00` : text}Z`);
      if (Number.isNaN(wall)) return wall;
      const [before, after] = [wall - ahead(wall - DAY), wall - ahead(wall + DAY)];
      // If a local time occurs twice, the first occurrence is returned. A time that is skipped is
      // as long after midnight as it would have been without the change.
      return local(before) !== wall && local(after) === wall ? after : before;
    },
    isWithin(unit, start, end) {
      if (same[unit](start) !== same[unit](end - 1)) return false;
      const offset = ahead(start);
      for (let at = start; at < end; at += QUARTER) if (ahead(at) !== offset) return false;
      return ahead(end - 1) === offset;
    },
  };
}

function formatOffset(offset: number): string {
  if (offset === 0) return "Z";
  const minutes = Math.floor(Math.abs(offset) / 60_000);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${offset < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

/**
 * Returns a function that computes the zone's offset at a moment. Results are cached per quarter
 * hour. In a quarter hour with a clock change, each moment is computed.
 */
function offsets(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  if (format.resolvedOptions().timeZone === "UTC") return () => 0;
  const known = new Map<number, number>();

  function exact(moment: number): number {
    const at = Math.floor(Math.min(LATEST, Math.max(EARLIEST, moment)) / 1_000) * 1_000;
    const of: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(at)) of[type] = Number(value);
    const { year, month, day, hour, minute, second } = of;
    return Date.UTC(year!, month! - 1, day, hour, minute, second) - at;
  }
  return (at) => {
    const quarter = Math.floor(at / QUARTER);
    let offset = known.get(quarter);
    if (offset === undefined) {
      const [first, last] = [exact(quarter * QUARTER), exact((quarter + 1) * QUARTER - 1)];
      offset = first === last ? first : Number.NaN;
      if (known.size >= MAX_CACHED_QUARTERS) known.clear();
      known.set(quarter, offset);
    }
    return Number.isNaN(offset) ? exact(at) : offset;
  };
}

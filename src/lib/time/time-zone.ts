// Days and hours of a time zone, exactly: a day on which clocks are put forward has 23 hours, and an hour that comes twice is two.

/** Every change of clocks of our time is at a multiple of it. */
const QUARTER = 900_000;
const HOUR = 3_600_000;
/** Before and after them years are written otherwise; a zone is what it was, or will be, then. */
const EARLIEST = Date.UTC(100, 0, 2);
const LATEST = Date.UTC(9999, 11, 30);
/** What a Date can say. */
const FARTHEST = 8.64e15;
const DAY = 86_400_000;
/** A day, or a moment of it, as a clock on the wall shows it. */
const WALL = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?$/;
/** Quarters that are remembered: eleven years of them. */
const MAX_CACHED_QUARTERS = 400_000;

/** The clock on the wall of a zone. */
export interface ZoneClock {
  /** Milliseconds ahead of UTC at that moment. */
  offset(at: number): number;
  /** "2026-03-29" */
  day(at: number): string;
  /** "2026-03-29T01:00Z", or with what the zone is ahead: "2026-03-29T01:00+01:00". */
  hour(at: number): string;
  /** When that hour began. */
  hourStart(at: number): number;
  /** When a day of this zone begins, or another moment that its clock shows: "2026-03-29", "2026-03-29T12:30". NaN: it is no moment. */
  parseLocalTime(text: string): number;
  /** Whether all moments of a stretch are of one day, or of one hour. `end` is no part of it. */
  isWithin(unit: "day" | "hour", start: number, end: number): boolean;
}

/** Whether it is a time zone: a name such as "Europe/Berlin", or an offset such as "+05:30". */
export function isTimeZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).format(0) !== "";
  } catch {
    return false;
  }
}

const clocks = new Map<string, ZoneClock>();
const CLOCKS = 16;

/** Throws a RangeError for a name that is none. */
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
      // Of a time that comes twice the first one; a time that is left out is as long after midnight as it would have been.
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

/** Asked of the system once a quarter of an hour, and for every moment of a quarter in which clocks are changed. */
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

  function exact(asked: number): number {
    const at = Math.floor(Math.min(LATEST, Math.max(EARLIEST, asked)) / 1_000) * 1_000;
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

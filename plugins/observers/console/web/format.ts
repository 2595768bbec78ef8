// Formats numbers, times, and money for display. The exact value is always available in a tooltip,
// a table, or a file.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export const formatCount = (n: number): string => whole.format(n);
/** Abbreviates numbers from 10,000, for example "18.2K". */
export const formatCompact = (n: number): string =>
  Math.abs(n) < 10_000 ? whole.format(n) : short.format(n);

type Nano = string | number | bigint | null | undefined;

/**
 * Formats nano-dollars as dollars, with two decimals from 1 dollar and three significant digits
 * below it.
 */
export function formatUsd(nano: Nano): string {
  if (nano === null || nano === undefined) return "no price";
  const dollars = Number(nano) / 1e9;
  const size = Math.abs(dollars);
  if (size === 0) return "$0";
  if (size >= 100_000) return `$${short.format(dollars)}`;
  const digits = size >= 1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString("en-US", {
    minimumFractionDigits: size >= 0.01 ? 2 : 0,
    maximumFractionDigits: digits,
  });
  return `${dollars < 0 ? "−" : ""}$${text}`;
}

/** Formats nano-dollars as dollars, exact to the nano-dollar. */
export function formatUsdExact(nano: Nano): string {
  if (nano === null || nano === undefined) return "no price";
  const n = BigInt(nano);
  const size = `${n < 0n ? -n : n}`.padStart(10, "0");
  return `${n < 0n ? "−" : ""}$${size.slice(0, -9)}.${size.slice(-9)}`;
}

/** Formats a duration: "340 ms", "2.1 s", "3 min 5 s". */
export function formatDuration(ms: number | undefined | null): string {
  if (ms === undefined || ms === null) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const [m, h, d] = [
    Math.floor(ms / 60_000),
    Math.floor(ms / 3_600_000),
    Math.floor(ms / 86_400_000),
  ];
  if (h < 1) return `${m} min ${Math.round((ms % 60_000) / 1_000)} s`;
  if (d < 2) return `${h} h ${m % 60} min`;
  return `${d} days`;
}

export const formatShare = (part: number, all: number): string =>
  all === 0
    ? "–"
    : `${((part / all) * 100).toLocaleString("en-US", { maximumFractionDigits: part / all < 0.1 ? 1 : 0 })}%`;

export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let rest = bytes;
  for (; rest >= 1_024 && at < units.length - 1; at++) rest /= 1_024;
  return `${rest.toFixed(at === 0 || rest >= 100 ? 0 : 1)} ${units[at]}`;
}

const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
/** Returns the reader's time zone: the `tz` parameter of the URL, or the browser's zone. */
export const readerZone = (): string =>
  new URLSearchParams(location.search).get("tz") ?? browserZone;

const formats = new Map<string, Intl.DateTimeFormat>();
function formatWith(at: number, how: Intl.DateTimeFormatOptions): string {
  const name = `${readerZone()} ${JSON.stringify(how)}`;
  let format = formats.get(name);
  if (!format) {
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...how, timeZone: readerZone() });
    } catch {
      format = new Intl.DateTimeFormat("en-GB", how);
    }
    formats.set(name, format);
  }
  return format.format(at);
}
const TIME = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { day: "numeric", month: "short" } as const;
export const formatClock = (at: number): string => formatWith(at, { ...TIME, second: "2-digit" });
export const formatHour = (at: number): string => formatWith(at, TIME);
export const formatDay = (at: number): string => formatWith(at, DAY);
export const formatDateTime = (at: number): string =>
  formatWith(at, { ...DAY, year: "numeric", ...TIME, second: "2-digit" });

/** Formats a time relative to now: "12 s ago", "in 3 h". */
export function formatAgo(at: number, now: number = Date.now()): string {
  const away = Math.abs(now - at);
  const distance =
    away < 60_000
      ? `${Math.round(away / 1_000)} s`
      : away < 3_600_000
        ? `${Math.round(away / 60_000)} min`
        : away < 172_800_000
          ? `${Math.round(away / 3_600_000)} h`
          : `${Math.round(away / 86_400_000)} days`;
  return at > now ? `in ${distance}` : `${distance} ago`;
}

/** Formats the time until or since a moment: "3 min", "2 days". */
export const formatDistance = (at: number, now: number = Date.now()): string =>
  formatAgo(at, now).replace(/^in /, "").replace(/ ago$/, "");

const DAY_MS = 86_400_000;
/** Returns the time some days ago, in Unix milliseconds. */
export const timeDaysAgo = (days: number, now: number = Date.now()): number => now - days * DAY_MS;
/** Whether a time is within the given number of days or in the past. */
export const isWithin = (at: number, days: number, now: number = Date.now()): boolean =>
  at < now + days * DAY_MS;

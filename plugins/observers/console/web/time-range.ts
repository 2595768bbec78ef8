// The time range of a page in the reader's time zone: the last hours or days, a day, or a custom
// range. The range is part of the URL. Relative ranges follow the clock.
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { dayStart, toLocalField, parseLocalField } from "./dates.ts";
import { SegmentedControl, Select, TextField } from "./parts/fields.ts";
import { useQueryParam } from "./location.ts";
import { readerZone } from "./format.ts";

const HOUR_MS = 3_600_000;
const RELATIVE_RANGES = {
  "1h": HOUR_MS,
  "6h": 6 * HOUR_MS,
  "24h": 24 * HOUR_MS,
  "7d": 168 * HOUR_MS,
  "30d": 720 * HOUR_MS,
} as const;
type RelativeRangeName = keyof typeof RELATIVE_RANGES;

/** Per-minute counts are kept for 2 days. */
const MINUTE_RETENTION_MS = 47 * HOUR_MS;

const CHOICES = [
  ...Object.keys(RELATIVE_RANGES).map((name) => [name, name] as const),
  ["today", "Today"],
  ["yesterday", "Yesterday"],
  ["custom", "Custom"],
] as const;

export interface TimeRange {
  /** Value of the URL parameter: "24h", "today", "2026-11-01T00:00_2026-11-08T00:00". */
  readonly name: string;
  /** Text for use in a sentence: "over the last 24h", "today". */
  readonly label: string;
  readonly durationMs: number;
  /**
   * Start in Unix milliseconds. The end of a moving range is rounded to whole steps, so that the
   * query stays the same until the next step.
   */
  readonly from: number;
  readonly to: number;
  readonly step: "minute" | "hour";
  readonly stepMs: number;
}

const isRelativeRange = (word: string): word is RelativeRangeName =>
  Object.hasOwn(RELATIVE_RANGES, word);

/** Returns the start and end of a custom range, or undefined if the text is not a valid range. */
export function parseCustomRange(
  word: string,
  tz: string,
): readonly [from: number, to: number] | undefined {
  const [begin = "", end = ""] = word.split("_");
  const [from, to] = [parseLocalField(begin, tz), parseLocalField(end, tz)];
  return from === undefined || to === undefined || to <= from ? undefined : [from, to];
}

/** Parses a URL parameter. `now` is in Unix milliseconds. */
export function parseTimeRange(
  word: string,
  now: number,
  usual = "24h",
  tz = readerZone(),
): TimeRange {
  const custom = parseCustomRange(word, tz);
  if (custom)
    return customRange(word, `${word.replaceAll("T", " ").replace("_", " to ")}`, custom, now);
  if (word === "today") return customRange(word, "today", [dayStart(now, tz), now + 1], now);
  if (word === "yesterday")
    return customRange(word, "yesterday", [dayStart(now, tz, 1), dayStart(now, tz)], now);
  const name = isRelativeRange(word) ? word : (usual as RelativeRangeName);
  const { step, stepMs } = chooseStep(RELATIVE_RANGES[name], 0);
  const to = Math.ceil((now + 1) / stepMs) * stepMs;
  return {
    name,
    label: `over the last ${name}`,
    durationMs: RELATIVE_RANGES[name],
    from: to - RELATIVE_RANGES[name],
    to,
    step,
    stepMs,
  };
}

const chooseStep = (ms: number, age: number) =>
  ms <= 6 * HOUR_MS && age < MINUTE_RETENTION_MS
    ? ({ step: "minute", stepMs: 60_000 } as const)
    : ({ step: "hour", stepMs: HOUR_MS } as const);

/** Creates the range. If the range ends in the future, its end is rounded up to a whole step. */
function customRange(
  name: string,
  label: string,
  [from, end]: readonly [number, number],
  now: number,
): TimeRange {
  const { step, stepMs } = chooseStep(end - from, now - from);
  const to = end > now ? Math.ceil(Math.min(end, now + 1) / stepMs) * stepMs : end;
  return {
    name,
    label,
    durationMs: Math.max(stepMs, to - from),
    from,
    to: Math.max(to, from + 1),
    step,
    stepMs,
  };
}

export function useTimeRange(usual: RelativeRangeName = "24h"): [TimeRange, (to: string) => void] {
  const [word, set] = useQueryParam("range", usual);
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || tick(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);
  return [parseTimeRange(word, now, usual), set];
}

export function TimeRangeChoice({ span, set }: { span: TimeRange; set: (to: string) => void }) {
  const isCustom = span.name.includes("_");
  const value = isCustom ? "custom" : span.name;
  const choose = (word: string) =>
    set(
      word === "custom"
        ? `${toLocalField(span.from, readerZone())}_${toLocalField(span.to, readerZone())}`
        : word,
    );
  return html`<div class="row span">
    <span class="wide"
      ><${SegmentedControl} name="Time" value=${value} set=${choose} of=${CHOICES}
    /></span>
    <span class="narrow"
      ><${Select}
        hidesLabel
        name="Time range"
        value=${value}
        set=${choose}
        options=${CHOICES.map(([word, label]) => [word, isRelativeRange(word) ? `Last ${label}` : label] as const)}
    /></span>
    <span class="small faint" title="Budgets and the ledger use UTC">${readerZone()}</span>
    ${isCustom && html`<${CustomTimeRange} word=${span.name} set=${set} />`}
  </div>`;
}

/** Fields for the start and end. Input is applied when both times are valid and in order. */
export function CustomTimeRange({ word, set }: { word: string; set: (to: string) => void }) {
  const [typed, type] = useState(word);
  useEffect(() => type(word), [word]);
  const [from = "", to = ""] = typed.split("_");
  const put = (next: string) => {
    type(next);
    if (parseCustomRange(next, readerZone())) set(next);
  };
  const wrong = parseCustomRange(typed, readerZone()) ? undefined : "after “From”";
  return html`<div class="row custom">
    <${TextField}
      name="From"
      type="datetime-local"
      value=${from}
      set=${(next: string) => put(`${next.slice(0, 16)}_${to}`)}
    />
    <${TextField}
      name="To"
      type="datetime-local"
      value=${to}
      error=${wrong}
      set=${(next: string) => put(`${from}_${next.slice(0, 16)}`)}
    />
  </div>`;
}

/** Returns the start times of all steps of a range. */
export function rangeSteps({
  from,
  to,
  stepMs,
}: Pick<TimeRange, "from" | "to" | "stepMs">): number[] {
  const steps: number[] = [];
  for (let at = from - (from % stepMs); at < to; at += stepMs) steps.push(at);
  return steps;
}

// The time that a page is about: the last hours or days, a day, or from one moment to another, in the reader's time zone. It is part of
// the address. The last hours move on with the clock.
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { dayStart, localOf, momentOf } from "./dates.ts";
import { Choice, Select, Text } from "./parts/fields.ts";
import { useWord } from "./place.ts";
import { zone } from "./words.ts";

const HOUR = 3_600_000;
const LASTS = {
  "1h": HOUR,
  "6h": 6 * HOUR,
  "24h": 24 * HOUR,
  "7d": 168 * HOUR,
  "30d": 720 * HOUR,
} as const;
type LastName = keyof typeof LASTS;

/** Counts by the minute are kept for two days. */
const MINUTES_KEPT = 47 * HOUR;

const CHOICES = [
  ...Object.keys(LASTS).map((name) => [name, name] as const),
  ["today", "Today"],
  ["yesterday", "Yesterday"],
  ["custom", "Custom"],
] as const;

export interface Span {
  /** Its word in the address: "24h", "today", "2026-11-01T00:00_2026-11-08T00:00". */
  readonly name: string;
  /** As in a sentence: "over the last 24h", "today". */
  readonly said: string;
  readonly ms: number;
  /** Unix milliseconds. Whole steps where it moves on, so that the same question is asked until the next step begins. */
  readonly from: number;
  readonly to: number;
  readonly step: "minute" | "hour";
  readonly stepMs: number;
}

const isLast = (word: string): word is LastName => Object.hasOwn(LASTS, word);

/** The two moments of a custom time; undefined: the word is none. */
export function customOf(
  word: string,
  tz: string,
): readonly [from: number, to: number] | undefined {
  const [begin = "", end = ""] = word.split("_");
  const [from, to] = [momentOf(begin, tz), momentOf(end, tz)];
  return from === undefined || to === undefined || to <= from ? undefined : [from, to];
}

/** `now`: Unix milliseconds. */
export function spanOf(word: string, now: number, usual = "24h", tz = zone()): Span {
  const custom = customOf(word, tz);
  if (custom)
    return between(word, `${word.replaceAll("T", " ").replace("_", " to ")}`, custom, now);
  if (word === "today") return between(word, "today", [dayStart(now, tz), now + 1], now);
  if (word === "yesterday")
    return between(word, "yesterday", [dayStart(now, tz, 1), dayStart(now, tz)], now);
  const name = isLast(word) ? word : (usual as LastName);
  const { step, stepMs } = stepOf(LASTS[name], 0);
  const to = Math.ceil((now + 1) / stepMs) * stepMs;
  return {
    name,
    said: `over the last ${name}`,
    ms: LASTS[name],
    from: to - LASTS[name],
    to,
    step,
    stepMs,
  };
}

const stepOf = (ms: number, age: number) =>
  ms <= 6 * HOUR && age < MINUTES_KEPT
    ? ({ step: "minute", stepMs: 60_000 } as const)
    : ({ step: "hour", stepMs: HOUR } as const);

/** The end of a time that has not ended is a whole step. */
function between(
  name: string,
  said: string,
  [from, end]: readonly [number, number],
  now: number,
): Span {
  const { step, stepMs } = stepOf(end - from, now - from);
  const to = end > now ? Math.ceil(Math.min(end, now + 1) / stepMs) * stepMs : end;
  return {
    name,
    said,
    ms: Math.max(stepMs, to - from),
    from,
    to: Math.max(to, from + 1),
    step,
    stepMs,
  };
}

export function useSpan(usual: LastName = "24h"): [Span, (to: string) => void] {
  const [word, set] = useWord("range", usual);
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || tick(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);
  return [spanOf(word, now, usual), set];
}

export function SpanChoice({ span, set }: { span: Span; set: (to: string) => void }) {
  const isCustom = span.name.includes("_");
  const value = isCustom ? "custom" : span.name;
  const choose = (word: string) =>
    set(word === "custom" ? `${localOf(span.from, zone())}_${localOf(span.to, zone())}` : word);
  return html`<div class="row span">
    <span class="wide"><${Choice} name="Time" value=${value} set=${choose} of=${CHOICES} /></span>
    <span class="narrow"
      ><${Select}
        bare
        name="Time range"
        value=${value}
        set=${choose}
        of=${CHOICES.map(([word, said]) => [word, isLast(word) ? `Last ${said}` : said] as const)}
    /></span>
    <span class="small faint" title="Budgets and the ledger use UTC">${zone()}</span>
    ${isCustom && html`<${CustomTime} word=${span.name} set=${set} />`}
  </div>`;
}

/** From and to. What is typed is taken when both are times and in order. */
export function CustomTime({ word, set }: { word: string; set: (to: string) => void }) {
  const [typed, type] = useState(word);
  useEffect(() => type(word), [word]);
  const [from = "", to = ""] = typed.split("_");
  const put = (next: string) => {
    type(next);
    if (customOf(next, zone())) set(next);
  };
  const wrong = customOf(typed, zone()) ? undefined : "after “From”";
  return html`<div class="row custom">
    <${Text}
      name="From"
      type="datetime-local"
      value=${from}
      set=${(next: string) => put(`${next.slice(0, 16)}_${to}`)}
    />
    <${Text}
      name="To"
      type="datetime-local"
      value=${to}
      wrong=${wrong}
      set=${(next: string) => put(`${from}_${next.slice(0, 16)}`)}
    />
  </div>`;
}

/** The beginnings of all steps of a span. */
export function stepsOf({ from, to, stepMs }: Pick<Span, "from" | "to" | "stepMs">): number[] {
  const steps: number[] = [];
  for (let at = from - (from % stepMs); at < to; at += stepMs) steps.push(at);
  return steps;
}

// The time that a page looks at: the last so long, in the reader's zone. It is in the address, and it moves on with the clock.
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { Choice } from "./parts/fields.ts";
import { useWord } from "./place.ts";
import { zone } from "./words.ts";

const HOUR = 3_600_000;
const SPANS = {
  "1h": HOUR,
  "6h": 6 * HOUR,
  "24h": 24 * HOUR,
  "7d": 168 * HOUR,
  "30d": 720 * HOUR,
} as const;
export type SpanName = keyof typeof SPANS;

export interface Span {
  readonly name: SpanName;
  readonly ms: number;
  /** Unix milliseconds; a whole step, so that the same question is asked until the next one begins. */
  readonly from: number;
  readonly to: number;
  readonly step: "minute" | "hour";
  readonly stepMs: number;
}

const isName = (word: string): word is SpanName => Object.hasOwn(SPANS, word);

/** `now`: Unix milliseconds. */
export function spanOf(word: string, now: number, usual: SpanName = "24h"): Span {
  const name = isName(word) ? word : usual;
  const ms = SPANS[name];
  const step = ms <= 6 * HOUR ? "minute" : "hour";
  const stepMs = step === "minute" ? 60_000 : HOUR;
  const to = Math.ceil((now + 1) / stepMs) * stepMs;
  return { name, ms, from: to - ms, to, step, stepMs };
}

export function useSpan(usual: SpanName = "24h"): [Span, (to: string) => void] {
  const [word, set] = useWord("range", usual);
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || tick(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);
  return [spanOf(word, now, usual), set];
}

export const SpanChoice = ({ span, set }: { span: Span; set: (to: string) => void }) =>
  html`<div class="row">
    <${Choice}
      name="Time"
      value=${span.name}
      set=${set}
      of=${Object.keys(SPANS).map((name) => [name, name])}
    />
    <span class="small faint" title="Budgets and the ledger count in UTC">${zone()}</span>
  </div>`;

/** The beginnings of all steps of a span. */
export function stepsOf({ from, to, stepMs }: Span): number[] {
  const steps: number[] = [];
  for (let at = from; at < to; at += stepMs) steps.push(at);
  return steps;
}

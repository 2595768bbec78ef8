// How a provider was: hour by hour as a strip, its latency and errors as plots, and its outages.
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Box, Empty, Mark } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { type Span, SpanChoice, stepsOf, useSpan } from "../span.ts";
import type { Series } from "../shapes.ts";
import { ago, count, moment, share, span as duration } from "../words.ts";
import { Traffic } from "./overview-traffic.ts";
import type { Outage } from "./providers-shapes.ts";

/** Hours of the strip. */
export const HOURS = 24;
const HOUR = 3_600_000;

interface Hour {
  readonly requests: number;
  readonly failed: number;
}

/** From this share of failed calls on, an hour was bad; from the other on, it was an outage. */
const SOME = 0.05;
const MOST = 0.5;

const toneOf = ({ requests, failed }: Hour): string =>
  requests === 0
    ? ""
    : failed / requests >= MOST
      ? "bad"
      : failed / requests >= SOME
        ? "warn"
        : "good";

/** Of all providers, in one question. */
export function useHours(now: number): ReadonlyMap<string, ReadonlyMap<number, Hour>> {
  const to = Math.ceil((now + 1) / HOUR) * HOUR;
  const { value } = useAsk<Series>(
    "stats.series",
    { from: to - HOURS * HOUR, to, step: "hour", by: "provider", most: 100 },
    { every: 30_000 },
  );
  const all = new Map<string, Map<number, Hour>>();
  for (const row of value?.rows ?? []) {
    const its = all.get(row.name) ?? new Map<number, Hour>();
    its.set(row.at, row);
    all.set(row.name, its);
  }
  return all;
}

/** An hour each, the newest on the right. */
export function Strip({
  hours,
  now,
}: {
  hours: ReadonlyMap<number, Hour> | undefined;
  now: number;
}) {
  const to = Math.ceil((now + 1) / HOUR) * HOUR;
  const steps = stepsOf({ from: to - HOURS * HOUR, to, stepMs: HOUR });
  const of = (at: number) => hours?.get(at) ?? { requests: 0, failed: 0 };
  const all = steps.map(of).reduce((sum, each) => ({
    requests: sum.requests + each.requests,
    failed: sum.failed + each.failed,
  }));
  const bad = steps.filter((at) => toneOf(of(at)) === "bad").length;
  const said =
    all.requests === 0
      ? "no calls in 24 hours"
      : `${share(all.requests - all.failed, all.requests)} of ${count(all.requests)} calls in 24 hours succeeded${bad > 0 ? `, ${bad} hours with an outage` : ""}`;
  return html`<span class="strip" role="img" aria-label=${said}
    >${steps.map((at) => {
      const { requests, failed } = of(at);
      return html`<i
        key=${at}
        class=${toneOf({ requests, failed })}
        title=${`${moment(at)}: ${requests === 0 ? "no calls" : `${count(failed)} of ${count(requests)} calls failed`}`}
      ></i>`;
    })}</span
  >`;
}

export function History({ provider, outages }: { provider: string; outages: readonly Outage[] }) {
  const [span, set] = useSpan("24h");
  const { from, to, step } = span;
  const all = useAsk<Series>(
    "stats.series",
    { from, to, step, by: "all", provider },
    { every: 10_000 },
  );
  return html`
    <${SpanChoice} span=${span} set=${set} />
    <${Plots} span=${span} all=${all.value} />
    <${Box} title="Outages" flush>
      <${Table}
        label="Outages"
        rows=${outages}
        id=${({ credential, model, from }: Outage) => `${from} ${credential} ${model}`}
        columns=${OUTAGES}
        empty=${html`<${Empty} of="check"><p>No cooldown is remembered.</p><//>`}
      />
    <//>
  `;
}

const Plots = ({ span, all }: { span: Span; all: Series | undefined }) =>
  all && all.totals.length === 0
    ? html`<${Box}
        ><${Empty} of="usage"><p>No calls to this provider in this time.</p><//><//
      >`
    : html`<${Traffic} span=${span} all=${all} of="Calls" />`;

const OUTAGES: readonly Column<Outage>[] = [
  {
    name: "Began",
    by: ({ from }) => from,
    of: ({ from }) => html`<span class="nowrap" title=${ago(from)}>${moment(from)}</span>`,
  },
  {
    name: "Lasted",
    number: true,
    by: ({ from, to, until }) => (to ?? until) - from,
    of: ({ from, to, until }) =>
      to !== undefined
        ? duration(to - from)
        : until > Date.now()
          ? html`<${Mark} tone="bad">in cooldown<//>`
          : html`<span
              class="faint"
              title=${`The cooldown ended ${ago(until)}. No request has succeeded since.`}
              >no call since</span
            >`,
  },
  {
    name: "Cause",
    by: ({ kind }) => kind,
    of: ({ kind }) => html`<span class="bad">${kind.replaceAll("_", " ")}</span>`,
  },
  { name: "Model", of: ({ model }) => model ?? html`<span class="faint">all models</span>` },
  { name: "Credential", of: ({ credential }) => credential },
];

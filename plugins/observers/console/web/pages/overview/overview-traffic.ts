// Charts of requests, errors, and latency, for the whole gateway or for one provider's calls.
import { useMemo } from "preact/hooks";
import { html } from "htm/preact";
import { Chart } from "../../parts/chart.ts";
import { type TimeRange, rangeSteps } from "../../time-range.ts";
import type { StatsSeries, StatsRow } from "../../api-types.ts";
import {
  formatCompact,
  formatCount,
  formatShare,
  formatDuration as duration,
} from "../../format.ts";

type Step = StatsSeries["rows"][number];

interface TrafficProps {
  readonly span: TimeRange;
  readonly all: StatsSeries | undefined;
  /** Unit of the chart. Default: "Requests". */
  readonly of?: "Requests" | "Calls";
}

/** Outcomes: successful requests, and how the others ended. */
const OUTCOMES = [
  ["succeeded", "s1", (row: StatsRow) => row.requests - row.failed - row.refused - row.canceled],
  ["canceled by the client", "s8", (row: StatsRow) => row.canceled],
  ["rejected", "warn", (row: StatsRow) => row.refused],
  ["failed", "bad", (row: StatsRow) => row.failed],
] as const;

const QUANTILES = ["p50", "p95", "p99"] as const;

export function Traffic({ span, all, of = "Requests" }: TrafficProps) {
  const { times, ends, errors, first } = useMemo(() => {
    const times = rangeSteps(span);
    const rows = new Map((all?.rows ?? []).map((row) => [row.at, row]));
    const each = (value: (row: Step) => number | null) =>
      times.map((at) => {
        const row = rows.get(at);
        return row ? value(row) : null;
      });
    const zeros = (value: (row: Step) => number) =>
      each(value).map((each) => each ?? 0) as (number | null)[];
    return {
      times,
      ends: OUTCOMES.map(([name, hue, value]) => ({ name, hue, values: zeros(value) })),
      errors: [
        {
          name: "failed",
          hue: "bad" as const,
          values: each(({ failed, requests }) => (requests ? failed / requests : null)),
        },
      ],
      first: QUANTILES.map((name) => ({
        name,
        values: each((row) => (row.firstTokenMs ?? row.ms)?.[name] ?? null),
      })),
    };
  }, [span.from, span.to, span.name, all]);
  const total = all?.totals.reduce(
    (sum, { requests, failed }) => ({
      requests: sum.requests + requests,
      failed: sum.failed + failed,
    }),
    { requests: 0, failed: 0 },
  );
  const whole = all?.totals[0]?.firstTokenMs;
  const what = of.toLowerCase();
  return html`<${Chart}
      title=${of}
      label=${`${of} ${span.label}: ${formatCount(total?.requests ?? 0)}, of which ${formatCount(total?.failed ?? 0)} failed.`}
      times=${times}
      series=${ends.filter(({ name, values }) => name === "succeeded" || values.some((value) => value))}
      format=${formatCompact}
      stacked=${true}
      height=${200}
    />
    <div class="pair">
      <${Chart}
        title="Error rate"
        label=${`Share of ${what} that failed ${span.label}: ${formatShare(total?.failed ?? 0, total?.requests ?? 0)} in total.`}
        times=${times}
        series=${errors}
        format=${(value: number) => formatShare(value, 1)}
        height=${180}
      />
      <${Chart}
        title="Time to first token"
        label=${`Time to first token ${span.label}: 50% of the ${what} within ${duration(whole?.p50)}, and 95% within ${duration(whole?.p95)}.`}
        times=${times}
        series=${first}
        format=${duration}
        height=${180}
      />
    </div>`;
}

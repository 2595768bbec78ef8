// History of a provider: health per hour, charts of latency and errors, and its outages.
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Box, EmptyState, Badge } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { type TimeRange, TimeRangeChoice, rangeSteps, useTimeRange } from "../../time-range.ts";
import type { StatsSeries } from "../../api-types.ts";
import {
  formatAgo,
  formatCount,
  formatDateTime,
  formatShare,
  formatDuration as duration,
} from "../../format.ts";
import { Traffic } from "../overview/overview-traffic.ts";
import type { CooldownPeriod } from "./providers-types.ts";

/** Number of hours in the health strip. */
export const HOURS = 24;
const HOUR_MS = 3_600_000;

interface HourStats {
  readonly requests: number;
  readonly failed: number;
}

/** Minimum shares of failed calls at which an hour counts as degraded, and as an outage. */
const DEGRADED_SHARE = 0.05;
const OUTAGE_SHARE = 0.5;

const hourTone = ({ requests, failed }: HourStats): string =>
  requests === 0
    ? ""
    : failed / requests >= OUTAGE_SHARE
      ? "bad"
      : failed / requests >= DEGRADED_SHARE
        ? "warn"
        : "good";

/** Loads the hours of all providers with one query. */
export function useHours(now: number): ReadonlyMap<string, ReadonlyMap<number, HourStats>> {
  const to = Math.ceil((now + 1) / HOUR_MS) * HOUR_MS;
  const { value } = useQuery<StatsSeries>(
    "requests.series",
    { from: to - HOURS * HOUR_MS, to, step: "hour", by: "provider", most: 100 },
    { intervalMs: 30_000 },
  );
  const all = new Map<string, Map<number, HourStats>>();
  for (const row of value?.rows ?? []) {
    const its = all.get(row.name) ?? new Map<number, HourStats>();
    its.set(row.at, row);
    all.set(row.name, its);
  }
  return all;
}

/** One mark per hour, the newest on the right. */
export function HealthStrip({
  hours,
  now,
}: {
  hours: ReadonlyMap<number, HourStats> | undefined;
  now: number;
}) {
  const to = Math.ceil((now + 1) / HOUR_MS) * HOUR_MS;
  const steps = rangeSteps({ from: to - HOURS * HOUR_MS, to, stepMs: HOUR_MS });
  const of = (at: number) => hours?.get(at) ?? { requests: 0, failed: 0 };
  const all = steps.map(of).reduce((sum, each) => ({
    requests: sum.requests + each.requests,
    failed: sum.failed + each.failed,
  }));
  const bad = steps.filter((at) => hourTone(of(at)) === "bad").length;
  const summary =
    all.requests === 0
      ? "no calls in 24 hours"
      : `${formatShare(all.requests - all.failed, all.requests)} of ${formatCount(all.requests)} calls in 24 hours succeeded${bad > 0 ? `, ${bad} hours with an outage` : ""}`;
  return html`<span class="strip" role="img" aria-label=${summary}
    >${steps.map((at) => {
      const { requests, failed } = of(at);
      return html`<i
        key=${at}
        class=${hourTone({ requests, failed })}
        title=${`${formatDateTime(at)}: ${requests === 0 ? "no calls" : `${formatCount(failed)} of ${formatCount(requests)} calls failed`}`}
      ></i>`;
    })}</span
  >`;
}

export function History({
  provider,
  outages,
}: {
  provider: string;
  outages: readonly CooldownPeriod[];
}) {
  const [span, set] = useTimeRange("24h");
  const { from, to, step } = span;
  const all = useQuery<StatsSeries>(
    "requests.series",
    { from, to, step, by: "all", provider },
    { intervalMs: 10_000 },
  );
  return html`
    <${TimeRangeChoice} span=${span} set=${set} />
    <${Plots} span=${span} all=${all.value} />
    <${Box} title="Outages" flush>
      <${Table}
        label="Outages"
        rows=${outages}
        rowId=${({ credential, model, startedAt }: CooldownPeriod) => `${startedAt} ${credential} ${model}`}
        columns=${OUTAGE_COLUMNS}
        empty=${html`<${EmptyState} of="check"><p>No cooldown in the history.</p><//>`}
      />
    <//>
  `;
}

const Plots = ({ span, all }: { span: TimeRange; all: StatsSeries | undefined }) =>
  all && all.totals.length === 0
    ? html`<${Box}
        ><${EmptyState} of="usage"><p>No calls to this provider in this time range.</p><//><//
      >`
    : html`<${Traffic} span=${span} all=${all} of="Calls" />`;

const OUTAGE_COLUMNS: readonly Column<CooldownPeriod>[] = [
  {
    name: "Began",
    sortKey: ({ startedAt }) => startedAt,
    render: ({ startedAt }) =>
      html`<span class="nowrap" title=${formatAgo(startedAt)}>${formatDateTime(startedAt)}</span>`,
  },
  {
    name: "Lasted",
    isNumber: true,
    sortKey: ({ startedAt, recoveredAt, cooldownEndsAt }) =>
      (recoveredAt ?? cooldownEndsAt) - startedAt,
    render: ({ startedAt, recoveredAt, cooldownEndsAt }) =>
      recoveredAt !== undefined
        ? duration(recoveredAt - startedAt)
        : cooldownEndsAt > Date.now()
          ? html`<${Badge} tone="bad">in cooldown<//>`
          : html`<span
              class="faint"
              title=${`The cooldown ended ${formatAgo(cooldownEndsAt)}. No request has succeeded since.`}
              >no call since</span
            >`,
  },
  {
    name: "Cause",
    sortKey: ({ errorKind }) => errorKind,
    render: ({ errorKind }) => html`<span class="bad">${errorKind.replaceAll("_", " ")}</span>`,
  },
  { name: "Model", render: ({ model }) => model ?? html`<span class="faint">all models</span>` },
  { name: "Credential", render: ({ credential }) => credential },
];

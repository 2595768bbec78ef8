// Overview page: spend, traffic, errors, latency, and problems that need attention.
import { useMemo } from "preact/hooks";
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Chart } from "../../parts/chart.ts";
import {
  Box,
  EmptyState,
  Figures,
  type Figure,
  UsageBar,
  QueryResult,
} from "../../parts/basics.ts";
import { buildUrl } from "../../location.ts";
import { isAllowed } from "../../session.ts";
import { TimeRangeChoice, type TimeRange, rangeSteps, useTimeRange } from "../../time-range.ts";
import type {
  RecentStats,
  StatsSeries,
  StatsRow,
  UsageReport,
  UsageSeries,
} from "../../api-types.ts";
import {
  formatCompact,
  formatCount,
  formatShare,
  formatDuration as duration,
  formatUsd,
  formatUsdExact,
  readerZone,
} from "../../format.ts";
import { GettingStarted, NeedsAttention } from "./overview-attention.ts";
import { Traffic } from "./overview-traffic.ts";

export function OverviewPage() {
  const [span, set] = useTimeRange();
  const { from, to, step } = span;
  const every = 5_000;
  /** Whether the user sees the whole gateway and not only one account. */
  const whole = isAllowed("requests.stats");
  const all = useQuery<StatsSeries>(
    "requests.series",
    { from, to, step, by: "all" },
    { intervalMs: every },
  );
  const models = useQuery<StatsSeries>(
    "requests.series",
    { from, to, step, by: "model", most: 7 },
    { intervalMs: every, isDisabled: !whole },
  );
  // The gateway has no counts by model for a single account, so they are summed from the ledger,
  // per hour.
  const own = useQuery<UsageSeries>(
    "usage.series",
    { from, to, step: "hour", tz: readerZone(), by: "model", most: 7 },
    { intervalMs: 10_000, isDisabled: whole },
  );
  const sums = useQuery<UsageReport>(
    "ledger.totals",
    { from, to, by: ["state"] },
    { intervalMs: every },
  );
  const before = useQuery<UsageReport>("ledger.totals", {
    from: from - span.durationMs,
    to: from,
    by: ["state"],
  });
  const recent = useQuery<RecentStats>(
    "requests.stats",
    { windowMs: 60_000 },
    { intervalMs: 2_000 },
  );
  // For a single account, open requests are listed instead of counted.
  const live = useQuery<{ total: number }>(
    "requests.live",
    { limit: 1 },
    { intervalMs: 2_000, isDisabled: whole },
  );
  const inFlight = recent.value?.inFlight ?? live.value?.total;
  const nothing = all.value && inFlight === 0 && !all.value.totals.length;
  return html`
    <div class="row"><span class="grow"></span><${TimeRangeChoice} span=${span} set=${set} /></div>
    <${QueryResult} of=${all}
      >${(stats: StatsSeries) => html`<${Figures} of=${figures(span, stats.totals[0], sums.value, before.value, recent.value, inFlight)} />`}<//
    >
    ${
      nothing
        ? html`<${GettingStarted} />`
        : html`<div class="grid wide-first overview">
            <div class="todo-area"><${NeedsAttention} sums=${sums.value} span=${span} /></div>
            <div class="stack plots">
              <${Traffic} span=${span} all=${all.value} />
              <${Spend} span=${span} models=${whole ? models.value : undefined} own=${own.value} />
            </div>
            <div class="stack tops">
              <${TopList} span=${span} by="model" title="Models" />
              <${TopList} span=${span} by="key" title="Keys" />
              <${TopList} span=${span} by="label" title="Labels" />
            </div>
          </div>`
    }
  `;
}

function figures(
  span: TimeRange,
  row: StatsRow | undefined,
  sums: UsageReport | undefined,
  before: UsageReport | undefined,
  recent: RecentStats | undefined,
  inFlight: number | undefined,
): Figure[] {
  const requests = row?.requests ?? 0;
  const failed = row?.failed ?? 0;
  const first = row?.firstTokenMs;
  const [now, then] = [Number(sums?.total.costNano ?? 0), Number(before?.total.costNano ?? 0)];
  const turn = then > 0 ? (now - then) / then : undefined;
  const range = { range: span.name };
  return [
    {
      name: "Spend",
      value: sums ? formatUsd(sums.total.costNano) : "–",
      title: sums && formatUsdExact(sums.total.costNano),
      note:
        turn === undefined
          ? `${formatCount(sums?.total.calls ?? 0)} calls`
          : `${turn < 0 ? "▼" : "▲"} ${Math.abs(turn * 100).toFixed(0)}% vs. the previous period`,
      href: buildUrl("/usage", { ...range, by: "model" }),
    },
    {
      name: "Requests",
      value: formatCompact(requests),
      title: formatCount(requests),
      note: row && row.refused > 0 ? `${formatCount(row.refused)} rejected` : "none rejected",
      href: buildUrl("/requests", range),
    },
    {
      name: "Errors",
      value: formatShare(failed, requests),
      note: failed > 0 ? `${formatCount(failed)} failed` : "none failed",
      tone: failed > 0 ? "bad" : "",
      href: buildUrl("/requests", { ...range, status: "failed" }),
    },
    {
      name: "First token, p50",
      value: duration(first?.p50),
      note: first && `p95 ${duration(first.p95)} · p99 ${duration(first.p99)}`,
    },
    {
      name: "Total duration, p50",
      value: duration(row?.ms?.p50),
      note: row?.ms && `p95 ${duration(row.ms.p95)} · p99 ${duration(row.ms.p99)}`,
    },
    {
      name: "Gateway time, p50",
      value: duration(row?.overheadMs?.p50),
      title: "Time that the gateway itself added to each request",
      note:
        row?.overheadMs &&
        `p95 ${duration(row.overheadMs.p95)} · p99 ${duration(row.overheadMs.p99)}`,
    },
    {
      name: "Tokens",
      value: formatCompact((row?.input ?? 0) + (row?.output ?? 0)),
      title: formatCount((row?.input ?? 0) + (row?.output ?? 0)),
      note: `${formatCompact(row?.input ?? 0)} in · ${formatCompact(row?.output ?? 0)} out`,
    },
    {
      name: "In flight",
      value: inFlight === undefined ? "–" : formatCount(inFlight),
      note: recent && `${formatCount(recent.total?.requests ?? 0)} in the last minute`,
      href: buildUrl("/requests", {}),
    },
  ];
}

function Spend({
  span,
  models,
  own,
}: {
  span: TimeRange;
  models: StatsSeries | undefined;
  own: UsageSeries | undefined;
}) {
  const value = (of: "cost" | "calls") =>
    models
      ? chartLines(span, models.rows, (row) => (of === "cost" ? Number(row.costNano) : row.calls))
      : {
          times: own?.times ?? [],
          lines: (own?.series ?? []).map(({ name, costNano, calls }) => ({
            name,
            values: (of === "cost" ? costNano.map(Number) : calls) as (number | null)[],
          })),
        };
  const cost = useMemo(() => value("cost"), [span.from, span.name, models, own]);
  const calls = useMemo(() => value("calls"), [span.from, span.name, models, own]);
  if (!models && !own) return null;
  const all = cost.lines.reduce(
    (sum, { values }) => sum + values.reduce((a: number, b) => a + (b ?? 0), 0),
    0,
  );
  if (cost.lines.length === 0)
    return html`<${Box} title="Spend by model"
      ><${EmptyState} of="usage"><p>No calls in this time range.</p><//><//
    >`;
  return all > 0
    ? html`<${Chart}
        title="Spend by model"
        label=${`Spend by model ${span.label}: ${formatUsd(all)} in total, mostly for ${cost.lines[0]!.name}.`}
        times=${cost.times}
        series=${cost.lines}
        format=${formatUsd}
        stacked=${true}
      />`
    : html`<${Chart}
        title="Calls by model"
        label=${`Calls by model ${span.label}. All requests were free.`}
        times=${calls.times}
        series=${calls.lines}
        format=${formatCompact}
        stacked=${true}
      />`;
}

/** Returns one line per name, the largest first, with one value per step. */
function chartLines(span: TimeRange, rows: StatsSeries["rows"], value: (row: StatsRow) => number) {
  const times = rangeSteps(span);
  const at = new Map(times.map((time, i) => [time, i]));
  const lines = new Map<string, number[]>();
  for (const row of rows) {
    const i = at.get(row.at);
    if (i === undefined) continue;
    const line = lines.get(row.name) ?? times.map(() => 0);
    lines.set(row.name, line);
    line[i]! += value(row);
  }
  const size = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  return {
    times,
    lines: [...lines]
      .map(([name, values]) => ({
        name: name || "all",
        values: values as (number | null)[],
        size: size(values),
      }))
      .sort((a, b) => b.size - a.size),
  };
}

function TopList({
  span,
  by,
  title,
}: {
  span: TimeRange;
  by: "model" | "key" | "label";
  title: string;
}) {
  const { from, to, name: range } = span;
  const sums = useQuery<UsageReport>(
    "ledger.totals",
    { from, to, by: [by], tz: readerZone() },
    { intervalMs: 10_000 },
  );
  const rows = (sums.value?.rows ?? [])
    .toSorted((a, b) => Number(b.costNano) - Number(a.costNano) || b.calls - a.calls)
    .slice(0, 5);
  if (by === "label" && rows.every((row) => !row.by[by])) return null;
  const free = rows.every(({ costNano }) => Number(costNano) === 0);
  const weight = (row: UsageReport["rows"][number]) => (free ? row.calls : Number(row.costNano));
  const most = Math.max(1, ...rows.map(weight));
  const more = html`<a class="small" href=${buildUrl("/usage", { by, range })}>All</a>`;
  return html`<${Box} title=${title} actions=${more}
    ><${QueryResult} of=${sums}
      >${(value: UsageReport) =>
        rows.length === 0
          ? html`<p class="quiet small">No data in this time range.</p>`
          : html`<div class="ranks">
              ${rows.map((row) => {
                const groupValue = row.by[by] ?? "";
                const name =
                  by === "key"
                    ? (value.keyNames[groupValue] ?? groupValue)
                    : groupValue || "(none)";
                return html`<a
                  key=${groupValue}
                  href=${buildUrl("/usage", { by: by === "model" ? "key" : "model", range, [by]: groupValue })}
                >
                  <span class="of" title=${name}>${name}</span
                  ><span title=${formatUsdExact(row.costNano)}
                    >${free ? `${formatCompact(row.calls)} calls` : formatUsd(row.costNano)}</span
                  >
                  <${UsageBar} of=${weight(row) / most}
                /></a>`;
              })}
            </div>`}<//
    ><//
  >`;
}

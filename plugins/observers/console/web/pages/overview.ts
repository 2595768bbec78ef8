// What an operator reads first in the morning: what was spent, how it went, how fast it was, and what needs attention.
import { useMemo } from "preact/hooks";
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Chart } from "../parts/chart.ts";
import { Box, Empty, Figures, type FigureOf, Meter, Shown } from "../parts/plain.ts";
import { addressOf } from "../place.ts";
import { may } from "../rights.ts";
import { SpanChoice, type Span, stepsOf, useSpan } from "../span.ts";
import type { Recent, Series, StatsRow, Sums, UsageSeries } from "../shapes.ts";
import { brief, count, share, span as duration, usd, usdExact, zone } from "../words.ts";
import { GettingStarted } from "./overview-start.ts";
import { NeedsAttention } from "./overview-attention.ts";
import { Traffic } from "./overview-traffic.ts";

export function Overview() {
  const [span, set] = useSpan();
  const { from, to, step } = span;
  const every = 5_000;
  /** The reader sees the whole gateway, not one account. */
  const whole = may("stats.recent");
  const all = useAsk<Series>("stats.series", { from, to, step, by: "all" }, { every });
  const models = useAsk<Series>(
    "stats.series",
    { from, to, step, by: "model", most: 7 },
    { every, off: !whole },
  );
  // Counts of one account are not kept by model: its ledger has them, hour by hour.
  const own = useAsk<UsageSeries>(
    "usage.series",
    { from, to, step: "hour", tz: zone(), by: "model", most: 7 },
    { every: 10_000, off: whole },
  );
  const sums = useAsk<Sums>("ledger.totals", { from, to, by: ["state"] }, { every });
  const before = useAsk<Sums>("ledger.totals", { from: from - span.ms, to: from, by: ["state"] });
  const recent = useAsk<Recent>("stats.recent", { windowMs: 60_000 }, { every: 2_000 });
  // Of one account, what is under way is listed and not counted.
  const live = useAsk<{ all: number }>("requests.live", { limit: 1 }, { every: 2_000, off: whole });
  const inFlight = recent.value?.inFlight ?? live.value?.all;
  const nothing = all.value && inFlight === 0 && !all.value.totals.length;
  return html`
    <div class="row"><span class="grow"></span><${SpanChoice} span=${span} set=${set} /></div>
    <${Shown} of=${all}
      >${(stats: Series) => html`<${Figures} of=${figures(span, stats.totals[0], sums.value, before.value, recent.value, inFlight)} />`}<//
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
              <${Top} span=${span} by="model" title="Models" />
              <${Top} span=${span} by="key" title="Keys" />
              <${Top} span=${span} by="label" title="Labels" />
            </div>
          </div>`
    }
  `;
}

function figures(
  span: Span,
  row: StatsRow | undefined,
  sums: Sums | undefined,
  before: Sums | undefined,
  recent: Recent | undefined,
  inFlight: number | undefined,
): FigureOf[] {
  const requests = row?.requests ?? 0;
  const failed = row?.failed ?? 0;
  const first = row?.firstContentMs;
  const [now, then] = [Number(sums?.total.costNano ?? 0), Number(before?.total.costNano ?? 0)];
  const turn = then > 0 ? (now - then) / then : undefined;
  const range = { range: span.name };
  return [
    {
      name: "Spend",
      value: sums ? usd(sums.total.costNano) : "–",
      title: sums && usdExact(sums.total.costNano),
      note:
        turn === undefined
          ? `${count(sums?.total.calls ?? 0)} calls`
          : `${turn < 0 ? "▼" : "▲"} ${Math.abs(turn * 100).toFixed(0)}% vs. the time before`,
      href: addressOf("/usage", { ...range, by: "model" }),
    },
    {
      name: "Requests",
      value: brief(requests),
      title: count(requests),
      note: row && row.refused > 0 ? `${count(row.refused)} refused` : "none refused",
      href: addressOf("/requests", range),
    },
    {
      name: "Errors",
      value: share(failed, requests),
      note: failed > 0 ? `${count(failed)} failed` : "none failed",
      tone: failed > 0 ? "bad" : "",
      href: addressOf("/requests", { ...range, status: "failed" }),
    },
    {
      name: "First token, p50",
      value: duration(first?.p50),
      note: first && `p95 ${duration(first.p95)} · p99 ${duration(first.p99)}`,
    },
    {
      name: "Whole response, p50",
      value: duration(row?.ms?.p50),
      note: row?.ms && `p95 ${duration(row.ms.p95)} · p99 ${duration(row.ms.p99)}`,
    },
    {
      name: "Gateway time, p50",
      value: duration(row?.ownMs?.p50),
      title: "Time that the gateway itself took for each request",
      note: row?.ownMs && `p95 ${duration(row.ownMs.p95)} · p99 ${duration(row.ownMs.p99)}`,
    },
    {
      name: "Tokens",
      value: brief((row?.input ?? 0) + (row?.output ?? 0)),
      title: count((row?.input ?? 0) + (row?.output ?? 0)),
      note: `${brief(row?.input ?? 0)} in · ${brief(row?.output ?? 0)} out`,
    },
    {
      name: "In flight",
      value: inFlight === undefined ? "–" : count(inFlight),
      note: recent && `${count(recent.all?.requests ?? 0)} in the last minute`,
      href: addressOf("/requests", {}),
    },
  ];
}

function Spend({
  span,
  models,
  own,
}: {
  span: Span;
  models: Series | undefined;
  own: UsageSeries | undefined;
}) {
  const value = (of: "cost" | "calls") =>
    models
      ? linesOf(span, models.rows, (row) => (of === "cost" ? Number(row.costNano) : row.calls))
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
      ><${Empty} of="usage"><p>No calls in this time.</p><//><//
    >`;
  return all > 0
    ? html`<${Chart}
        title="Spend by model"
        label=${`Spend by model ${span.said}: ${usd(all)} in total, most of it for ${cost.lines[0]!.name}.`}
        times=${cost.times}
        series=${cost.lines}
        say=${usd}
        stacked=${true}
      />`
    : html`<${Chart}
        title="Calls by model"
        label=${`Calls by model ${span.said}; all of them were free.`}
        times=${calls.times}
        series=${calls.lines}
        say=${brief}
        stacked=${true}
      />`;
}

/** A line for each name, the largest first, with a value for each step. */
function linesOf(span: Span, rows: Series["rows"], value: (row: StatsRow) => number) {
  const times = stepsOf(span);
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

function Top({ span, by, title }: { span: Span; by: "model" | "key" | "label"; title: string }) {
  const { from, to, name: range } = span;
  const sums = useAsk<Sums>("ledger.totals", { from, to, by: [by], tz: zone() }, { every: 10_000 });
  const rows = (sums.value?.rows ?? [])
    .toSorted((a, b) => Number(b.costNano) - Number(a.costNano) || b.calls - a.calls)
    .slice(0, 5);
  if (by === "label" && rows.every((row) => !row.by[by])) return null;
  const free = rows.every(({ costNano }) => Number(costNano) === 0);
  const weight = (row: Sums["rows"][number]) => (free ? row.calls : Number(row.costNano));
  const most = Math.max(1, ...rows.map(weight));
  const more = html`<a class="small" href=${addressOf("/usage", { by, range })}>All</a>`;
  return html`<${Box} title=${title} actions=${more}
    ><${Shown} of=${sums}
      >${(value: Sums) =>
        rows.length === 0
          ? html`<p class="quiet small">Nothing in this time.</p>`
          : html`<div class="ranks">
              ${rows.map((row) => {
                const said = row.by[by] ?? "";
                const name = by === "key" ? (value.names[said] ?? said) : said || "(none)";
                return html`<a
                  key=${said}
                  href=${addressOf("/usage", { by: by === "model" ? "key" : "model", range, [by]: said })}
                >
                  <span class="of" title=${name}>${name}</span
                  ><span title=${usdExact(row.costNano)}
                    >${free ? `${brief(row.calls)} calls` : usd(row.costNano)}</span
                  >
                  <${Meter} of=${weight(row) / most}
                /></a>`;
              })}
            </div>`}<//
    ><//
  >`;
}

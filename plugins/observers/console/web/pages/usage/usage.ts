// Usage page: usage and cost by any dimension, as a chart over time and a table. The table shows
// the same values as the report of the command line.
import { useMemo, useState } from "preact/hooks";
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Chart } from "../../parts/chart.ts";
import { SegmentedControl, Select, TextField } from "../../parts/fields.ts";
import { icon } from "../../parts/icons.ts";
import { Box, EmptyState, NoteBox, CommandLineHint, QueryResult } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { buildUrl, useQueryParam } from "../../location.ts";
import { TimeRangeChoice, type TimeRange, useTimeRange } from "../../time-range.ts";
import type { UsageRow, UsageReport, UsageSeries } from "../../api-types.ts";
import { formatCompact, formatCount, formatUsd, formatUsdExact, readerZone } from "../../format.ts";
import { toCsv, downloadText } from "./usage-export.ts";
import { UsageForecast } from "./usage-forecast.ts";

/** Dimensions of the table. Hours and days are shown by the chart. */
const GROUPINGS = [
  "model",
  "key",
  "account",
  "provider",
  "label",
  "credential",
  "frontend",
  "outcome",
  "state",
  "day",
] as const;
/** Dimensions to filter by. Each is a URL parameter and an option of the command. */
const FILTER_NAMES = [
  "model",
  "key",
  "account",
  "provider",
  "label",
  "credential",
  "frontend",
  "outcome",
  "state",
] as const;

const MEASURES = [
  ["cost", "Cost"],
  ["calls", "Calls"],
  ["tokens", "Tokens"],
] as const;

export function UsagePage() {
  const [span, set] = useTimeRange("7d");
  const [by, setBy] = useQueryParam("by", "model");
  const [measure, setMeasure] = useQueryParam("of", "cost");
  const [tz, setTz] = useQueryParam("tz", readerZone());
  const filters = FILTER_NAMES.map((name) => [name, ...useQueryParam(name)] as const);
  const only = Object.fromEntries(
    filters.filter(([, value]) => value).map(([name, value]) => [name, value]),
  );
  const { from, to } = span;
  const sums = useQuery<UsageReport>(
    "ledger.totals",
    { ...only, from, to, tz, by: [by] },
    { intervalMs: 10_000 },
  );
  const step = span.durationMs > 8 * 86_400_000 ? "day" : "hour";
  const series = useQuery<UsageSeries>(
    "usage.series",
    { ...only, from, to, tz, step, by: by === "day" ? "model" : by, most: 7 },
    { intervalMs: 10_000 },
  );
  const command = [
    "tollgate usage",
    `--by ${by}`,
    ...rangeFlags(span),
    ...Object.entries(only).map(([name, value]) => `--${name} ${shellQuote(value)}`),
    ...(tz === "UTC" ? [] : [`--tz ${tz}`]),
  ].join(" ");
  return html`
    <div class="row">
      <${Select}
        hidesLabel=${true}
        name="By"
        value=${by}
        set=${setBy}
        options=${GROUPINGS.map((name) => [name, `by ${name}`] as const)}
      />
      <${SegmentedControl} name="Of" value=${measure} set=${setMeasure} of=${MEASURES} />
      <span class="grow"></span><${TimeRangeChoice} span=${span} set=${set} />
    </div>
    <${UsageFilters} filters=${filters} tz=${tz} setTz=${setTz} />
    <${UsagePlot}
      series=${series.value}
      names=${sums.value?.keyNames ?? {}}
      by=${by}
      measure=${measure}
      span=${span}
    />
    <${QueryResult} of=${sums}
      >${(value: UsageReport) =>
        html` ${value.total.unpriced > 0 && html`<${NoteBox} tone="warn"><p>${formatCount(value.total.unpriced)} calls have no price and are not part of the cost.</p><//>`}
          <${UsageTable} sums=${value} by=${by} span=${span} tz=${tz} />`}<//
    >
    <${UsageForecast} account=${only["account"]} />
    <${CommandLineHint} line=${command} />
  `;
}

/** Returns the command-line options of a time range. */
const rangeFlags = ({ name, from, to }: TimeRange): readonly string[] =>
  /^\d+[hd]$/.test(name)
    ? [`--since ${name}`]
    : [`--since ${new Date(from).toISOString()}`, `--until ${new Date(to).toISOString()}`];

const shellQuote = (word: string) =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

function UsagePlot({
  series,
  names,
  by,
  measure,
  span,
}: {
  series: UsageSeries | undefined;
  names: UsageReport["keyNames"];
  by: string;
  measure: string;
  span: TimeRange;
}) {
  const lines = useMemo(
    () =>
      (series?.series ?? []).map(({ name, calls, costNano, tokens }) => ({
        name: (by === "key" ? names[name] : undefined) ?? (name || "(none)"),
        values: measure === "cost" ? costNano.map(Number) : measure === "calls" ? calls : tokens,
      })),
    [series, names, by, measure],
  );
  const say = measure === "cost" ? formatUsd : formatCompact;
  const what = measure === "cost" ? "Cost" : measure === "calls" ? "Calls" : "Tokens";
  const title = `${what} by ${by === "day" ? "model" : by}`;
  const all = lines.reduce((sum, { values }) => sum + values.reduce((a, b) => a + b, 0), 0);
  if (!series || lines.length === 0) return null;
  return html`<${Chart}
    title=${title}
    label=${`${title} ${span.label}: ${say(all)} in total.`}
    times=${series.times}
    series=${lines}
    format=${say}
    stacked=${true}
    height=${280}
  />`;
}

const sumUnits = (row: UsageRow, ...names: readonly string[]) =>
  names.reduce((sum, name) => sum + (row.usage[name] ?? 0), 0);
const CACHE_READ_UNITS = ["cache_read", "cache_read_audio", "cache_read_image"];
const CACHE_WRITE_UNITS = [
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
];

function UsageTable({
  sums,
  by,
  span,
  tz,
}: {
  sums: UsageReport;
  by: string;
  span: TimeRange;
  tz: string;
}) {
  const nameOf = (row: UsageRow) =>
    (by === "key" ? (sums.keyNames[row.by[by] ?? ""] ?? row.by[by]) : row.by[by]) || "(none)";
  const { total } = sums;
  const number = (name: string, of: (row: UsageRow) => number): Column<UsageRow> => ({
    name: capitalize(name),
    isNumber: true,
    render: (row) => (of(row) === 0 ? html`<span class="faint">0</span>` : formatCount(of(row))),
    sortKey: of,
    footer: formatCount(of(total)),
  });
  const narrowed = (row: UsageRow) =>
    buildUrl("/usage", {
      by: by === "model" ? "key" : "model",
      range: span.name,
      [by]: row.by[by] ?? "",
    });
  const columns: Column<UsageRow>[] = [
    {
      name: capitalize(by),
      isRowHeader: true,
      sortKey: nameOf,
      render: (row) =>
        by === "day"
          ? nameOf(row)
          : html`<a class="cut" title=${nameOf(row)} href=${narrowed(row)}>${nameOf(row)}</a>`,
    },
    number("calls", ({ calls }) => calls),
    number("input", (row) => sumUnits(row, "input")),
    number("cached", (row) => sumUnits(row, ...CACHE_READ_UNITS)),
    number("written", (row) => sumUnits(row, ...CACHE_WRITE_UNITS)),
    number("output", (row) => sumUnits(row, "output")),
    number("reasoning", (row) => sumUnits(row, "reasoning")),
    number("images", (row) => sumUnits(row, "images")),
    {
      name: "Cost",
      isNumber: true,
      sortKey: (row) => Number(row.costNano),
      render: (row) =>
        html`<span title=${formatUsdExact(row.costNano)}>${formatUsd(row.costNano)}</span>`,
      footer: html`<span title=${formatUsdExact(total.costNano)}
        >${formatUsd(total.costNano)}</span
      >`,
    },
    number("unpriced", ({ unpriced }) => unpriced),
    number("estimated", ({ estimated }) => estimated),
  ];
  const shown = columns.filter(
    ({ name, footer }) =>
      !["Output", "Reasoning", "Images", "Unpriced", "Estimated"].includes(name) || footer !== "0",
  );
  const rows = sortRows(sums.rows, by);
  const file = () => downloadText(`usage-by-${by}.csv`, toCsv(sums, by));
  const actions = html`<button
    type="button"
    class="button small"
    onClick=${file}
    disabled=${rows.length === 0}
  >
    ${icon("down")}CSV
  </button>`;
  return html`<${Box} title="Totals" actions=${actions} flush=${true}>
    <${Table}
      label=${`Usage by ${by}, days of ${tz}`}
      columns=${shown}
      rows=${rows}
      rowId=${(row: UsageRow) => row.by[by] ?? ""}
      empty=${html`<${NothingUsed} />`}
    />
  <//>`;
}

/** Sorts days newest first, and other rows by descending cost. */
const sortRows = (rows: readonly UsageRow[], by: string): readonly UsageRow[] =>
  rows.toSorted((a, b) =>
    by === "day"
      ? a.by["day"]! < b.by["day"]!
        ? 1
        : -1
      : Number(b.costNano) - Number(a.costNano) || b.calls - a.calls,
  );

const NothingUsed = () =>
  html`<${EmptyState} of="usage"
    ><p>No usage in this time range matches the filters.</p>
    <div class="row">
      <a class="button" href=${buildUrl("/usage", { range: "30d" })}
        >The last 30 days, without filters</a
      ><a class="button" href=${buildUrl("/playground")}>Ask a model</a>
    </div><//
  >`;

// Filters of the usage page.

/** Collapsible filters. Active filters are always visible, and a click removes them. */
function UsageFilters({
  filters,
  tz,
  setTz,
}: {
  filters: readonly (readonly [name: string, value: string, set: (to: string) => void])[];
  tz: string;
  setTz: (to: string) => void;
}) {
  const set = filters.filter(([, value]) => value);
  const [open, show] = useState(false);
  return html`<section class="box fold">
    <header>
      <button
        type="button"
        class="button bare"
        aria-expanded=${open ? "true" : "false"}
        onClick=${() => show(!open)}
      >
        ${icon("filter")}Filters
      </button>
      ${set.map(
        ([name, value, change]) =>
          html`<button
            type="button"
            class="mark accent plain"
            key=${name}
            aria-label=${`Remove the filter ${name}: ${value}`}
            onClick=${() => change("")}
          >
            <span class="of">${name}: ${value}</span>${icon("close")}
          </button>`,
      )}
      ${set.length === 0 && !open && html`<span class="small faint">none</span>`}
    </header>
    ${
      open &&
      html`<div class="in">
        <div class="filters">
          ${filters.map(
            ([name, value, change]) =>
              html`<${TextField}
                key=${name}
                name=${capitalize(name)}
                value=${value}
                set=${change}
                placeholder="any"
              />`,
          )}
          <${TextField} name="Time zone" value=${tz} set=${setTz} />
        </div>
      </div>`
    }
  </section>`;
}

const capitalize = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;

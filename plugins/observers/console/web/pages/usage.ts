// What was used and what it cost, by whatever it can be summed up by: a plot over time and a table that equals the command line's.
import { useMemo } from "preact/hooks";
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Chart } from "../parts/chart.ts";
import { Choice, Select } from "../parts/fields.ts";
import { icon } from "../parts/icons.ts";
import { Box, Empty, NoteBox, SameAs, Shown } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { addressOf, useWord } from "../place.ts";
import { SpanChoice, type Span, useSpan } from "../span.ts";
import type { Sum, Sums, UsageSeries } from "../shapes.ts";
import { brief, count, usd, usdExact, zone } from "../words.ts";
import { asCsv, saved } from "./usage-files.ts";
import { Filters, titled } from "./usage-filters.ts";

/** What it can be summed up by here; hours and days are the plot's. */
const BY = [
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
/** What it can be narrowed to: each a word of the address and of the command. */
const ONLY = [
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

export function Usage() {
  const [span, set] = useSpan("7d");
  const [by, setBy] = useWord("by", "model");
  const [measure, setMeasure] = useWord("of", "cost");
  const [tz, setTz] = useWord("tz", zone());
  const filters = ONLY.map((name) => [name, ...useWord(name)] as const);
  const only = Object.fromEntries(
    filters.filter(([, value]) => value).map(([name, value]) => [name, value]),
  );
  const { from, to } = span;
  const sums = useAsk<Sums>(
    "ledger.totals",
    { ...only, from, to, tz, by: [by] },
    { every: 10_000 },
  );
  const step = span.ms > 8 * 86_400_000 ? "day" : "hour";
  const series = useAsk<UsageSeries>(
    "usage.series",
    { ...only, from, to, tz, step, by: by === "day" ? "model" : by, most: 7 },
    { every: 10_000 },
  );
  const said = [
    "tollgate usage",
    `--by ${by}`,
    ...sinceOf(span),
    ...Object.entries(only).map(([name, value]) => `--${name} ${quoted(value)}`),
    ...(tz === "UTC" ? [] : [`--tz ${tz}`]),
  ].join(" ");
  return html`
    <div class="row">
      <${Select}
        bare=${true}
        name="By"
        value=${by}
        set=${setBy}
        of=${BY.map((name) => [name, `by ${name}`] as const)}
      />
      <${Choice} name="Of" value=${measure} set=${setMeasure} of=${MEASURES} />
      <span class="grow"></span><${SpanChoice} span=${span} set=${set} />
    </div>
    <${Filters} filters=${filters} tz=${tz} setTz=${setTz} />
    <${Plot}
      series=${series.value}
      names=${sums.value?.names ?? {}}
      by=${by}
      measure=${measure}
      span=${span}
    />
    <${Shown} of=${sums}
      >${(value: Sums) =>
        html` ${value.total.unpriced > 0 && html`<${NoteBox} tone="warn"><p>${count(value.total.unpriced)} calls have no price and are not part of the cost.</p><//>`}
          <${Listed} sums=${value} by=${by} span=${span} tz=${tz} />`}<//
    >
    <${SameAs} line=${said} />
  `;
}

/** As the command line has it. */
const sinceOf = ({ name, from, to }: Span): readonly string[] =>
  /^\d+[hd]$/.test(name)
    ? [`--since ${name}`]
    : [`--since ${new Date(from).toISOString()}`, `--until ${new Date(to).toISOString()}`];

const quoted = (word: string) =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

function Plot({
  series,
  names,
  by,
  measure,
  span,
}: {
  series: UsageSeries | undefined;
  names: Sums["names"];
  by: string;
  measure: string;
  span: Span;
}) {
  const lines = useMemo(
    () =>
      (series?.series ?? []).map(({ name, calls, costNano, tokens }) => ({
        name: (by === "key" ? names[name] : undefined) ?? (name || "(none)"),
        values: measure === "cost" ? costNano.map(Number) : measure === "calls" ? calls : tokens,
      })),
    [series, names, by, measure],
  );
  const say = measure === "cost" ? usd : brief;
  const what = measure === "cost" ? "Cost" : measure === "calls" ? "Calls" : "Tokens";
  const title = `${what} by ${by === "day" ? "model" : by}`;
  const all = lines.reduce((sum, { values }) => sum + values.reduce((a, b) => a + b, 0), 0);
  if (!series || lines.length === 0) return null;
  return html`<${Chart}
    title=${title}
    label=${`${title} ${span.said}: ${say(all)} in total.`}
    times=${series.times}
    series=${lines}
    say=${say}
    stacked=${true}
    height=${280}
  />`;
}

const unit = (row: Sum, ...names: readonly string[]) =>
  names.reduce((sum, name) => sum + (row.usage[name] ?? 0), 0);
const CACHED = ["cache_read"];
const WRITTEN = ["cache_write_5m", "cache_write_30m", "cache_write_1h", "cache_write_12h"];

function Listed({ sums, by, span, tz }: { sums: Sums; by: string; span: Span; tz: string }) {
  const nameOf = (row: Sum) =>
    (by === "key" ? (sums.names[row.by[by] ?? ""] ?? row.by[by]) : row.by[by]) || "(none)";
  const { total } = sums;
  const number = (name: string, of: (row: Sum) => number): Column<Sum> => ({
    name: titled(name),
    number: true,
    of: (row) => (of(row) === 0 ? html`<span class="faint">0</span>` : count(of(row))),
    by: of,
    sum: count(of(total)),
  });
  const narrowed = (row: Sum) =>
    addressOf("/usage", {
      by: by === "model" ? "key" : "model",
      range: span.name,
      [by]: row.by[by] ?? "",
    });
  const columns: Column<Sum>[] = [
    {
      name: titled(by),
      head: true,
      by: nameOf,
      of: (row) =>
        by === "day"
          ? nameOf(row)
          : html`<a class="cut" title=${nameOf(row)} href=${narrowed(row)}>${nameOf(row)}</a>`,
    },
    number("calls", ({ calls }) => calls),
    number("input", (row) => unit(row, "input")),
    number("cached", (row) => unit(row, ...CACHED)),
    number("written", (row) => unit(row, ...WRITTEN)),
    number("output", (row) => unit(row, "output")),
    number("reasoning", (row) => unit(row, "reasoning")),
    number("images", (row) => unit(row, "images")),
    {
      name: "Cost",
      number: true,
      by: (row) => Number(row.costNano),
      of: (row) => html`<span title=${usdExact(row.costNano)}>${usd(row.costNano)}</span>`,
      sum: html`<span title=${usdExact(total.costNano)}>${usd(total.costNano)}</span>`,
    },
    number("unpriced", ({ unpriced }) => unpriced),
    number("estimated", ({ estimated }) => estimated),
  ];
  const shown = columns.filter(
    ({ name, sum }) =>
      !["Written", "Reasoning", "Images", "Unpriced", "Estimated"].includes(name) || sum !== "0",
  );
  const rows = ordered(sums.rows, by);
  const file = () => saved(`usage-by-${by}.csv`, asCsv(sums, by));
  const actions = html`<button
    type="button"
    class="button small"
    onClick=${file}
    disabled=${rows.length === 0}
  >
    ${icon("down")}CSV
  </button>`;
  return html`<${Box} title="Sums" actions=${actions} flush=${true}>
    <${Table}
      label=${`Usage by ${by}, days of ${tz}`}
      columns=${shown}
      rows=${rows}
      id=${(row: Sum) => row.by[by] ?? ""}
      empty=${html`<${NothingUsed} />`}
    />
  <//>`;
}

/** The newest day first, else what cost most. */
const ordered = (rows: readonly Sum[], by: string): readonly Sum[] =>
  rows.toSorted((a, b) =>
    by === "day"
      ? a.by["day"]! < b.by["day"]!
        ? 1
        : -1
      : Number(b.costNano) - Number(a.costNano) || b.calls - a.calls,
  );

const NothingUsed = () =>
  html`<${Empty} of="usage"
    ><p>No usage in this time, or none that matches the filters.</p>
    <div class="row">
      <a class="button" href=${addressOf("/usage", { range: "30d" })}
        >The last 30 days, without filters</a
      ><a class="button" href=${addressOf("/playground")}>Ask a model</a>
    </div><//
  >`;

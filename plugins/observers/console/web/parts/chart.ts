// A chart over time with its data as a table: lines or stacked areas. A sentence describes the
// chart for screen readers. At the pointer, the chart shows the values of that time.
import uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { formatDay, formatHour, formatDateTime, readerZone } from "../format.ts";
import { SegmentedControl } from "./fields.ts";
import { Table, type Column } from "./table.ts";

export interface ChartSeries {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Color, if it has a meaning. Default: the next of eight. */
  readonly hue?: Hue | undefined;
}

/** A color name of the console's style sheet. */
export type Hue = "good" | "warn" | "bad" | "s1" | "s8";

export interface ChartProps {
  /** Short description of the chart. */
  readonly label: string;
  /** Start time of each value in Unix milliseconds. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly stacked?: boolean;
  readonly height?: number;
  /** Heading next to the switch between chart and table. */
  readonly title: string;
}

interface HoverPoint {
  readonly at: number;
  readonly left: number;
  readonly right: boolean;
}

const HUES = 8;
const hueOf = ({ hue }: ChartSeries, i: number): string => hue ?? `s${(i % HUES) + 1}`;

export function Chart(of: ChartProps) {
  const [form, choose] = useState("chart");
  return html`<section class="box chart">
    <header>
      <h2>${of.title}</h2>
      <${SegmentedControl}
        name="Shown as"
        value=${form}
        set=${choose}
        of=${[
          ["chart", "Chart"],
          ["table", "Table"],
        ]}
      />
    </header>
    ${form === "chart" ? html`<div class="in"><${Plot} ...${of} /></div>` : html`<${ChartTable} ...${of} />`}
  </section>`;
}

function Plot(of: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const own = useRef<{ plot: uPlot; names: string; theme: string } | undefined>(undefined);
  const [under, point] = useState<HoverPoint>();
  const { times, series, stacked = false, height = 240, label } = of;
  useEffect(() => () => own.current?.plot.destroy(), []);
  useEffect(() => {
    const draw = () => {
      const names = `${stacked} ${series.map(({ name }) => name).join("\n")}`;
      const theme =
        getComputedStyle(document.documentElement).getPropertyValue("color-scheme") +
        matchMedia("(prefers-color-scheme: dark)").matches;
      const data = alignData(times, series, stacked);
      const now = own.current;
      // If only the values changed, only the data is redrawn.
      if (now && now.names === names && now.theme === theme) now.plot.setData(data);
      else {
        now?.plot.destroy();
        const plot = new uPlot(
          plotOptions(of, place.current!, height, point),
          data,
          place.current!,
        );
        own.current = { plot, names, theme };
      }
    };
    draw();
    addEventListener("tollgate-theme", draw);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    const seen = new ResizeObserver(([box]) =>
      own.current?.plot.setSize({ width: Math.floor(box!.contentRect.width), height }),
    );
    seen.observe(place.current!);
    return () => {
      removeEventListener("tollgate-theme", draw);
      dark.removeEventListener("change", draw);
      seen.disconnect();
    };
  }, [times, series, stacked, height]);
  return html`<div class="chart">
    <div class="plot" ref=${place} role="img" aria-label=${label}></div>
    ${under && html`<${Tooltip} ...${of} under=${under} />`}
    <ul class="legend">
      ${series.map((one, i) => html`<li key=${one.name}><i class="hue ${hueOf(one, i)}"></i><span class="of" title=${one.name}>${one.name}</span></li>`)}
    </ul>
  </div>`;
}

function Tooltip({ times, series, format, stacked, under }: ChartProps & { under: HoverPoint }) {
  const at = times[under.at];
  if (at === undefined) return null;
  const rows = series.flatMap((one, i) => {
    const value = one.values[under.at];
    return value === null || value === undefined || (stacked && value === 0)
      ? []
      : [{ name: one.name, value, hue: hueOf(one, i) }];
  });
  const all = rows.reduce((sum, { value }) => sum + value, 0);
  const where = under.right
    ? { right: `calc(100% - ${under.left - 12}px)` }
    : { left: `${under.left + 12}px` };
  return html`<div class="tip" style=${where} aria-hidden="true">
    <div class="strong">${formatDateTime(at)}</div>
    <table>
      <tbody>
        ${rows.map(
          ({ name, value, hue }) =>
            html`<tr key=${name}>
              <td><i class="hue ${hue}"></i></td>
              <td><span class="cut">${name}</span></td>
              <td class="number">${format(value)}</td>
            </tr>`,
        )}
        ${
          stacked &&
          rows.length > 1 &&
          html`<tr>
            <td></td>
            <td>all</td>
            <td class="number">${format(all)}</td>
          </tr>`
        }
      </tbody>
    </table>
  </div>`;
}

function ChartTable({ label, times, series, format }: ChartProps) {
  const columns: Column<number>[] = [
    {
      name: "From",
      isRowHeader: true,
      render: (i) => formatDateTime(times[i]!),
      sortKey: (i) => times[i]!,
    },
    ...series.map(({ name, values }) => ({
      name,
      isNumber: true,
      render: (i: number) =>
        values[i] === null || values[i] === undefined ? "–" : format(values[i]),
      sortKey: (i: number) => values[i] ?? -1,
    })),
  ];
  const rows = times.map((_, i) => i).reverse();
  return html`<${Table}
    label=${label}
    columns=${columns}
    rows=${rows}
    rowId=${(i: number) => `${times[i]}`}
    initialRows=${48}
  />`;
}

/**
 * Converts the series for uPlot. Stacked lines are drawn at cumulative sums. The last line is drawn
 * first, so that it is behind the others.
 */
function alignData(
  times: readonly number[],
  series: readonly ChartSeries[],
  stacked: boolean,
): uPlot.AlignedData {
  const seconds = times.map((at) => at / 1_000);
  if (!stacked) return [seconds, ...series.map(({ values }) => [...values])] as uPlot.AlignedData;
  const sums = times.map(() => 0);
  const lines = series.map(({ values }) =>
    values.map((value, i) => (sums[i] = sums[i]! + (value ?? 0))),
  );
  return [seconds, ...lines.reverse()] as uPlot.AlignedData;
}

function plotOptions(
  of: ChartProps,
  place: HTMLElement,
  height: number,
  point: (at: HoverPoint | undefined) => void,
): uPlot.Options {
  const { times, series, stacked = false, format } = of;
  const paint = (name: string) => resolveColor(place, `--${name}`);
  const gap = (times[1] ?? 0) - (times[0] ?? 0);
  const hues = series.map((one, i) => paint(hueOf(one, i)));
  const lines = series.map(({ name }, i) => ({
    label: name,
    stroke: hues[i]!,
    width: stacked ? 0 : 1.75,
    ...(stacked
      ? {
          fill: hues[i]!,
          paths: uPlot.paths.bars!({ align: 1, size: [0.86, 48, 1] }),
          points: { show: false },
        }
      : { points: { size: 5, filter: isolatedPoints } }),
  }));
  const axis = {
    stroke: paint("ink-3"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: paint("line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: place.clientWidth || 400,
    height,
    padding: [10, 22, 0, 0],
    legend: { show: false },
    tzDate: dateInZone,
    cursor: { y: false, points: { show: !stacked }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (u) => [u.data[0][0] ?? 0, (u.data[0].at(-1) ?? 0) + gap / 1_000] },
      y: { range: (_u, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ticks: { show: true, stroke: paint("line"), size: 4 },
        space: 64,
        size: 40,
        values: (_u, at) => axisLabels(at, gap),
      },
      { ...axis, size: 62, values: (_u, at) => at.map((value) => format(value)) },
    ],
    series: [{}, ...(stacked ? lines.reverse() : lines)],
    hooks: {
      setCursor: [
        (u) => {
          const { idx, left = -1 } = u.cursor;
          if (idx === null || idx === undefined || left < 0) return point(undefined);
          const x = left + u.over.offsetLeft;
          return point({ at: idx, left: x, right: x > u.width / 2 });
        },
      ],
    },
  };
}

/**
 * Converts a time to the reader's time zone, so that days on the axis start at the reader's
 * midnight.
 */
function dateInZone(seconds: number): Date {
  const date = new Date(seconds * 1_000);
  try {
    return uPlot.tzDate(date, readerZone());
  } catch {
    return date;
  }
}

/**
 * Formats axis labels as times, with the date below the first label and the first label of each
 * day. Labels for whole days contain only the date.
 */
export function axisLabels(seconds: readonly number[], gap: number): string[] {
  const apart = ((seconds[1] ?? 0) - (seconds[0] ?? 0)) * 1_000;
  if (gap >= 72_000_000 || apart >= 72_000_000) return seconds.map((s) => formatDay(s * 1_000));
  let before = "";
  return seconds.map((s) => {
    const date = formatDay(s * 1_000);
    const label = date === before ? formatHour(s * 1_000) : `${formatHour(s * 1_000)}\n${date}`;
    before = date;
    return label;
  });
}

/** Returns a color as the page currently renders it, in a form that a canvas accepts. */
function resolveColor(place: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Returns the indexes of values without neighbors, because a line would not show them. */
function isolatedPoints(u: uPlot, at: number): number[] {
  const values = u.data[at]!;
  const is = (i: number) => values[i] !== null && values[i] !== undefined;
  return [...values.keys()].filter((i) => is(i) && !is(i - 1) && !is(i + 1));
}

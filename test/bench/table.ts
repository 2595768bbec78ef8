// What the samples say: a table of everything, and each aim with what was reached.
import type { Grown } from "./growth.ts";
import { middle, ratio, type Figure, type Result } from "./rounds.ts";
import type { Start } from "./start.ts";

const cost: Figure = (s) => s.cpu;
const speed: Figure = (s) => s.speed;
const p50: Figure = (s) => s.p50;
const first50: Figure = (s) => s.first50;
const event50: Figure = (s) => s.event50;
const event99: Figure = (s) => s.event99;

const at = (results: readonly Result[], lane: string, target: string) =>
  results.find((r) => r.lane.name === lane && r.target === target);
const show = (value: number, digits = 0) => (Number.isFinite(value) ? value.toFixed(digits) : "");
const cells = (of: readonly string[]) => `| ${of.join(" | ")} |\n`;

export function table(results: readonly Result[]): string {
  const head = [
    "lane",
    "target",
    "CPU µs",
    "× agent",
    "× dispatch",
    "per s",
    "× agent",
    "p50 µs",
    "p99 µs",
    "first µs",
    "event p50",
    "event p99",
    "KB a stream",
  ];
  let text = cells(head) + cells(head.map((_, i) => (i < 2 ? "---" : "--:")));
  for (const result of results) {
    const agent = at(results, result.lane.name, "agent");
    const dispatch = at(results, result.lane.name, "dispatch");
    const stream = result.lane.stream;
    text += cells([
      result.lane.name,
      result.target,
      show(middle(result, cost), 1),
      agent ? show(ratio(result, agent, cost), 2) : "",
      dispatch ? show(ratio(result, dispatch, cost), 2) : "",
      show(middle(result, speed)),
      agent ? show(ratio(result, agent, speed), 2) : "",
      show(middle(result, p50)),
      show(middle(result, (s) => s.p99)),
      stream ? show(middle(result, first50)) : "",
      stream ? show(middle(result, event50)) : "",
      stream ? show(middle(result, event99)) : "",
      result.lane.once ? show(perStream(result)) : "",
    ]);
  }
  return results.length > 0 ? text : "";
}

const perStream = (result: Result) =>
  Math.max(0, ...result.samples.map((s) => s.mostBytes - s.idleBytes)) /
  1024 /
  result.lane.connections;

interface Told {
  results: readonly Result[];
  grown: readonly Grown[];
  start: Start | undefined;
  fsyncUs: number;
}

export function verdicts({ results, grown, start, fsyncUs }: Told): string {
  const rows: string[] = [];
  const aim = (what: string, got: number, bound: number, way: "≤" | "≥", unit = "×") => {
    if (!Number.isFinite(got)) return;
    const met = way === "≤" ? got <= bound : got >= bound;
    const digits = unit === "×" ? 2 : 0;
    const off = Math.round(Math.abs(got / bound - 1) * 100);
    rows.push(
      cells([
        what,
        `${way} ${show(bound, digits)} ${unit}`,
        `${show(got, digits)} ${unit}`,
        met ? "met" : `missed by ${off} %`,
      ]),
    );
  };
  const against = (
    lane: string,
    mine: string,
    other: string,
    figure: Figure,
    bound: number,
    way: "≤" | "≥",
    what: string,
  ) => {
    const [a, b] = [at(results, lane, mine), at(results, lane, other)];
    if (a && b) aim(`${lane}, ${mine}: ${what} of ${other}`, ratio(a, b, figure), bound, way);
  };
  const added = (lane: string, mine: string, figure: Figure, bound: number, what: string) => {
    const [a, b] = [at(results, lane, mine), at(results, lane, "direct")];
    if (a && b)
      aim(`${lane}, ${mine}: ${what}`, middle(a, figure) - middle(b, figure), bound, "≤", "µs");
  };
  const power = "tollgate power";
  for (const [mine, cpu, rate, peer] of [
    [power, 1.2, 0.85, 6],
    ["tollgate process", 1.2, 0.85, 6],
    ["tollgate relaxed", 1.05, 0.95, 7.5],
  ] as const) {
    against("json-1k", mine, "agent", cost, cpu, "≤", "CPU");
    against("json-1k", mine, "agent", speed, rate, "≥", "requests a second");
    against("json-1k", mine, "portkey", speed, peer, "≥", "requests a second");
  }
  added("rate-500", power, p50, 200 + 2 * fsyncUs, "added p50, two fsyncs allowed");
  for (const [lane, bound] of [
    ["json-16k", 2],
    ["json-200k", 3],
    ["json-2m", 3],
  ] as const)
    against(lane, power, "dispatch", cost, bound, "≤", "CPU");
  against("json-16k", power, "portkey", cost, 0.2, "≤", "CPU");
  against("sse-full", power, "agent", speed, 0.85, "≥", "events a second");
  for (const streams of [50, 500, 1000])
    added(`sse-${streams}`, power, event50, 200, "added p50 an event");
  for (const streams of [50, 500, 1000])
    against(`sse-${streams}`, power, "agent", event99, 1.5, "≤", "p99 an event");
  added("sse-50", power, first50, 300 + fsyncUs, "first event, added p50, one fsync allowed");
  const thousand = at(results, "sse-1000", power);
  if (thousand) aim("sse-1000: KB a stream", perStream(thousand), 120, "≤", "KB");
  for (const [lane, ours] of [
    ["to-messages", "json-1k"],
    ["to-messages-sse", "sse-full"],
  ] as const) {
    const [a, b] = [at(results, lane, power), at(results, ours, power)];
    if (a && b)
      aim(`${lane}: CPU of our own verbatim lane`, middle(a, cost) / middle(b, cost), 1.5, "≤");
  }
  for (const { what, ratio } of grown) aim(`growth, ${what}: CPU`, ratio, 1.1, "≤");
  if (start) {
    aim(`start to first answer, from ${start.from}`, start.firstAnswerMs, 400, "≤", "ms");
    aim("idle memory", start.idleBytes / 2 ** 20, 120, "≤", "MB");
  }
  const head = ["aim", "bound", "reached", ""];
  return rows.length > 0 ? `\n${cells(head)}${cells(head.map(() => "---"))}${rows.join("")}` : "";
}

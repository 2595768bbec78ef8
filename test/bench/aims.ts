// Compares the goals, row by row, with the results.
import { excess, median, ratio, type Figure, type Result } from "./rounds.ts";
import { NO_HOOK } from "./compared/hooks.ts";
import { NO_SCOPE, THREE_SCOPES } from "./compared/scopes.ts";
import { AFTER, BEFORE, type Found } from "./steps.ts";

export interface Aim {
  readonly lane: string;
  readonly what: string;
  readonly way: "≤" | "≥";
  readonly bound: number;
  readonly reached: number;
  readonly unit: "×" | "µs" | "ms" | "KB" | "MB";
  readonly met: boolean;
}

export const cost: Figure = (s) => s.cpu;
export const speed: Figure = (s) => s.speed;
const p50: Figure = (s) => s.p50;
const first50: Figure = (s) => s.first50;
const event50: Figure = (s) => s.event50;
const event99: Figure = (s) => s.event99;

/** Maximum increase of cost and latency of a lane between two checkouts. */
const WORSE = 0.03;

export const at = (results: readonly Result[], lane: string, target: string) =>
  results.find((r) => r.lane.name === lane && r.target === target);

/** Lanes that cost more CPU than in the other checkout, by more than this many percent. */
export function dearer(
  results: readonly Result[],
  most: number,
): readonly { readonly lane: string; readonly percent: number }[] {
  return results.flatMap((after) => {
    const before = at(results, after.lane.name, BEFORE);
    if (after.target !== AFTER || !before) return [];
    const percent = (ratio(after, before, cost) - 1) * 100;
    return percent > most ? [{ lane: after.lane.name, percent }] : [];
  });
}

export function aims({ results, grown, start, streamKb, young }: Found, fsyncUs: number): Aim[] {
  const rows: Aim[] = [];
  const aim = (
    lane: string,
    what: string,
    reached: number,
    way: "≤" | "≥",
    bound: number,
    unit: Aim["unit"] = "×",
  ) => {
    if (!Number.isFinite(reached)) return;
    const met = way === "≤" ? reached <= bound : reached >= bound;
    rows.push({ lane, what, way, bound, reached, unit, met });
  };
  /** A ratio of two targets in one lane. */
  const times = (
    lane: string,
    mine: string,
    other: string,
    what: string,
    figure: Figure,
    way: "≤" | "≥",
    bound: number,
  ) => {
    const [a, b] = [at(results, lane, mine), at(results, lane, other)];
    const who = mine.startsWith("tollgate ") ? `${mine.slice(9)}: ` : `${mine}: `;
    if (a && b) aim(lane, `${who}${what} against ${other}`, ratio(a, b, figure), way, bound);
  };
  /** The additional cost of one target compared with another. */
  const added = (
    lane: string,
    mine: string,
    other: string,
    what: string,
    figure: Figure,
    bound: number,
  ) => {
    const [a, b] = [at(results, lane, mine), at(results, lane, other)];
    const who = `${mine.slice(9)} over ${other}`;
    if (a && b) aim(lane, `${who}: ${what}`, excess(a, b, figure), "≤", bound, "µs");
  };

  for (const { lane, target } of results) {
    if (target !== AFTER) continue;
    times(lane.name, AFTER, BEFORE, "CPU", cost, "≤", 1 + WORSE);
    if (lane.rate === undefined && !lane.once)
      times(lane.name, AFTER, BEFORE, "per second", speed, "≥", 1 - WORSE);
  }
  const [power, relaxed] = ["tollgate power", "tollgate relaxed"];
  for (const lane of ["json-32", "json-1k"]) {
    times(lane, power, "agent", "CPU", cost, "≤", 1.35);
    times(lane, power, "agent", "requests a second", speed, "≥", 0.75);
    times(lane, relaxed, "agent", "CPU", cost, "≤", 1.2);
    times(lane, relaxed, "agent", "requests a second", speed, "≥", 0.85);
    for (const peer of ["portkey", "litellm"])
      times(lane, power, peer, "requests a second", speed, "≥", 6);
  }
  added("rate-500", power, "agent", "added p50; 250 µs and two fsyncs", p50, 250 + 2 * fsyncUs);
  added("rate-500", "tollgate process", "agent", "added p50", p50, 250);
  times("rate-500", "tollgate process", "portkey", "p50", p50, "≤", 1);
  added("sse-first", power, "agent", "added p50; 250 µs and one fsync", first50, 250 + fsyncUs);
  times("json-16k", power, "dispatch", "CPU", cost, "≤", 2.2);
  times("json-200k", power, "dispatch", "CPU", cost, "≤", 2);
  times("json-2m", power, "dispatch", "CPU", cost, "≤", 2.5);
  for (const lane of ["sse-full", "sse-messages", "sse-responses"])
    times(lane, power, "agent", "events a second", speed, "≥", 0.85);
  for (const streams of [50, 500, 1000]) {
    added(`sse-${streams}`, power, "direct", "added p50 an event", event50, 300);
    times(`sse-${streams}`, power, "agent", "p99 an event", event99, "≤", 1.5);
  }
  if (streamKb !== undefined) aim("streams", "memory a stream", streamKb, "≤", 80, "KB");
  times("to-messages", "to messages", "passthrough", "CPU", cost, "≤", 1.3);
  times("to-messages-sse", "to messages", "passthrough", "CPU", cost, "≤", 1.5);
  times("workers", "workers: 2", "workers: 1", "CPU", cost, "≤", 1.25);
  times("workers", "workers: 2", "workers: 1", "requests a second", speed, "≥", 1);
  for (const lane of ["metrics", "metrics-sse"])
    times(lane, "metrics", "no observer", "CPU", cost, "≤", 1.03);
  for (const lane of ["everything", "everything-sse"]) {
    times(lane, "everything", "no observer", "CPU", cost, "≤", 1.12);
    times(lane, "metrics", "no observer", "CPU", cost, "≤", 1.03);
  }
  for (const lane of ["scopes", "scopes-sse"])
    times(lane, THREE_SCOPES, NO_SCOPE, "CPU", cost, "≤", 1.05);
  for (const name of ["mcp", "mcp-session"])
    for (const [lane, load] of [
      [name, "200 calls a second"],
      [`${name}-1`, "one client, back to back"],
    ] as const) {
      added(lane, "tollgate process", "direct", `added p50 of a tool's call, ${load}`, p50, 1_000);
      const what = `added p50, ${load}; 1 ms and two fsyncs`;
      added(lane, power, "direct", what, p50, 1_000 + 2 * fsyncUs);
    }
  const beside = (lane: string, mine: string, what: string, figure: Figure, bound: number) => {
    const [a, b] = [at(results, lane, mine), at(results, lane, NO_HOOK)];
    if (a && b) aim(lane, `${mine}: ${what}`, excess(a, b, figure), "≤", bound, "µs");
  };
  beside("child", "inspect in a child", "CPU a request, of both processes", cost, 30);
  beside("child-500", "inspect in a child", "added p50", p50, 30);
  beside("watch", "watch", "CPU an event", cost, 2);
  beside("watch", "watch elsewhere", "CPU an event", cost, 0.1);
  if (young)
    aim("young", "CPU of requests 5,000 to 10,000 against settled", median(young), "≤", 1.3);
  for (const { what, small, large } of grown)
    aim("growth", `${what}: CPU`, ratio(large, small, cost), "≤", 1.05);
  if (start) {
    const { from, firstAnswerMs, idleBytes } = start;
    aim("start", `start to first answer, from ${from}`, median(firstAnswerMs), "≤", 250, "ms");
    aim("start", "idle memory after one answer", median(idleBytes) / 2 ** 20, "≤", 95, "MB");
  }
  return rows;
}

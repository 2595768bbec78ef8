// The results as Markdown: each goal with its result, and all measurements.
import { at, cost, speed, type Aim } from "./aims.ts";
import { middle, ratio, type Result } from "./rounds.ts";
import type { Found } from "./steps.ts";

const show = (value: number, digits = 0) => (Number.isFinite(value) ? value.toFixed(digits) : "");
const cells = (of: readonly string[]) => `| ${of.join(" | ")} |\n`;
const rule = (of: readonly string[], words: number) =>
  cells(of) + cells(of.map((_, i) => (i < words ? "---" : "--:")));

export function aimTable(aims: readonly Aim[]): string {
  if (aims.length === 0) return "";
  let text = rule(["lane", "what", "target", "measured", ""], 2);
  for (const { lane, what, way, bound, reached, unit, met } of aims) {
    const amount = (n: number) => (unit === "×" ? `${show(n, 2)} ×` : `${show(n)} ${unit}`);
    const off = Math.round(Math.abs(reached / bound - 1) * 100);
    text += cells([
      lane,
      what,
      `${way} ${amount(bound)}`,
      amount(reached),
      met ? "met" : `missed by ${off} %`,
    ]);
  }
  return text;
}

/** What each target checks of a request and records of it: unlike work has unlike cost. */
export function workTable(described: Found["described"]): string {
  if (described.size === 0) return "";
  let text = rule(["who", "checks", "records"], 3);
  for (const [name, { checks = "nothing", records = "nothing" }] of described)
    text += cells([name, checks, records]);
  return text;
}

export function table(results: readonly Result[]): string {
  if (results.length === 0) return "";
  let text = rule(
    [
      "lane",
      "who",
      "CPU µs",
      "its database µs",
      "× agent",
      "× dispatch",
      "per s",
      "× agent",
      "p50 µs",
      "p99 µs",
      "first µs",
      "event p50",
      "event p99",
      "driver + mock",
      "errors",
    ],
    2,
  );
  for (const result of results) {
    const { lane, target, samples } = result;
    const [agent, dispatch] = [at(results, lane.name, "agent"), at(results, lane.name, "dispatch")];
    const streaming = (figure: number) => (lane.stream ? show(figure) : "");
    const errors = samples.reduce((sum, s) => sum + s.errors, 0);
    text += cells([
      lane.name,
      target,
      show(middle(result, cost), 1),
      target.endsWith("postgres")
        ? show(
            middle(result, (s) => s.database),
            1,
          )
        : "",
      agent ? show(ratio(result, agent, cost), 2) : "",
      dispatch ? show(ratio(result, dispatch, cost), 2) : "",
      show(middle(result, speed)),
      agent ? show(ratio(result, agent, speed), 2) : "",
      show(middle(result, (s) => s.p50)),
      show(middle(result, (s) => s.p99)),
      streaming(middle(result, (s) => s.first50)),
      streaming(middle(result, (s) => s.event50)),
      streaming(middle(result, (s) => s.event99)),
      `${show(middle(result, (s) => s.side) * 100)} %`,
      errors > 0 ? String(errors) : "",
    ]);
  }
  return `${text}
CPU is that of all threads and processes, per request, of streams per event. "driver + mock" is what they took of their
core: near 100 %, it was they who were slow, and speeds there are not the server's.
`;
}

// One picture of the CPU ratios, for people who do not read tables.
import { middle, type Result } from "./rounds.ts";

const COLOURS = ["#8a9ba8", "#5c7080", "#0f9960", "#2b95d6", "#d9822b", "#c23030", "#7157d9"];
const escape = (text: string) => text.replace(/[<&>]/g, (c) => `&#${c.codePointAt(0)};`);

/** Bars: CPU per request or event, as multiples of the bare proxy's (agent). */
export function plot(results: readonly Result[]): string {
  const lanes = [...new Set(results.map((r) => r.lane.name))];
  const names = [...new Set(results.map((r) => r.target))].filter((n) => n !== "direct");
  const rows: string[] = [];
  let y = 40;
  const width = 640;
  const left = 150;
  const most = 6;
  for (const lane of lanes) {
    const here = results.filter((r) => r.lane.name === lane && r.target !== "direct");
    const base = here.find((r) => r.target === "agent");
    if (!base) continue;
    const one = middle(base, (s) => s.cpu);
    rows.push(
      `<text x="${left - 8}" y="${y + 6 * here.length}" text-anchor="end" font-weight="bold">${escape(lane)}</text>`,
    );
    for (const result of here) {
      const times = middle(result, (s) => s.cpu) / one;
      const bar = (Math.min(times, most) / most) * (width - left - 60);
      rows.push(
        `<rect x="${left}" y="${y}" width="${bar.toFixed(1)}" height="10" fill="${COLOURS[names.indexOf(result.target) % COLOURS.length]}"/>`,
        `<text x="${(left + bar + 4).toFixed(1)}" y="${y + 9}">${times.toFixed(2)}×</text>`,
      );
      y += 12;
    }
    y += 10;
  }
  const legend = names.map(
    (name, i) =>
      `<rect x="${10 + i * 105}" y="12" width="10" height="10" fill="${COLOURS[i % COLOURS.length]}"/><text x="${24 + i * 105}" y="21">${escape(name)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.max(width, names.length * 105 + 20)}" height="${y}" font-family="sans-serif" font-size="10"><title>CPU per request or event, in multiples of a bare node:http proxy</title>${legend.join("")}${rows.join("")}</svg>\n`;
}

// A chart of the CPU ratios, for readers who prefer pictures to tables. Its background is light or
// dark by the reader's preference, so it is legible on any page.
import { at, cost } from "./aims.ts";
import { middle, ratio, type Result } from "./rounds.ts";

const LANES: Readonly<Record<string, string>> = {
  "json-1k": "JSON, 1 KB",
  "json-16k": "JSON, 16 KB",
  "json-200k": "JSON, 200 KB",
  "json-2m": "JSON, 2 MB",
  "sse-full": "Streams, full speed",
  "sse-messages": "Streams, messages",
  "sse-responses": "Streams, responses",
  "sse-50": "50 streams, paced",
  "sse-1000": "1,000 streams, paced",
};

/** By name. All others are peers. */
const WHO: Readonly<Record<string, readonly [name: string, colour: string]>> = {
  agent: ["bare proxy, node:http", "bare"],
  dispatch: ["bare proxy, undici", "thin"],
  "tollgate power": ["Tollgate", "ours"],
  portkey: ["Portkey", "peer"],
  litellm: ["LiteLLM", "other"],
  net: ["bare sockets", "least"],
};
const [WIDTH, LEFT, RIGHT, TOP] = [760, 184, 118, 86];
const [BAR, STEP, GAP] = [13, 17, 18];

const escape = (text: string) => text.replace(/[<&>]/g, (c) => `&#${c.codePointAt(0)};`);
const whoIs = (target: string) => WHO[target] ?? [target, "peer"];
const micro = (us: number) => (us < 10 ? us.toFixed(1) : Math.round(us).toLocaleString("en"));

const STYLE = `
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 12px; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .lane { font-weight: 600 } .soft { fill: #59636e }
.told { paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round }
.ground { fill: #fff; stroke: #d1d9e0 } .one { stroke: #59636e; stroke-dasharray: 2 3 }
.bare { fill: #8c959f } .thin { fill: #c1c7cd } .ours { fill: #0a7d4f } .peer { fill: #d4682a } .other { fill: #b23a6b } .least { fill: #dfe3e7 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .told { stroke: #0d1117 } .soft { fill: #9198a1 } .ground { fill: #0d1117; stroke: #3d444d } .one { stroke: #9198a1 }
  .bare { fill: #768390 } .thin { fill: #4b535d } .ours { fill: #2fbf7f } .peer { fill: #f0883e } .other { fill: #e06c9f } .least { fill: #353c44 }
}`;

interface Bar {
  readonly target: string;
  readonly times: number;
  readonly us: number;
}

/** CPU per request or event, as multiples of the bare proxy (agent). */
export function plot(results: readonly Result[]): string {
  const lanes = Object.keys(LANES).flatMap((name) => {
    const base = at(results, name, "agent");
    if (!base) return [];
    const bars = results
      .filter(({ lane, target }) => lane.name === name && !isLeftOut(target))
      .map((r): Bar => ({ target: r.target, times: ratio(r, base, cost), us: middle(r, cost) }));
    return [{ name, per: base.lane.per, bars }];
  });
  const most = Math.max(2, ...lanes.flatMap(({ bars }) => bars.map(({ times }) => times)));
  const across = (times: number) => (times / most) * (WIDTH - LEFT - RIGHT);
  const parts: string[] = [];
  let y = TOP;
  for (const { name, per, bars } of lanes) {
    const middleY = y + (bars.length * STEP) / 2;
    parts.push(
      `<text class="lane" x="${LEFT - 14}" y="${middleY - 1}" text-anchor="end">${escape(LANES[name]!)}</text>`,
      `<text class="soft" x="${LEFT - 14}" y="${middleY + 14}" text-anchor="end">per ${per}</text>`,
    );
    for (const { target, times, us } of bars) {
      const width = across(times).toFixed(1);
      parts.push(
        `<rect class="${whoIs(target)[1]}" x="${LEFT}" y="${y}" width="${width}" height="${BAR}" rx="2"/>`,
        `<text class="told" x="${(LEFT + across(times) + 6).toFixed(1)}" y="${y + 11}">${times.toFixed(2)} × <tspan class="soft">${micro(us)} µs</tspan></text>`,
      );
      y += STEP;
    }
    y += GAP;
  }
  const line = (LEFT + across(1)).toFixed(1);
  let x = 24;
  const legend = [...new Set(lanes.flatMap(({ bars }) => bars.map(({ target }) => target)))].map(
    (target) => {
      const [name, colour] = whoIs(target);
      const entry = `<rect class="${colour}" x="${x}" y="49" width="12" height="12" rx="2"/><text x="${x + 18}" y="59">${escape(name)}</text>`;
      x += 42 + name.length * 6.6;
      return entry;
    },
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img">
<title>CPU per request or event, against a bare proxy that does nothing</title>
<style>${STYLE}</style>
<rect class="ground" x=".5" y=".5" width="${WIDTH - 1}" height="${y - 1}" rx="8"/>
<text class="title" x="24" y="32">CPU per request or event, against a bare proxy</text>
${legend.join("\n")}
<path class="one" d="M${line} ${TOP - 8}V${y - GAP + 6}"/>
${parts.join("\n")}
</svg>
`;
}

/**
 * The mock has no proxy. The durability of the ledger makes a difference in the first lane only,
 * which is in the table.
 */
const isLeftOut = (target: string) =>
  target === "direct" || target === "tollgate process" || target === "tollgate relaxed";

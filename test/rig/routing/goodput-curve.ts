// The goodput curve as SVG: the share of successful requests by the share of failing calls.

export interface Point {
  /** The share of failing calls. */
  readonly p: number;
  readonly direct: number;
  readonly through: number;
}

const [WIDTH, HEIGHT] = [640, 360];
const LEFT = 60;
const TOP = 20;
const [W, H] = [420, 280];

const x = (p: number): string => (LEFT + W * p).toFixed(1);
const y = (share: number): string => (TOP + H * (1 - share)).toFixed(1);

/** `before`: the same for an earlier version. */
export function curve(now: readonly Point[], before: readonly Point[] | undefined): string {
  const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const lines = [
    { name: "called directly", color: "#6b7280", dash: "6 4", of: now.map((one) => one.direct) },
    ...(before
      ? [
          {
            name: "Tollgate before",
            color: "#dc2626",
            dash: "",
            of: before.map((one) => one.through),
          },
        ]
      : []),
    { name: "Tollgate now", color: "#2563eb", dash: "", of: now.map((one) => one.through) },
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="Share of requests that succeed, by share of provider calls that fail">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    ...ticks.flatMap((tick) => [
      `<line x1="${LEFT}" y1="${y(tick)}" x2="${LEFT + W}" y2="${y(tick)}" stroke="#e5e7eb"/>`,
      `<text x="${LEFT - 8}" y="${y(tick)}" text-anchor="end" dominant-baseline="middle" fill="#374151">${tick * 100}%</text>`,
      `<text x="${x(tick)}" y="${TOP + H + 18}" text-anchor="middle" fill="#374151">${tick * 100}%</text>`,
    ]),
    `<text x="${LEFT + W / 2}" y="${TOP + H + 40}" text-anchor="middle" fill="#111827">Share of provider calls that fail</text>`,
    `<text x="16" y="${TOP + H / 2}" text-anchor="middle" fill="#111827" transform="rotate(-90 16 ${TOP + H / 2})">Share of requests that succeed</text>`,
    ...lines.flatMap(({ name, color, dash, of }, i) => {
      const at = of.map((share, n) => `${x(now[n]!.p)},${y(share)}`).join(" ");
      const style = `fill="none" stroke="${color}" stroke-width="2"${dash && ` stroke-dasharray="${dash}"`}`;
      const label = TOP + 10 + 20 * i;
      return [
        `<polyline points="${at}" ${style}/>`,
        `<line x1="${LEFT + W + 15}" y1="${label}" x2="${LEFT + W + 40}" y2="${label}" ${style}/>`,
        `<text x="${LEFT + W + 46}" y="${label}" dominant-baseline="middle" fill="#111827">${name}</text>`,
      ];
    }),
    "</svg>\n",
  ].join("\n");
}

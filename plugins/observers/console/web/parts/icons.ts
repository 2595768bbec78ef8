// Icons in one style: lines of equal width on a 16×16 grid.
import { html } from "htm/preact";

const PATHS = {
  overview: "M2 9.5 5.5 6l3 3L14 3.5M10.5 3.5H14V7M2 13.5h12",
  usage: "M3 13V8.5M7 13V5M11 13V7M14.5 13.5h-13M13.5 3l-1.5 1",
  requests: "M2.5 4h11M2.5 8h7M2.5 12h9",
  microphone:
    "M8 2a2 2 0 0 1 2 2v3.500a2 2 0 0 1-4 0V4a2 2 0 0 1 2-2zM3.500 7.500a4.500 4.500 0 0 0 9 0M8 12v2",
  sockets: "M2.5 5.500h9.500M9.500 3l2.500 2.500L9.500 8M13.5 10.500H4M6.500 8 4 10.500 6.500 13",
  jobs: "M2.5 3.500h11v3h-11zM2.5 9.500h11v3h-11zM2.5 5h6M2.5 11h9",
  playground: "M3 3.5h10v7H8L5 13v-2.5H3zM6 7h4",
  keys: "M6.5 9.5a3 3 0 1 1 1.8-5.4 3 3 0 0 1-.3 5.1zM8.3 8.3l5 5M11.5 11.5 13 10",
  accounts: "M8 2.5v3M4 10.5v-2h8v2M8 5.5v3M2.5 10.5h3v3h-3zM10.5 10.5h3v3h-3zM6.5 2.5h3v3h-3z",
  models: "M8 2 13.5 5v6L8 14l-5.500-3V5zM2.500 5 8 8l5.500-3M8 8v6",
  providers: "M3 3.500h10v3.500H3zM3 9h10v3.500H3zM5 5.200h.1M5 10.700h.1",
  tools: "M9.500 5.500a3 3 0 0 1 4-3l-2 2 .5 1.500 1.500.5 2-2a3 3 0 0 1-4 3.500l-6 6-2-2z",
  routing: "M3 4h3c3 0 3 8 6 8h1.500M11.500 10 13.500 12l-2 2M3 12h2M11.500 2l2 2-2 2M10 4h3.500",
  config: "M3 4.500h6M12 4.500h1M3 11.500h1M7 11.500h6M9 3h3v3H9zM4 10h3v3H4z",
  fleet: "M2.5 3h4v4h-4zM9.5 3h4v4h-4zM6 10h4v3.5H6zM4.5 7v1.5h7V7M8 8.5V10",
  ledger: "M3.500 2.500h9v11h-9zM6 2.500v11M8.500 5.500h2M8.500 8h2",
  audit: "M8 2 13 4v4c0 3-2.200 5-5 6-2.800-1-5-3-5-6V4zM6 8l1.500 1.500L10.200 6.500",
  menu: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  filter: "M2 3.500h12L9.500 8.500V13l-3-1.500v-3z",
  check: "M3 8.500 6.500 12 13 4.500",
  warning: "M8 2.500 14.500 13.500h-13zM8 6.500v3M8 11.500h.1",
  search: "M7 11.500a4.500 4.500 0 1 1 0-9 4.500 4.500 0 0 1 0 9zM10.300 10.300 14 14",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z",
  out: "M9.500 3H3v10h6.500M7 8h7M11.500 5.500 14 8l-2.500 2.500",
  down: "M8 2.500v8M4.500 7 8 10.500 11.500 7M3 13.500h10",
  play: "M5 3.500v9l7-4.500z",
  stop: "M4.500 4.500h7v7h-7z",
  gate: "M2.500 13.500V5L8 2l5.500 3v8.500M5.500 13.500V8h5v5.500M5.500 10.700h5",
  image: "M2.500 3.500h11v9h-11zM2.500 11l3.500-3.500 3 3 1.500-1.500 3 3M10.500 6.200h.1",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon next to text. It is hidden from screen readers. */
export const icon = (name: IconName) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} />
  </svg>`;

import { callControl } from "../../../admin/socket/control-client.ts";
import type { RecentStats } from "../../../admin/commands/request-commands.ts";
import type { StatsRow } from "../../../runtime/requests/request-stats.ts";
import { plural } from "../../../lib/text.ts";
import { formatDuration as formatSpan } from "../../../lib/time/units.ts";
import { formatUsd } from "../../../money/decimal.ts";
import { type CliCommand, EXIT_CODES } from "../../support/command.ts";
import { describeCommand } from "../../support/gateway-command.ts";
import { startLongRunning } from "../../support/ledger-tail.ts";
import { findStateDir } from "../../support/load-config.ts";
import { parseDurationText } from "../../format/option-times.ts";
import { formatDuration } from "../../format/request-line.ts";
import {
  sanitize,
  alignColumns,
  formatTime,
  paint,
  print,
  truncateLine,
} from "../../format/terminal.ts";

const MIN_INTERVAL_MS = 200;
const HOUR_MS = 3_600_000;

export const command: CliCommand = {
  ...describeCommand("requests.stats", {
    omit: ["windowMs"],
    options: {
      window: {
        placeholder: "time",
        description: "Time window of the counts, up to 1h (default: 1m)",
      },
      interval: { placeholder: "time", description: "Refresh interval (default: 2s)" },
      once: { description: "Show one view and exit" },
    },
  }),
  async run(given) {
    const folder = await findStateDir(given);
    const windowMs = parseDurationText(given.getText("window") ?? "1m", "window", {
      min: 5_000,
      max: HOUR_MS,
    });
    const everyMs = parseDurationText(given.getText("interval") ?? "2s", "interval", {
      min: MIN_INTERVAL_MS,
      max: HOUR_MS,
    });
    const once = given.has("once");
    using live = startLongRunning();
    using screen =
      process.stdout.isTTY && !given.json && !once ? new Screen(process.stdout) : undefined;
    do {
      const answer = await callControl(folder, "requests.stats", { windowMs });
      const now = answer as unknown as RecentStats;
      if (given.json) print(JSON.stringify(now));
      else if (screen) screen.draw(renderView(now).split("\n"));
      else print(once ? renderView(now) : `${renderView(now)}\n`);
      await live.waitForDrain();
      if (!once) await live.sleep(everyMs);
    } while (!once && !live.signal.aborted);
    return EXIT_CODES.ok;
  },
};

const ROWS = 10;
const TITLES = [
  "requests",
  "/min",
  "errors",
  "first token p50",
  "p95",
  "total p50",
  "p95",
  "in",
  "out",
  "spend",
];

function renderView(now: RecentStats): string {
  const { total, windowMs, inFlight, webSockets, cooldowns, ledger } = now;
  const minutes = windowMs / 60_000;
  const spend = BigInt(total?.costNano ?? 0);
  const head = [
    paint("bold", formatTime(now.at)),
    `last ${formatSpan(windowMs)}`,
    `${inFlight} in flight`,
    ...(webSockets > 0 ? [plural(webSockets, "WebSocket")] : []),
    ledger.ok ? "ledger available" : paint("red", "ledger unavailable"),
    `${formatUsd(spend)}, ${formatUsd(perMinute(spend, minutes))}/min`,
  ].join("   ");
  const rows = (of: readonly StatsRow[], name: (row: StatsRow) => string) =>
    of.slice(0, ROWS).map((row) => [name(row), ...rowCells(row, minutes)]);
  const block = (title: string, of: readonly StatsRow[], name: (row: StatsRow) => string) =>
    of.length === 0
      ? []
      : [
          "",
          alignColumns([[title, ...TITLES].map((each) => paint("gray", each)), ...rows(of, name)]),
        ];
  return [
    head,
    ...block("", total ? [total] : [], () => "all"),
    ...block("calls by model", now.models, ({ name }) => sanitize(name)),
    ...block("key", now.keys, (row) =>
      sanitize((row as (typeof now.keys)[number]).keyName ?? row.name),
    ),
    ...block("frontend", now.frontends, ({ name }) => sanitize(name)),
    ...(total ? [] : ["", "No requests finished in this window."]),
    ...cooldowns
      .slice(0, ROWS)
      .map(
        ({ provider, credential, model, until }) =>
          `${paint("yellow", "in cooldown")}  ${sanitize(provider)} ${credential}${model ? ` ${sanitize(model)}` : ""}, until ${formatTime(until)}`,
      ),
  ].join("\n");
}

/** Returns the amount per minute, rounded to a whole nano-dollar. */
const perMinute = (nano: bigint, minutes: number): bigint =>
  BigInt(Math.round(Number(nano) / minutes));

function rowCells(row: StatsRow, minutes: number): string[] {
  const { requests, failed, refused, canceled, ms, firstTokenMs } = row;
  const errors = [
    failed > 0 && paint("red", `${failed} failed`),
    refused > 0 && paint("yellow", `${refused} rejected`),
    canceled > 0 && `${canceled} canceled`,
  ].filter(Boolean);
  return [
    requests.toLocaleString("en"),
    (requests / minutes).toFixed(1),
    errors.join(" ") || "-",
    firstTokenMs ? formatDuration(firstTokenMs.p50) : "-",
    firstTokenMs ? formatDuration(firstTokenMs.p95) : "-",
    ms ? formatDuration(ms.p50) : "-",
    ms ? formatDuration(ms.p95) : "-",
    row.input.toLocaleString("en"),
    row.output.toLocaleString("en"),
    row.unpriced > 0 && row.costNano.toString() === "0"
      ? "no known price"
      : formatUsd(BigInt(row.costNano)),
  ];
}

// Redraws a terminal in place: it uses the alternate screen without a cursor, and one write per
// frame that overwrites the previous frame, so that the screen does not flicker. The terminal is
// restored when the program ends for any reason.

const ENTER_ALTERNATE = "\u001b[?1049h\u001b[?25l";
const LEAVE_ALTERNATE = "\u001b[?25h\u001b[?1049l";
const BEGIN_FRAME = "\u001b[?2026h\u001b[H";
const LINE_END = "\u001b[K";
const END_FRAME = "\u001b[J\u001b[?2026l";

interface Terminal {
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

export class Screen implements Disposable {
  readonly #terminal: Terminal;
  readonly #leave = () => void this.#terminal.write(LEAVE_ALTERNATE);

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.write(ENTER_ALTERNATE);
    process.once("exit", this.#leave);
  }

  /** Draws a frame. Lines and characters that do not fit are omitted. */
  draw(lines: readonly string[]): void {
    const { columns = 80, rows = 24 } = this.#terminal;
    const picture = lines
      .slice(0, rows)
      .map((line) => truncateLine(line, columns) + LINE_END)
      .join("\r\n");
    this.#terminal.write(`${BEGIN_FRAME}${picture}${END_FRAME}`);
  }

  [Symbol.dispose](): void {
    process.off("exit", this.#leave);
    this.#leave();
  }
}

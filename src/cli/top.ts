import { askControl } from "../gateway/control/asking.ts";
import type { RecentStats } from "../gateway/control/request-commands.ts";
import type { StatsRow } from "../gateway/requests/stats.ts";
import { parseDuration, sayDuration } from "../lib/duration.ts";
import { fail } from "../model/error.ts";
import { formatUsd } from "../money/format.ts";
import { type CliCommand, type CliInput, EXIT, PLACE } from "./command.ts";
import { following } from "./following.ts";
import { stateDirOf } from "./loading.ts";
import { span } from "./request-words.ts";
import { Screen } from "./screen.ts";
import { clean, columns, moment, paint, say } from "./terminal.ts";

const LEAST_MS = 200;

export const command: CliCommand = {
  usage: "top [options]",
  about:
    "Shows what goes on, again and again until Ctrl-C: spend, requests, first content, errors, what is in flight and what rests, " +
    "by model and by key. On a terminal it is drawn in place; in a pipe one view follows the other, and with --json each is a " +
    "line of JSON.",
  options: {
    ...PLACE,
    window: { value: "time", about: "what is counted: the last 1m by default, 1h at most" },
    every: { value: "time", about: "how often it is looked at; 2s by default" },
    once: { about: "show it once, and end" },
  },
  examples: ["tollgate top", "tollgate top --window 10m", "tollgate top --every 10s --json"],
  async run(given) {
    const folder = await stateDirOf(given);
    const windowMs = timeOf(given, "window", 60_000, 5_000, 3_600_000);
    const everyMs = timeOf(given, "every", 2_000, LEAST_MS, 3_600_000);
    const once = given.has("once");
    using live = following();
    using screen =
      process.stdout.isTTY && !given.json && !once ? new Screen(process.stdout) : undefined;
    do {
      const answer = await askControl(folder, "stats.recent", { windowMs });
      const now = answer as unknown as RecentStats;
      if (given.json) say(JSON.stringify(now));
      else if (screen) screen.draw(view(now).split("\n"));
      else say(once ? view(now) : `${view(now)}\n`);
      await live.drained();
      if (!once) await live.pause(everyMs);
    } while (!once && !live.signal.aborted);
    return EXIT.fine;
  },
};

function timeOf(given: CliInput, name: string, usual: number, least: number, most: number): number {
  const text = given.text(name);
  if (text === undefined) return usual;
  const ms = parseDuration(text);
  return ms !== undefined && ms >= least && ms <= most
    ? ms
    : fail(
        "invalid",
        `--${name} is a time from ${sayDuration(least)} to ${sayDuration(most)}, not "${text}".`,
        { code: "usage" },
      );
}

const ROWS = 10;
const TITLES = [
  "requests",
  "/min",
  "errors",
  "first p50",
  "p95",
  "all p50",
  "p95",
  "in",
  "out",
  "spend",
];

function view(now: RecentStats): string {
  const { all, windowMs, inFlight, resting, ledger } = now;
  const minutes = windowMs / 60_000;
  const spend = BigInt(all?.costNano ?? 0);
  const head = [
    paint("bold", moment(now.at)),
    `last ${sayDuration(windowMs)}`,
    `${inFlight} in flight`,
    ledger.ok ? "ledger takes rows" : paint("red", "ledger takes no rows"),
    `${formatUsd(spend)}, ${formatUsd(rounded(spend, minutes))}/min`,
  ].join("   ");
  const rows = (of: readonly StatsRow[], name: (row: StatsRow) => string) =>
    of.slice(0, ROWS).map((row) => [name(row), ...cells(row, minutes)]);
  const block = (title: string, of: readonly StatsRow[], name: (row: StatsRow) => string) =>
    of.length === 0
      ? []
      : ["", columns([[title, ...TITLES].map((each) => paint("gray", each)), ...rows(of, name)])];
  return [
    head,
    ...block("", all ? [all] : [], () => "all"),
    ...block("calls by model", now.models, ({ name }) => clean(name)),
    ...block("key", now.keys, (row) =>
      clean((row as (typeof now.keys)[number]).keyName ?? row.name),
    ),
    ...block("frontend", now.frontends, ({ name }) => clean(name)),
    ...(all ? [] : ["", "No request was over in that time."]),
    ...resting
      .slice(0, ROWS)
      .map(
        ({ provider, credential, model, until }) =>
          `${paint("yellow", "cooling down")}  ${clean(provider)} ${credential}${model ? ` ${clean(model)}` : ""}, until ${moment(until)}`,
      ),
  ].join("\n");
}

/** To a whole nano-dollar. */
const rounded = (nano: bigint, minutes: number): bigint =>
  BigInt(Math.round(Number(nano) / minutes));

function cells(row: StatsRow, minutes: number): string[] {
  const { requests, failed, refused, canceled, ms, firstContentMs } = row;
  const errors = [
    failed > 0 && paint("red", `${failed} failed`),
    refused > 0 && paint("yellow", `${refused} refused`),
    canceled > 0 && `${canceled} canceled`,
  ].filter(Boolean);
  return [
    requests.toLocaleString("en"),
    (requests / minutes).toFixed(1),
    errors.join(" ") || "-",
    firstContentMs ? span(firstContentMs.p50) : "-",
    firstContentMs ? span(firstContentMs.p95) : "-",
    ms ? span(ms.p50) : "-",
    ms ? span(ms.p95) : "-",
    row.input.toLocaleString("en"),
    row.output.toLocaleString("en"),
    row.unpriced > 0 && row.costNano.toString() === "0"
      ? "no known price"
      : formatUsd(BigInt(row.costNano)),
  ];
}

import { callControl } from "../../../admin/socket/control-client.ts";
import type { Fleet, FleetNode } from "../../../runtime/services/fleet.ts";
import {
  type CliCommand,
  CONFIG_OPTIONS,
  EXIT_CODES,
  STATE_OPTIONS,
} from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { alignColumns, formatTime, paint, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "fleet [options]",
  description:
    "Lists the gateways that share the running gateway's store, which is marked with " +
    "a star. Shows the version of each, the difference of its clock from the store's " +
    "clock, and how long it has missed key changes. Exits with 1 if no gateway is " +
    "running.",
  options: { ...CONFIG_OPTIONS, ...STATE_OPTIONS },
  examples: ["tollgate fleet", "tollgate fleet --json"],
  async run(given) {
    const answer = await callControl(await findStateDir(given), "fleet");
    const fleet = answer as unknown as Fleet;
    if (given.json) printJson(fleet);
    else print(formatFleet(fleet));
    return EXIT_CODES.ok;
  },
};

const HEADER = [
  "node",
  "state",
  "version",
  "config",
  "workers",
  "clock",
  "keys",
  "open",
  "heartbeat",
  "where",
];

function formatFleet({ nodes, commandPrograms, warnings }: Fleet): string {
  const table = alignColumns([HEADER.map((name) => paint("gray", name)), ...nodes.map(nodeRow)]);
  const said = warnings.map((remark) => paint("yellow", remark));
  const open = commandPrograms.map(({ info }) => `pid ${info?.pid} on ${info?.host}`);
  if (open.length > 0) said.unshift(`commands that have the store open: ${open.join(", ")}`);
  return [table, ...(said.length > 0 ? ["", ...said] : [])].join("\n");
}

function nodeRow({
  instance,
  isSelf,
  state,
  info,
  clockAheadMs,
  syncLagMs,
  openCalls,
  lastHeartbeatAt,
}: FleetNode): string[] {
  const { version = "?", config = "", generation, url, pid, host, workers } = info ?? {};
  return [
    `${instance.slice(0, 8)}${isSelf ? " *" : ""}`,
    paint(state === "live" ? "green" : "yellow", state),
    version,
    config === "" ? "?" : `${config.slice(0, 8)}, generation ${generation}`,
    orUnknown(workers, String),
    orUnknown(clockAheadMs, (ms) => `${ms > 0 ? "+" : ""}${ms} ms`),
    orUnknown(syncLagMs, (ms) => (ms === 0 ? "in sync" : `${ms} ms late`)),
    orUnknown(openCalls, String),
    formatTime(lastHeartbeatAt),
    [url, pid === undefined ? undefined : `pid ${pid} on ${host}`].filter(Boolean).join(", "),
  ];
}

const orUnknown = (value: number | undefined, said: (value: number) => string): string =>
  value === undefined ? "?" : said(value);

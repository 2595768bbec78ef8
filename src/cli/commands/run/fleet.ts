import type { Fleet, FleetNode } from "../../../runtime/services/fleet.ts";
import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { alignColumns, formatTime, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<Fleet>("fleet", {
  print: (answer) => print(formatFleet(answer)),
});

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
  const remarks = warnings.map((remark) => paint("yellow", remark));
  const open = commandPrograms.map(({ info }) => `pid ${info?.pid} on ${info?.host}`);
  if (open.length > 0) remarks.unshift(`commands that have the store open: ${open.join(", ")}`);
  return [table, ...(remarks.length > 0 ? ["", ...remarks] : [])].join("\n");
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

const orUnknown = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? "?" : format(value);

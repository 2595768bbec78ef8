import type { GatewayStats } from "../../../plugin/gateway-stats.ts";
import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { formatCooldown } from "../../format/cooldown-output.ts";
import { alignColumns, formatTime, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<GatewayStats>("stats", {
  print: (answer) => print(formatStats(answer)),
});

function formatStats(of: GatewayStats): string {
  const { processes, ledger, loopDelayMs: late, memory } = of;
  const rows = [
    ["processes", `${processes.responded} of ${processes.expected} responded`],
    ["in flight", [of.inFlight, ...busyFrontends(of)].join(", ")],
    ...Object.entries(of.webSocketsByFrontend).map(([frontend, count]) => [
      "WebSockets",
      `${frontend} ${count}`,
    ]),
    [
      "ledger",
      `${ledger.ok ? "available" : paint("red", "unavailable")}, ${ledger.queue} commands queued`,
    ],
    ["commits", formatCommits(ledger.commits)],
    ...(ledger.size?.bytes === undefined
      ? []
      : [["ledger size", formatMegabytes(ledger.size.bytes)]]),
    ["loop delay", `${late.mean} ms, p99 ${late.p99} ms, max ${late.max} ms`],
    ["memory", `${formatMegabytes(memory.rss)}, heap ${formatMegabytes(memory.heapUsed)}`],
    ...of.pools.map(({ origin, running, free, queued }) => [
      origin,
      `${running} running, ${free} free, ${queued} queued`,
    ]),
    ...of.cooldowns.map(({ provider, credential, model, ...rest }) => [
      "cooldown",
      `${provider} ${credential}${model ? ` ${model}` : ""}: ${formatCooldown(rest)}`,
    ]),
    ...of.unreachable.map(({ plugin, since, requests, processes }) => [
      "unreachable",
      `${plugin} since ${formatTime(since)}, in ${processes} process${processes === 1 ? "" : "es"}; requests are ${requests}`,
    ]),
    ...Object.entries(of.rejections).map(([code, count]) => ["rejected", `${code}: ${count}`]),
    ...Object.entries(of.droppedRecords).map(([observer, count]) => [
      observer,
      `${count} records dropped`,
    ]),
  ];
  return alignColumns(rows.map(([name, value]) => [paint("gray", name!), value!]));
}

const busyFrontends = ({ inFlightByFrontend }: GatewayStats): readonly string[] =>
  Object.entries(inFlightByFrontend).flatMap(([name, count]) =>
    count > 0 ? [`${name} ${count}`] : [],
  );

const formatMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const formatCommits = ({ count, sumMs }: GatewayStats["ledger"]["commits"]): string =>
  count === 0 ? "none" : `${count}, ${(sumMs / count).toFixed(1)} ms on average`;

import type { LiveSockets } from "../../../admin/commands/socket-commands.ts";
import { formatDuration } from "../../../lib/time/units.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { alignColumns, formatBytes, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = createCommandGroup(
  "sockets",
  "Lists and closes open WebSockets and calls. The default command is list.",
  {
    list: gatewayCommand<LiveSockets>("sockets.list", {
      print: (answer) => print(formatSockets(answer)),
    }),
    close: gatewayCommand<{ readonly closed: string }>("sockets.close", {
      print: ({ closed }) => print(`Closed ${closed}.`),
    }),
  },
  "list",
);

const TITLES = ["id", "frontend", "key", "model", "age", "running", "in", "out", "waiting"];

export function formatSockets({ items, total }: LiveSockets): string {
  if (items.length === 0) return "No open WebSockets.";
  const rows = items.map((one) => [
    one.id,
    one.type === "call" ? `${one.frontend} (call)` : one.frontend,
    one.keyName ?? one.key,
    one.model ?? "",
    formatDuration(Math.round(one.ageMs / 1_000) * 1_000),
    String(one.running),
    formatBytes(one.bytesIn),
    formatBytes(one.bytesOut),
    [
      ...(one.bufferedBytes > 0 ? [`${formatBytes(one.bufferedBytes)} buffered`] : []),
      ...one.pauseReasons,
    ].join(", "),
  ]);
  const lines = [alignColumns([TITLES.map((title) => paint("gray", title)), ...rows])];
  if (total > items.length) lines.push(paint("gray", `${total - items.length} more`));
  return lines.join("\n");
}

import type { ExplainedSocket, RequestExplanation } from "../../../runtime/gateway-api.ts";
import { formatDuration } from "../../../lib/time/units.ts";
import { type CliCommand, EXIT_CODES } from "../../support/command.ts";
import { gatewayCommand, PRIVACY_OPTIONS, readPrivacy } from "../../support/gateway-command.ts";
import { formatQuarantine, formatCooldown } from "../../format/cooldown-output.ts";
import { alignColumns, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<RequestExplanation>("explain", {
  omit: ["privacy"],
  options: PRIVACY_OPTIONS,
  toInput(input, given) {
    const privacy = readPrivacy(given);
    return privacy === "off" ? input : { ...input, privacy };
  },
  remarks: { live: "From the running gateway:" },
  print: (answer) => print(formatExplanation(answer)),
  exitCode: ({ candidates }) =>
    candidates.some(({ excluded }) => !excluded) ? EXIT_CODES.ok : EXIT_CODES.failed,
});

const TRANSPORTS = {
  http: "WebSocket requests over HTTP",
  websocket: "WebSocket requests over WebSocket",
} as const;

function formatExplanation(of: RequestExplanation): string {
  const served = of.candidates.filter(({ excluded }) => !excluded);
  const out = of.candidates.filter(({ excluded }) => excluded);
  const heading = (text: string) => `\n${paint("bold", text)}`;
  const { connectMs, firstByteMs, idleMs, totalMs } = of.timeouts;
  const lines = [`${paint("bold", of.model)} on ${of.frontend}`];
  if (served.length > 0)
    lines.push(
      heading(`candidates, in order (${of.strategy})`),
      alignColumns(
        served.map((c, i) => [
          `${i + 1}`,
          c.id,
          `credential ${c.credential}`,
          c.protocol ?? "native",
          c.mode === "passthrough"
            ? paint("green", c.mode)
            : `${paint("yellow", c.mode)}${c.translationReason === undefined ? "" : ` (${c.translationReason})`}`,
          ...(c.transport === undefined ? [] : [TRANSPORTS[c.transport]]),
          ...(c.orderReason === undefined ? [] : [c.orderReason]),
          ...(c.cooldown ? [paint("yellow", formatCooldown(c.cooldown))] : []),
        ]),
        "  ",
      ),
    );
  else lines.push(heading("no candidates"));
  if (out.length > 0)
    lines.push(
      heading("excluded"),
      alignColumns(
        out.map(({ id, credential, excluded }) => [
          id,
          `credential ${credential}`,
          `${excluded!.by}: ${excluded!.message} (${excluded!.code})`,
        ]),
        "  ",
      ),
    );
  const hooks = Object.entries(of.hooks).filter(([, plugins]) => plugins.length > 0);
  if (hooks.length > 0)
    lines.push(
      heading("plugins, in order"),
      alignColumns(
        hooks.map(([hook, plugins]) => [hook, plugins.join(" → ")]),
        "  ",
      ),
    );
  if ((of.quarantinedHooks ?? []).length > 0)
    lines.push(
      heading("excluded candidates"),
      ...of.quarantinedHooks!.map((one) => `  ${formatQuarantine(one)}`),
    );
  for (const { type, paths, calls } of of.sockets)
    lines.push(
      heading("WebSocket"),
      `  ${paths.join(", ")}`,
      `  ${SOCKET_TEXTS[type]}`,
      ...(calls.length > 0 ? [`  calls over WebRTC: ${calls.join(", ")}`] : []),
    );
  const isRelay = of.sockets.some(({ type }) => type === "relay");
  lines.push(
    heading("timeouts"),
    isRelay
      ? `  connect ${formatDuration(connectMs)}`
      : `  connect ${formatDuration(connectMs)}, first byte ${formatDuration(firstByteMs)}, idle ${formatDuration(idleMs)}, total ${formatDuration(totalMs)}`,
  );
  if (of.hedgeDelays && of.hedgeDelays.length > 0)
    lines.push(
      heading("hedging"),
      ...of.hedgeDelays.map(
        ({ class: name, afterMs }) =>
          `  class ${name}: if no content arrives within ${formatDuration(afterMs)}, the next candidate is also called`,
      ),
      "  cost: both calls are billed; hedges use the client's retry budget, about 6 " +
        "per 100 requests",
    );
  if ((of.notes ?? []).length > 0)
    lines.push(heading("notes"), ...of.notes!.map((note) => `  ${note}`));
  return lines.join("\n");
}

const SOCKET_TEXTS = {
  requests: "Each message is a request, with the candidates above.",
  relay:
    "Messages pass unchanged. The first candidate that accepts the connection serves all of its responses.",
} as const satisfies Record<ExplainedSocket["type"], string>;

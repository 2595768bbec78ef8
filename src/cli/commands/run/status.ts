import { withIsoDates } from "../../../catalog/list-refresher.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import type { GatewayStatus } from "../../../runtime/gateway-api.ts";
import { getFault } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES } from "../../support/command.ts";
import { describeCommand } from "../../support/gateway-command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { formatProblems, formatUnmounted } from "../../format/problem-report.ts";
import {
  formatQuarantine,
  formatCooldown,
  formatUnreachable,
} from "../../format/cooldown-output.ts";
import { plural } from "../../../lib/text.ts";
import { alignColumns, formatTime, paint, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  ...describeCommand("status", {
    options: { quiet: { description: "Print nothing, for health checks" } },
  }),
  async run(given) {
    const stateDir = await findStateDir(given);
    const ask = () => callControl(stateDir, "status") as unknown as Promise<GatewayStatus>;
    // If a gateway ends during the request, the request is repeated, because a new process may have
    // taken over.
    const response = ask().catch((error: unknown) => {
      if (getFault(error)?.code !== "gateway_ended") throw error;
      return ask();
    });
    if (given.has("quiet"))
      return response.then(
        (status) => (isServed(status) ? EXIT_CODES.ok : EXIT_CODES.failed),
        () => EXIT_CODES.failed,
      );
    const status = await response;
    if (given.json) printJson({ ...status, modelLists: status.modelLists.map(withIsoDates) });
    else print(formatStatus(status));
    return EXIT_CODES.ok;
  },
};

function formatPriceFeed({
  version,
  issued,
  held,
  lastError,
}: NonNullable<GatewayStatus["priceFeed"]>) {
  const accepted =
    version === undefined ? "no document accepted yet" : `version ${version}, issued ${issued}`;
  const waiting =
    held === 0 ? "" : paint("yellow", `; ${plural(held, "price")} waiting for approval`);
  return `${accepted}${waiting}${lastError === undefined ? "" : paint("yellow", `; ${lastError}`)}`;
}

/**
 * Whether clients are served. A process that takes over has the ports of the old process, so
 * clients wait until they are served.
 */
const isServed = ({ state, oldProcess }: GatewayStatus): boolean =>
  state !== "starting" || oldProcess !== undefined;

function formatStatus(of: GatewayStatus): string {
  const flying = of.generations.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const older = of.generations.filter(({ generation }) => generation !== of.generation);
  const rows = [
    [
      "gateway",
      `${of.state === "ready" ? paint("green", of.state) : paint("yellow", of.state)}${of.urls.length > 0 ? ` at ${of.urls.join(", ")}` : ""}`,
    ],
    ...(of.ledgerOutage
      ? [
          [
            "ledger",
            paint(
              "red",
              `unavailable since ${formatTime(of.ledgerOutage.since)}: ${of.ledgerOutage.reason}`,
            ),
          ],
        ]
      : []),
    ...(of.adminUrl === undefined ? [] : [["admin", of.adminUrl]]),
    ["version", `${of.version}, pid ${of.pid}, since ${formatTime(of.startedAt)}`],
    [
      "config",
      `${of.file ?? "the default config"}, generation ${of.generation}, loaded ${formatTime(of.loadedAt)}`,
    ],
    ["state", of.stateDir],
    [
      "in flight",
      `${flying}${older.length === 0 ? "" : `, ${older.map((g) => `${g.inFlight} in generation ${g.generation}`).join(", ")}`}`,
    ],
    ...(of.oldProcess
      ? [
          [
            "old process",
            `pid ${of.oldProcess.pid} exits after ${of.oldProcess.inFlight} open requests`,
          ],
        ]
      : []),
    ...(of.lastHotRestart
      ? [
          [
            "last hot restart",
            paint("red", `${of.lastHotRestart.reason} ${formatTime(of.lastHotRestart.at)}`),
          ],
        ]
      : []),
    ["last reload", formatLastReload(of)],
    ...(of.unmountedProviders.length > 0
      ? [["not mounted", formatUnmounted(of.unmountedProviders)]]
      : []),
    ...of.modelLists.map(({ provider, modelCount, lastError, nextRefreshAt }) => [
      `models of ${provider}`,
      `${modelCount ?? "not known yet"}${
        lastError ? paint("yellow", `; ${formatTime(lastError.at)}: ${lastError.message}`) : ""
      }${lastError && nextRefreshAt ? `; next refresh ${formatTime(nextRefreshAt)}` : ""}`,
    ]),
    ...(of.priceFeed ? [["prices", formatPriceFeed(of.priceFeed)]] : []),
    ...(of.files.stored + of.files.files > 0 ? [["image files", fileCounts(of.files)]] : []),
    ...(of.workers ?? []).map(({ pid, startedAt, generations }, i) => [
      `worker ${i + 1}`,
      `pid ${pid}, since ${formatTime(startedAt)}, ${generations.reduce((sum, { inFlight }) => sum + inFlight, 0)} in flight`,
    ]),
    ...(of.instances ?? []).map(({ instance, info, state, lastHeartbeatAt }) => [
      "instance",
      `${instance.slice(0, 8)}${info ? `, ${info.version}, pid ${info.pid} on ${info.host}` : ""}, ${paint(state === "live" ? "green" : "yellow", state)}, last heartbeat ${formatTime(lastHeartbeatAt)}`,
    ]),
    ...of.quarantinedHooks.map((one) => ["quarantined", paint("yellow", formatQuarantine(one))]),
    ...of.unreachablePlugins.map((one) => ["unreachable", paint("red", formatUnreachable(one))]),
    ...of.latencies.map(({ target, stream, averageMs, estimateMs, calledAt }) => [
      "speed",
      `${target}: first token of ${stream ? "streams" : "non-streaming responses"} after ${averageMs} ms${estimateMs === averageMs ? "" : `, estimated ${estimateMs} ms`}, last called ${formatTime(calledAt)}`,
    ]),
    ...of.cooldowns.map(({ target, ...rest }) => [
      "cooldown",
      `${target}: ${formatCooldown(rest)}`,
    ]),
  ];
  const problems =
    of.lastReload?.ok === false ? `\n\n${formatProblems(of.lastReload.problems, paint)}` : "";
  return alignColumns(rows.map(([name, value]) => [paint("gray", name!), value!])) + problems;
}

const fileCounts = ({ files, bytes, served, rejected }: GatewayStatus["files"]): string =>
  `${files} (${(bytes / 1e6).toFixed(1)} MB), ${served} downloads, ${rejected} rejected`;

function formatLastReload({ lastReload: last }: GatewayStatus): string {
  if (!last) return "none";
  const how = last.ok
    ? last.isUnchanged
      ? "nothing changed"
      : paint("green", `generation ${last.generation}`)
    : paint(
        "red",
        last.restartKeys
          ? `rejected: ${last.restartKeys.join(", ")} need a restart`
          : "rejected: the config has errors",
      );
  return `${how}, by ${last.trigger}, ${formatTime(last.at)}`;
}

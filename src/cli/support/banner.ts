// Text that `tollgate serve` prints first on a terminal: the URL, the key, and an example request.
import type { Gateway } from "../../runtime/gateway-api.ts";
import { callControl } from "../../admin/socket/control-client.ts";
import { isLoopback } from "../../lib/net/egress-guard.ts";
import { version } from "./load-config.ts";
import { shortPath, formatUnmounted } from "../format/problem-report.ts";
import { alignColumns, paint } from "../format/terminal.ts";

/**
 * Returns the banner.
 * @param detached Whether the process is detached from the terminal and gets no Ctrl-C from it.
 */
export async function formatBanner(
  gateway: Gateway,
  file: string | undefined,
  detached = false,
): Promise<string> {
  const key = gateway.firstKey;
  const { unmountedProviders } = await gateway.status();
  const facts = [
    ["url", paint("cyan", gateway.url)],
    ...(await consoleOrAdminLine(gateway)),
    key === undefined
      ? ["key", "created before; to create another, run `tollgate keys create`"]
      : ["key", `${paint("yellow", key)}  shown only once`],
    [
      "config",
      file === undefined
        ? "no file found, using the offline default; to create one, run `tollgate init > " +
          "gateway.yaml`"
        : shortPath(file),
    ],
    ["state", shortPath(gateway.stateDir)],
    ...(unmountedProviders.length > 0
      ? [["not mounted", formatUnmounted(unmountedProviders)]]
      : []),
  ].map(([name, value]) => [paint("gray", name!), value!]);
  const body = `{"model":"${await findDemoModel(gateway)}","messages":[{"role":"user","content":"Hello"}]}`;
  return [
    "",
    `  ${paint("bold", `tollgate ${version}`)}`,
    "",
    alignColumns(facts, "  "),
    "",
    `  curl ${gateway.url}/v1/chat/completions \\`,
    `    -H 'authorization: Bearer ${key ?? "<key>"}' -H 'content-type: application/json' \\`,
    `    -d '${body}'`,
    "",
    `  ${paint("gray", `To stop: ${detached ? `kill ${process.pid}` : "Ctrl-C"}. To reload the config: kill -HUP ${process.pid}.`)}`,
    "",
  ].join("\n");
}

/**
 * Returns the console's link if the console is mounted and reachable only from this machine, else
 * the address of the admin API.
 */
async function consoleOrAdminLine({ adminUrl, stateDir }: Gateway): Promise<[string, string][]> {
  if (adminUrl === undefined) return [];
  const ask = (command: string) => callControl(stateDir, command) as Promise<unknown>;
  const link = async () => {
    if (!URL.canParse(adminUrl) || !isLoopback(hostOf(adminUrl))) return undefined;
    const { plugins } = (await ask("plugins.list")) as { plugins: readonly { id: string }[] };
    if (!plugins.some(({ id }) => id === "observers.console")) return undefined;
    return ((await ask("console")) as { url: string }).url;
  };
  const url = await link().catch(() => undefined);
  if (url === undefined) return [["admin", adminUrl]];
  return [
    [
      "console",
      `${paint("cyan", url)}  works once, within a minute; for a new link, run \`tollgate console\``,
    ],
  ];
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

/** Returns a model that works on any machine, if one exists. */
const findDemoModel = (gateway: Gateway): Promise<string> =>
  gateway.explain("demo/echo").then(
    ({ candidates }) => (candidates.length > 0 ? "demo/echo" : "<provider>/<model>"),
    () => "<provider>/<model>",
  );

// Runs the gateway until it receives a signal to stop.
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isatty } from "node:tty";
import { findProgram } from "../../../lib/package-root.ts";
import { createGateway } from "../../../server/gateway.ts";
import { OldProcess } from "../../../server/handoff/old-process.ts";
import { REPLACES_PID_VARIABLE } from "../../../server/handoff/handoff-protocol.ts";
import type { IpcChannel } from "../../../runtime/workers/ipc-link.ts";
import {
  startEventLoopWatchdog,
  type EventLoopWatchdog,
} from "../../../runtime/health/event-loop-watchdog.ts";
import type { Gateway } from "../../../runtime/gateway-api.ts";
import { createLog, type Level, type Log } from "../../../lib/log/log.ts";
import { SecretMask } from "../../../lib/log/secret-mask.ts";
import { fail, getFault, publicErrorText } from "../../../model/error.ts";
import {
  type CliCommand,
  CONFIG_OPTIONS,
  EXIT_CODES,
  type CliInput,
} from "../../support/command.ts";
import {
  completeMallocSettings,
  disablePretenuring,
  freezeObjectPrototype,
} from "../../support/process-setup.ts";
import {
  builtinPlugins,
  configFile,
  createPluginLoader,
  configName,
  version,
} from "../../support/load-config.ts";
import {
  summarizeProblems,
  formatProblems,
  formatUnmounted,
  shortPath,
} from "../../format/problem-report.ts";
import { inheritedSockets, ServiceManager } from "../../support/service-manager.ts";
import {
  ignoreTerminalErrors,
  paintRemark,
  printRemark,
  print,
  printJson,
  alignColumns,
  paint,
} from "../../format/terminal.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import { isLoopback } from "../../../lib/net/egress-guard.ts";

// Interval in milliseconds at which a gateway that npm started checks its parent process. A program
// that npm starts runs in a shell, which receives the signals and ends without forwarding them. The
// gateway would continue to run without being noticed.
const CHECK_MS = 500;
/** Read when the program starts, so that the end of the parent during startup is detected. */
const PARENT_PID = process.ppid;
/**
 * Calls `gone` once, when the parent process has ended. Used only under npm: with other launchers,
 * the parent may end while the gateway is running.
 */
function watchNpmParent(env: NodeJS.ProcessEnv, gone: () => void): void {
  if (env["npm_command"] === undefined) return;
  const timer = setInterval(() => {
    if (process.ppid === PARENT_PID) return;
    clearInterval(timer);
    gone();
  }, CHECK_MS);
  timer.unref();
}

const LEVELS: readonly string[] = ["debug", "info", "warn", "error"] satisfies Level[];

/** Maximum time in milliseconds until the process exits after a second stop signal. */
const FORCED_EXIT_MS = 10_000;

/**
 * After Ctrl-C in a terminal, npm sends the same signal again. A second signal within this time, in
 * milliseconds, is ignored.
 */
const SIGNAL_ECHO_MS = 300;

export const command: CliCommand = {
  usage: "serve [options]",
  description:
    "Runs the gateway. SIGHUP or a change of the file reloads the config. SIGTERM or " +
    "Ctrl-C shuts down after open requests are finished, and a second one aborts " +
    "them. SIGUSR2 starts a hot restart without dropping requests. Without a " +
    "gateway.yaml, a default config is used that works offline.",
  options: {
    ...CONFIG_OPTIONS,
    port: {
      short: "p",
      placeholder: "number",
      description: "Port of the listener (0: any free port). Overrides the config",
    },
    "admin-port": {
      placeholder: "number",
      description: "Port of the admin listener (0: any free port). Overrides the config",
    },
    host: {
      placeholder: "address",
      description: "Address of the listener. Overrides the config",
    },
    "state-dir": {
      placeholder: "directory",
      description: "State directory for keys and ledger. Overrides the config",
    },
    "log-level": {
      placeholder: "level",
      description: "Log level: debug, info, warn, or error. Overrides the config",
    },
    dev: {
      description:
        "Development mode for plugin authors: one process, and plugins with type errors " +
        "are rejected",
    },
    "no-watch": { description: "Reload only on SIGHUP, not when the file changes" },
  },
  examples: [
    "tollgate serve",
    "tollgate serve --dev",
    "tollgate serve -c /etc/tollgate/gateway.yaml --host 0.0.0.0",
  ],
  async run(given) {
    freezeObjectPrototype();
    ignoreTerminalErrors();
    const file = configFile(given);
    const terminal = process.stdout.isTTY && !given.json;
    const mask = new SecretMask();
    const log = createLog({ level: "info", pretty: terminal, mask });
    const predecessor = findOldProcess(process.env);
    const handed = inheritedSockets(process.env, process.pid, predecessor?.pid);
    const starting = createGateway({
      configFile: file,
      env: process.env,
      log,
      mask,
      version,
      loadPlugin: createPluginLoader({ dev: given.has("dev") }),
      isBuiltin: (use, kind) => Object.hasOwn(builtinPlugins[kind], use),
      overrides: readOverrides(given),
      isInteractive: process.stdin.isTTY,
      watchesConfig: !given.has("no-watch"),
      ...(handed && { inheritedSockets: handed }),
      ...(predecessor && { oldProcess: predecessor }),
      workerProgram: findProgram("worker"),
    });
    const gateway = await (terminal
      ? starting
      : starting.catch((error) => reportStartFailure(error, log)));
    if (gateway === undefined) return EXIT_CODES.failed;
    if ("problems" in gateway) {
      if (given.json) {
        printJson({ ok: false, file, problems: gateway.problems });
        return EXIT_CODES.config;
      }
      printRemark(formatProblems(gateway.problems, paintRemark));
      printRemark(
        `\n${configName(file)}: ${summarizeProblems(gateway.problems)}. The gateway was not started.`,
      );
      return EXIT_CODES.config;
    }
    const pulse = startEventLoopWatchdog({ isPretty: terminal });
    void pulse.whenLoaded.then(() => {
      disablePretenuring();
      completeMallocSettings();
    });
    const manager = createServiceManager(gateway, log);
    const stopped = untilStopped(gateway, {
      log,
      terminal,
      watchdog: pulse,
      manager,
      replacesOldProcess: predecessor !== undefined,
    });
    if (terminal) print(await formatBanner(gateway, file, predecessor !== undefined));
    else await logStarted(gateway, file, log);
    await manager?.notifyReady();
    return stopped;
  },
};

/** Returns the gateway that started this process as its successor. */
function findOldProcess(env: NodeJS.ProcessEnv): OldProcess | undefined {
  const before = Number(env[REPLACES_PID_VARIABLE]);
  delete env[REPLACES_PID_VARIABLE];
  return before === process.ppid && process.connected
    ? new OldProcess(process as IpcChannel & { disconnect(): void }, before)
    : undefined;
}

/** Maximum time in milliseconds within which the ledger must respond to a health check. */
const LEDGER_SILENCE_MS = 10_000;

function createServiceManager(gateway: Gateway, log: Log): ServiceManager | undefined {
  return ServiceManager.create({
    env: process.env,
    checkAlive: () => gateway.assertLedgerAnswers(LEDGER_SILENCE_MS),
    status: async () => {
      const { state, url, generation } = await gateway.status();
      return `${state} at ${url}, generation ${generation}, ${gateway.inFlight} in flight`;
    },
    onError: (error) => log.error({ error: error.message }, "systemd-notify failed"),
  });
}

/** Logs a failed start as one line in the log's format, for programs that read the log. */
function reportStartFailure(error: unknown, log: Log): undefined {
  const { kind, code } = getFault(error) ?? {};
  // The message of a fault is complete by itself. Any other error is logged with its stack.
  if (kind) log.error({ kind, code }, `gateway start failed: ${publicErrorText(error)}`);
  else log.error({ error }, "gateway start failed");
  log.flush();
}

function readOverrides(given: CliInput) {
  const level = given.getText("log-level");
  const stateDir = given.getText("state-dir");
  const [host, port] = [given.getText("host"), readPort(given, "port")];
  // The admin port of the default config is fixed. With `--port 0`, it becomes 0 too, because two
  // gateways would otherwise use the same port.
  const adminPort =
    readPort(given, "admin-port") ??
    (port === 0 && configFile(given) === undefined ? 0 : undefined);
  if (level !== undefined && !LEVELS.includes(level))
    fail("invalid", `--log-level must be one of ${LEVELS.join(", ")}.`, { code: "usage" });
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(adminPort === undefined ? {} : { adminPort }),
    ...(stateDir === undefined ? {} : { stateDir: resolve(stateDir) }),
    ...(given.has("dev") && { workers: 1 }),
    ...(level === undefined ? {} : { logLevel: level as Level }),
  };
}

function readPort(given: CliInput, name: "port" | "admin-port"): number | undefined {
  const text = given.getText(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    fail("invalid", `--${name} must be a number from 0 to 65535.`, { code: "usage" });
  return Number(text);
}

/**
 * Logs the URL and the location of the first key, for programs that read the log. The key itself is
 * never logged.
 */
async function logStarted(gateway: Gateway, file: string | undefined, log: Log): Promise<void> {
  if (file === undefined)
    log.info(
      { folder: process.cwd() },
      "no gateway.yaml found, running the offline default; create one with tollgate init",
    );
  if (gateway.firstKey !== undefined) {
    const path = join(gateway.stateDir, "first-key");
    await writeFile(path, `${gateway.firstKey}\n`, { mode: 0o600 });
    log.info({ path }, "first key created; it is stored only in this file");
  }
  const { generation, stateDir, unmountedProviders, urls } = await gateway.status();
  if (unmountedProviders.length > 0)
    log.info(
      { unmountedProviders },
      `providers not mounted: ${formatUnmounted(unmountedProviders)}`,
    );
  log.info(
    {
      url: gateway.url,
      ...(urls.length > 1 && { urls }),
      admin: gateway.adminUrl,
      version,
      pid: process.pid,
      file,
      stateDir,
      generation,
    },
    "listening",
  );
}

interface ServeContext {
  readonly log: Log;
  readonly terminal: boolean;
  readonly watchdog: EventLoopWatchdog;
  readonly manager: ServiceManager | undefined;
  /** Whether this process takes over from an old process. */
  readonly replacesOldProcess: boolean;
}

/** Resolves with the exit code when the gateway has stopped. */
function untilStopped(
  gateway: Gateway,
  { log, terminal, watchdog, manager, replacesOldProcess }: ServeContext,
): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let since: number | undefined;
  let code: number = EXIT_CODES.ok;

  const end = () => {
    watchdog.limitRemainingTime(gateway.maxShutdownMs);
    gateway
      .stop()
      .catch((error: unknown) => {
        code = EXIT_CODES.failed;
        log.error({ error }, "gateway shutdown failed");
      })
      .finally(() => {
        log.flush();
        resolve(code);
      });
  };
  const stop = (reason: string) => {
    if (since !== undefined) {
      if (performance.now() - since < SIGNAL_ECHO_MS) return;
      if (gateway.inFlight > 0) code = EXIT_CODES.failed;
      watchdog.limitRemainingTime(FORCED_EXIT_MS);
      void gateway.kill().catch(() => {});
      return;
    }
    since = performance.now();
    const inFlight = gateway.inFlight;
    log.info(
      { reason, inFlight },
      inFlight === 0 ? "stopping" : "shutting down after open requests; signal again to abort them",
    );
    void manager?.notifyStopping();
    end();
  };
  /**
   * Called when a new process has taken over. The new process then sends notifications to the
   * service manager.
   */
  const leave = async (successor: number) => {
    since = performance.now();
    log.info({ successor, inFlight: gateway.inFlight }, "another process took over");
    await manager?.notifyNewMainPid(successor);
    end();
  };
  const fatal = (words: string) => (error: unknown) => {
    code = EXIT_CODES.failed;
    // A later failure follows from the first failure or has no effect any more.
    if (since !== undefined) return log.debug({ error }, "error during shutdown");
    log.error({ error }, words);
    return stop("error");
  };
  const broken = fatal("uncaught error, shutting down");

  void gateway.failed.then(fatal("gateway cannot continue"));
  // A process that takes over is a child of the old process and continues after its end.
  if (!replacesOldProcess) watchNpmParent(process.env, () => stop("npm exited"));
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", () => {
    // Closing the terminal sends the same signal.
    if (terminal && !isatty(1)) stop("terminal closed");
    else {
      const notified = manager?.notifyReloading();
      void gateway.reload("signal").then(async ({ isUnchanged, generation }) => {
        if (isUnchanged) log.info({ generation }, "config unchanged");
        await notified;
        await manager?.notifyReady();
      }, broken);
    }
  });
  process.on("SIGUSR2", () => {
    const kept = (error: unknown) =>
      log.error({ error: publicErrorText(error) }, "no process took over");
    gateway
      .hotRestart()
      .then((successor) => (since === undefined ? leave(successor) : undefined), kept);
  });
  process.on("uncaughtException", broken);
  return promise;
}

// Text that `tollgate serve` prints first on a terminal: the URL, the key, and an example request.

/**
 * Returns the banner.
 * @param detached Whether the process is detached from the terminal and gets no Ctrl-C from it.
 */
async function formatBanner(
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

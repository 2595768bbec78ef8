// Runs the gateway until it is told to stop.
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isatty } from "node:tty";
import { createGateway } from "../gateway/gateway.ts";
import { Predecessor } from "../gateway/succession/predecessor.ts";
import { SUCCEEDS } from "../gateway/succession/said.ts";
import type { Channel } from "../gateway/workers/link.ts";
import { startPulse, type Pulse } from "../gateway/pulse/pulse.ts";
import type { Gateway } from "../gateway/types.ts";
import { createLog, type Level, type Log } from "../lib/log.ts";
import { Mask } from "../lib/mask.ts";
import { fail, faultOf, sayable } from "../model/error.ts";
import { banner } from "./banner.ts";
import { type CliCommand, CONFIG, EXIT, type CliInput } from "./command.ts";
import { keepPrototype } from "./prototype.ts";
import { builtins, configFile, createLoad, nameOf, version } from "./loading.ts";
import { counted, reported, sayLeftOut } from "./report.ts";
import { handedOver, ServiceManager } from "./service-manager.ts";
import { underNpm } from "./starter.ts";
import { outliveTerminal, paintRemark, remark, say, sayJson } from "./terminal.ts";

const LEVELS: readonly string[] = ["debug", "info", "warn", "error"] satisfies Level[];

/** When nothing is waited for any more. */
const KILL_MS = 10_000;

/** After a Ctrl-C of the terminal npm sends the same signal once more: within this time it is one. */
const ECHO_MS = 300;

export const command: CliCommand = {
  usage: "serve [options]",
  about:
    "Runs the gateway. SIGHUP, or a change of the file, reloads the config; SIGTERM and Ctrl-C let what is in flight\n" +
    "finish first, a second one does not; upon SIGUSR2 another process takes over, and nothing is cut. Without a gateway.yaml it runs a default that answers offline.",
  options: {
    ...CONFIG,
    port: {
      short: "p",
      value: "number",
      about: "listen here, whatever the file says; 0 is any free port",
    },
    "admin-port": {
      value: "number",
      about: "where the admin listener is, whatever the file says; 0 is any free port",
    },
    host: { value: "address", about: "listen on this address, whatever the file says" },
    "state-dir": { value: "folder", about: "keep keys and ledger here, whatever the file says" },
    "log-level": { value: "level", about: "debug, info, warn or error, whatever the file says" },
    dev: {
      about: "for authors of plugins: one process, and code whose types are wrong is not taken",
    },
    "no-watch": { about: "reload on SIGHUP only, not when the file changes" },
  },
  examples: [
    "tollgate serve",
    "tollgate serve --dev",
    "tollgate serve -c /etc/tollgate/gateway.yaml --host 0.0.0.0",
  ],
  async run(given) {
    keepPrototype();
    outliveTerminal();
    const file = configFile(given);
    const terminal = process.stdout.isTTY && !given.json;
    const mask = new Mask();
    const log = createLog({ level: "info", pretty: terminal, mask });
    const predecessor = predecessorOf(process.env);
    const handed = handedOver(process.env, process.pid, predecessor?.pid);
    const starting = createGateway({
      file,
      env: process.env,
      log,
      mask,
      version,
      load: createLoad({ dev: given.has("dev") }),
      isBuiltin: (use, kind) => Object.hasOwn(builtins[kind], use),
      overrides: overridesOf(given),
      attended: process.stdin.isTTY,
      watch: !given.has("no-watch"),
      ...(handed && { handed }),
      ...(predecessor && { predecessor }),
      worker: join(import.meta.dirname, `worker.${import.meta.filename.slice(-2)}`),
    });
    const gateway = await (terminal ? starting : starting.catch((error) => unstarted(error, log)));
    if (gateway === undefined) return EXIT.failed;
    if ("problems" in gateway) {
      if (given.json) {
        sayJson({ ok: false, file, problems: gateway.problems });
        return EXIT.config;
      }
      remark(reported(gateway.problems, paintRemark));
      remark(`\n${nameOf(file)}: ${counted(gateway.problems)}. Nothing was started.`);
      return EXIT.config;
    }
    const pulse = startPulse({ pretty: terminal });
    const manager = managerOf(gateway, log);
    const stopped = untilStopped(gateway, {
      log,
      terminal,
      pulse,
      manager,
      succeeds: predecessor !== undefined,
    });
    if (terminal) say(await banner(gateway, file, predecessor !== undefined));
    else await announce(gateway, file, log);
    await manager?.ready();
    return stopped;
  },
};

/** The gateway that has started this one to take its place. */
function predecessorOf(env: NodeJS.ProcessEnv): Predecessor | undefined {
  const before = Number(env[SUCCEEDS]);
  delete env[SUCCEEDS];
  return before === process.ppid && process.connected
    ? new Predecessor(process as Channel & { disconnect(): void }, before)
    : undefined;
}

/** So long may the ledger be silent. */
const ALIVE_MS = 10_000;

function managerOf(gateway: Gateway, log: Log): ServiceManager | undefined {
  return ServiceManager.of({
    env: process.env,
    alive: () => gateway.alive(ALIVE_MS),
    status: async () => {
      const { state, url, generation } = await gateway.status();
      return `${state} at ${url}, generation ${generation}, ${gateway.busy} in flight`;
    },
    failed: (error) =>
      log.error(
        { error: error.message },
        "the service manager cannot be told: systemd-notify failed",
      ),
  });
}

/** A program reads what a person does not: one line, in the form of all others. */
function unstarted(error: unknown, log: Log): undefined {
  const { kind, code } = faultOf(error) ?? {};
  // A fault was written to be read, and says all; of anything else the place is wanted.
  if (kind) log.error({ kind, code }, `the gateway did not start: ${sayable(error)}`);
  else log.error({ error }, "the gateway did not start");
  log.flush();
}

function overridesOf(given: CliInput) {
  const level = given.text("log-level");
  const stateDir = given.text("state-dir");
  const [host, port] = [given.text("host"), portOf(given, "port")];
  // The default's listeners move together: with its fixed one two gateways would meet.
  const adminPort =
    portOf(given, "admin-port") ?? (port === 0 && configFile(given) === undefined ? 0 : undefined);
  if (level !== undefined && !LEVELS.includes(level))
    fail("invalid", `--log-level is one of ${LEVELS.join(", ")}.`, { code: "usage" });
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(adminPort === undefined ? {} : { adminPort }),
    ...(stateDir === undefined ? {} : { stateDir: resolve(stateDir) }),
    ...(given.has("dev") && { workers: 1 }),
    ...(level === undefined ? {} : { logLevel: level as Level }),
  };
}

function portOf(given: CliInput, name: "port" | "admin-port"): number | undefined {
  const said = given.text(name);
  if (said === undefined) return undefined;
  if (!/^\d{1,5}$/.test(said) || Number(said) > 65_535)
    fail("invalid", `--${name} is a number from 0 to 65535.`, { code: "usage" });
  return Number(said);
}

/** For programs that read lines: where it is, and where the first key is, never the key. */
async function announce(gateway: Gateway, file: string | undefined, log: Log): Promise<void> {
  if (file === undefined)
    log.info(
      { folder: process.cwd() },
      "no gateway.yaml here: running the default, which answers offline; tollgate init prints one to start from",
    );
  if (gateway.firstKey !== undefined) {
    const path = join(gateway.stateDir, "first-key");
    await writeFile(path, `${gateway.firstKey}\n`, { mode: 0o600 });
    log.info({ path }, "a first key was made; it is in this file and nowhere else");
  }
  const { generation, stateDir, leftOut, urls } = await gateway.status();
  if (leftOut.length > 0) log.info({ leftOut }, `left out: ${sayLeftOut(leftOut)}`);
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

interface Around {
  readonly log: Log;
  readonly terminal: boolean;
  readonly pulse: Pulse;
  readonly manager: ServiceManager | undefined;
  /** It has taken another one's place. */
  readonly succeeds: boolean;
}

/** The exit code, when it is over. */
function untilStopped(
  gateway: Gateway,
  { log, terminal, pulse, manager, succeeds }: Around,
): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let since: number | undefined;
  let code: number = EXIT.fine;

  const end = () => {
    pulse.endWithin(gateway.endMs);
    gateway
      .stop()
      .catch((error: unknown) => {
        code = EXIT.failed;
        log.error({ error }, "the gateway did not stop well");
      })
      .finally(() => {
        log.flush();
        resolve(code);
      });
  };
  const stop = (why: string) => {
    if (since !== undefined) {
      if (performance.now() - since < ECHO_MS) return;
      if (gateway.busy > 0) code = EXIT.failed;
      pulse.endWithin(KILL_MS);
      void gateway.kill().catch(() => {});
      return;
    }
    since = performance.now();
    const inFlight = gateway.busy;
    log.info(
      { why, inFlight },
      inFlight === 0
        ? "stopping"
        : "stopping when what is in flight is over; once more cuts it off",
    );
    void manager?.stopping();
    end();
  };
  /** Another process serves: the service manager is its to talk to. */
  const leave = async (successor: number) => {
    since = performance.now();
    log.info({ successor, inFlight: gateway.busy }, "another process has taken over");
    await manager?.succeeded(successor);
    end();
  };
  const fatal = (words: string) => (error: unknown) => {
    code = EXIT.failed;
    // What fails on the way out follows from what came first, or changes nothing any more.
    if (since !== undefined) return log.debug({ error }, "an error while stopping");
    log.error({ error }, words);
    return stop("error");
  };
  const broken = fatal("an error that was not caught; stopping");

  void gateway.broken.then(fatal("the gateway cannot go on"));
  // One that takes another's place has that one for its parent, and outlives it.
  if (!succeeds) underNpm(process.env, () => stop("npm is gone"));
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", () => {
    // A terminal that is closed sends the same signal.
    if (terminal && !isatty(1)) stop("the terminal is gone");
    else {
      const heard = manager?.reloading();
      void gateway.reload("signal").then(async ({ unchanged, generation }) => {
        if (unchanged) log.info({ generation }, "reload: nothing has changed");
        await heard;
        await manager?.ready();
      }, broken);
    }
  });
  process.on("SIGUSR2", () => {
    const kept = (error: unknown) => log.error({ error: sayable(error) }, "nothing has taken over");
    gateway
      .upgrade()
      .then((successor) => (since === undefined ? leave(successor) : undefined), kept);
  });
  process.on("uncaughtException", broken);
  return promise;
}

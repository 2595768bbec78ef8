// Runs a gateway in the test's process, composed as in `tollgate serve`: with the same config file,
// loader, store, and control socket, but without the cost of a process. Use it for tests that send
// HTTP requests, edit the file, or run commands. Tests of signals, exit codes, and output need
// `daemon.ts`.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startUpstream, type ScriptedRoutes, type TestUpstream } from "tollgate/testing";
import { createPluginLoader, builtinPlugins, version } from "../../src/cli/support/load-config.ts";
import { formatProblems } from "../../src/cli/format/problem-report.ts";
import { callControl } from "../../src/admin/socket/control-client.ts";
import { createGateway } from "../../src/server/gateway.ts";
import { createLog } from "../../src/lib/log/log.ts";
import { SecretMask } from "../../src/lib/log/secret-mask.ts";
import type { Daemon, DaemonOptions } from "./process/daemon.ts";
import { withTestStore } from "./database/store-under-test.ts";
import type { ParsedLogLine, ServingProgram } from "./process/program.ts";
import { until } from "./wait.ts";

/** Parts of a gateway that a test of its HTTP interface, config file, and commands can access. */
export type InProcessGateway = Omit<Daemon, "kill" | "exit" | "stop"> & {
  stop(): Promise<void>;
};

export type InProcessOptions = Omit<DaemonOptions, "args" | "built" | "root"> & {
  /** Port of the gateway. Default: any free port. */
  readonly port?: number;
};

/** Starts a gateway on a free port. Disposing it ends open requests and, unless `dir` was given, removes its folder. */
export async function startInProcess(of: InProcessOptions): Promise<InProcessGateway> {
  const dir = of.dir ?? (await mkdtemp(join(tmpdir(), "tollgate-")));
  const file = join(dir, "gateway.yaml");
  const write = async (yaml: string) => {
    const text = await withTestStore(yaml, dir);
    await writeFile(file, of.listen ? `listen: { ${of.listen} }\n${text}` : text);
  };
  await write(of.yaml);
  for (const [name, text] of Object.entries(of.files ?? {})) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  const log: ParsedLogLine[] = [];
  const mask = new SecretMask();
  const gateway = await createGateway({
    configFile: file,
    env: { PATH: process.env["PATH"], HOME: dir, TMPDIR: process.env["TMPDIR"], ...of.env },
    log: createLog({
      level: "info",
      pretty: false,
      mask,
      write: (text) => void log.push(JSON.parse(text) as ParsedLogLine),
    }),
    mask,
    version,
    loadPlugin: createPluginLoader(),
    isBuiltin: (use, kind) => Object.hasOwn(builtinPlugins[kind], use),
    overrides: { port: of.port ?? 0 },
    watchesConfig: true,
  });
  if ("problems" in gateway) {
    await rm(dir, { recursive: true, force: true });
    throw new Error(formatProblems(gateway.problems, (_, text) => text));
  }
  const { stateDir } = gateway;
  const firstKeyFile = join(stateDir, "first-key");
  if (gateway.firstKey !== undefined)
    await writeFile(firstKeyFile, `${gateway.firstKey}\n`, { mode: 0o600 });
  log.push({ level: "info", msg: "listening", url: gateway.url, stateDir });
  const key = await readFile(firstKeyFile, "utf8").then(
    (text) => text.trim(),
    () => "",
  );
  const line: ServingProgram["line"] = async (is) => {
    const found = () => log.find((one) => (is instanceof RegExp ? is.test(one.msg) : is(one)));
    await until(
      () => found() !== undefined,
      () => `a line in\n${log.map((one) => JSON.stringify(one)).join("\n")}`,
    );
    return found()!;
  };
  return {
    url: gateway.url,
    pid: process.pid,
    key,
    dir,
    file,
    stateDir,
    log,
    line,
    output: () => log.map((one) => JSON.stringify(one)).join("\n"),
    write,
    ask: (command, input) => callControl(stateDir, command, input),
    stop: () => gateway.stop(),
    async [Symbol.asyncDispose]() {
      await gateway.kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A gateway and the upstream behind it. */
export interface InProcessWithUpstream extends AsyncDisposable {
  readonly gateway: InProcessGateway;
  readonly up: TestUpstream;
}

/** Starts an upstream and a gateway in front of it. Both end together, also if the gateway does not start. */
export async function startInProcessWithUpstream(
  routes: ScriptedRoutes,
  yaml: (url: string) => string,
  more: Omit<InProcessOptions, "yaml"> = {},
): Promise<InProcessWithUpstream> {
  const up = await startUpstream(routes);
  try {
    const gateway = await startInProcess({ ...more, yaml: yaml(up.url) });
    return {
      gateway,
      up,
      async [Symbol.asyncDispose]() {
        await gateway[Symbol.asyncDispose]();
        await up.close();
      },
    };
  } catch (error) {
    await up.close();
    throw error;
  }
}

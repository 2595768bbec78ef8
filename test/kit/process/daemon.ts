// Starts the real gateway in a folder of its own, as an operator would: a gateway.yaml, a process,
// a port.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Json, JsonObject } from "tollgate/plugin";
import { startUpstream, type ScriptedRoutes, type TestUpstream } from "tollgate/testing";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { withTestStore } from "../database/store-under-test.ts";
import { startServe, type ServingProgram } from "./program.ts";

export interface Daemon extends ServingProgram, AsyncDisposable {
  /** The first key. */
  readonly key: string;
  readonly dir: string;
  readonly file: string;
  readonly stateDir: string;
  /** Its control socket. */
  ask(command: string, input?: JsonObject): Promise<Json>;
  /** Rewrites gateway.yaml, which the gateway watches. */
  write(yaml: string): Promise<void>;
}

export interface DaemonOptions {
  yaml: string;
  /** More keys under `listen:`, in YAML's flow style. */
  listen?: string;
  env?: Record<string, string>;
  files?: Record<string, string | Uint8Array>;
  /** Uses the folder of an earlier gateway. */
  dir?: string;
  args?: readonly string[];
  /** Uses the output of `npm run build`, which starts in two thirds of the time. */
  built?: boolean;
  /** Uses another checkout of the program. */
  root?: string | undefined;
}

export async function startDaemon(of: DaemonOptions): Promise<Daemon> {
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
  const args = ["-c", file, ...(of.args ?? [])];
  const served = await startServe({ cwd: dir, args, env: of.env, built: of.built, root: of.root });
  const stateDir = String(served.log.find(({ msg }) => msg === "listening")!["stateDir"]);
  const key = await readFile(join(stateDir, "first-key"), "utf8").then(
    (text) => text.trim(),
    () => "",
  );
  return {
    ...served,
    key,
    dir,
    file,
    stateDir,
    ask: (command, input) => callControl(stateDir, command, input),
    write,
    async [Symbol.asyncDispose]() {
      await served.stop("SIGKILL");
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A gateway process and the upstream behind it. */
export interface DaemonWithUpstream extends AsyncDisposable {
  readonly gateway: Daemon;
  readonly up: TestUpstream;
}

/** Both end together, also if the gateway does not start. */
export async function startDaemonWithUpstream(
  routes: ScriptedRoutes,
  yaml: (url: string) => string,
  more: Omit<DaemonOptions, "yaml"> = {},
): Promise<DaemonWithUpstream> {
  const up = await startUpstream(routes);
  try {
    const gateway = await startDaemon({ ...more, yaml: yaml(up.url) });
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

/**
 * Sends a chat request on a connection of its own, which any worker may get. Resolves to the
 * status.
 */
export async function askOnNewConnection(
  { url, key: first }: Pick<Daemon, "url" | "key">,
  model: string,
  key = first,
): Promise<number> {
  const res = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      connection: "close",
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello." }] }),
  });
  await res.arrayBuffer();
  return res.status;
}

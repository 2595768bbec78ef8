// Environment for client tests: the real gateway, with an upstream controlled by the script and a
// plugin that records the end of each request. Nothing here connects beyond loopback.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject, Outcome } from "tollgate/plugin";
import {
  say,
  scriptedModel,
  protocolAtPath,
  type ScriptedResponse,
  type UpstreamRequest,
  type ScriptedRoutes,
  type ModelScript,
  type ScriptProtocol,
} from "tollgate/testing";
import { startDaemonWithUpstream } from "../kit/process/daemon.ts";
import type { ParsedLogLine } from "../kit/process/program.ts";
import { settled, type Entry } from "./ledger.ts";

/** The gateway's own record of one request. */
export interface Served extends Pick<Outcome, "status" | "mode" | "losses"> {
  readonly path: string;
  /** The client's model name. */
  readonly body: JsonObject;
  readonly calls: readonly { readonly state: string; readonly usage: JsonObject }[];
}

/** One run of a client, from all sides. */
export interface Played {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  /** Generation requests at the upstream. */
  readonly asked: readonly UpstreamRequest[];
  readonly served: readonly Served[];
  /** Other warnings and errors of the gateway. */
  readonly complaints: readonly ParsedLogLine[];
  /** The entries of the ledger that settle calls. */
  readonly settled: readonly Entry[];
}

export interface Command {
  /** Path of the program. Default: this process's Node. */
  readonly program?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface Stage extends AsyncDisposable {
  /** URL of the gateway, without /v1. */
  readonly url: string;
  readonly key: string;
  /** Empty, and removed at the end. */
  folder(): Promise<string>;
  play(script: Script, command: Command): Promise<Played>;
}

export type Script = (asked: UpstreamRequest) => ModelScript | ScriptedResponse;

/**
 * A name that the client knows or not, in this protocol: clients look at the part after the slash.
 */
export const modelOn = (spoken: ScriptProtocol, name: string): string => `${spoken}/${name}`;

const PLAY_MS = 180_000;

const WITNESS = `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({
  api: 1, name: "witness", summary: "Writes down how requests end", sends: "nowhere",
  setup: (_options, ctx) => ({
    settle({ path, body }, { status, mode, losses, calls }) {
      const served = { path, body, status, mode, losses, calls: calls.map(({ state, usage }) => ({ state, usage })) };
      ctx.log.info({ served: JSON.stringify(served) }, "served");
    },
  }),
});
`;

const yaml = (url: string, names: readonly string[]) => `
frontends: [chat-completions, messages, responses, models]
middleware: [auth, { use: ./witness.js }]
store: memory
providers:
  up-chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: "\${env:UP_KEY}" } }
  up-messages: { use: anthropic, with: { base_url: "${url}/v1", api_key: "\${env:UP_KEY}" } }
  up-responses:
    use: openai
    with: { base_url: "${url}/v1", api_key: "\${env:UP_KEY}" }
    models: { model: { protocols: [responses] } }
models:
${names
  .map(
    (name) => `  "${modelOn("chat-completions", name)}": [up-chat/model]
  "${modelOn("messages", name)}": [up-messages/claude-sonnet-4-6]
  "${modelOn("responses", name)}": [up-responses/model]`,
  )
  .join("\n")}
`;

export async function stage(names: readonly string[]): Promise<Stage> {
  const home = await mkdtemp(join(tmpdir(), "tollgate-stage-"));
  const more = { files: { "witness.js": WITNESS }, env: { UP_KEY: "sk-upstream" } };
  const at = await startDaemonWithUpstream(scriptedModel(say("")), (url) => yaml(url, names), more);
  const { gateway, up } = at;
  let folders = 0;

  return {
    url: gateway.url,
    key: gateway.key,
    async folder() {
      const folder = join(home, String(++folders));
      await mkdir(folder);
      return folder;
    },
    async play(script, command) {
      up.reset();
      up.setRoutes(playing(script));
      const from = gateway.log.length;
      const before = (await settled(gateway)).length;
      const ended = await run(command);
      // A GET is the handshake of a WebSocket, which this upstream does not accept.
      const asked = up.requests.filter(
        ({ method, path }) => method === "POST" && protocolAtPath(path) !== undefined,
      );
      const news = () => gateway.log.slice(from);
      const served = () => news().filter((line) => line["served"] !== undefined);
      // The last line may be delayed. A request that never ends is missing.
      for (let i = 0; i < 100 && served().length < asked.length; i++) await sleep(10);
      return {
        ...ended,
        asked,
        served: served().map((line) => JSON.parse(String(line["served"])) as Served),
        complaints: news().filter(({ level }) => level === "warn" || level === "error"),
        settled: (await settled(gateway)).slice(before),
      };
    },
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

function playing(script: Script): ScriptedRoutes {
  const react = (asked: UpstreamRequest) => {
    const said = script(asked);
    return "output" in said ? said.toResponse(asked) : said;
  };
  const paths = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];
  return Object.fromEntries(paths.map((path) => [`POST ${path}`, react]));
}

/** There is no proxy at this address: a client cannot connect beyond loopback. */
const NOWHERE = "http://127.0.0.1:9";
export const ALONE = {
  HTTP_PROXY: NOWHERE,
  HTTPS_PROXY: NOWHERE,
  ALL_PROXY: NOWHERE,
  http_proxy: NOWHERE,
  https_proxy: NOWHERE,
  all_proxy: NOWHERE,
  NO_PROXY: "127.0.0.1",
  no_proxy: "127.0.0.1",
};

/** A client's own program, which can only connect to this machine. */
export async function run(of: Command, timeout = PLAY_MS) {
  const { program = process.execPath, args, env, cwd } = of;
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", LANG: "C.UTF-8", ...ALONE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout,
    killSignal: "SIGKILL",
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

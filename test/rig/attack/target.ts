// The target of the attacks: the gateway as an operator runs it, with a preloaded gauge and a
// controlled upstream.
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import type { Chance } from "../rig.ts";
import { upstream, type Upstream } from "./upstream.ts";
import { freePort } from "../../kit/process/ports.ts";

export interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/**
 * `held`: the longest block of the event loop since the last reading, in ms. `spent`: CPU time of
 * the loop since then, in ms. `live`: bytes in use. `busy`: current cost of the same work relative
 * to its minimum, because other work shares caches and memory.
 */
export interface Gauge {
  readonly held: number;
  readonly spent: number;
  readonly rss: number;
  readonly live: number;
  readonly busy: number;
}

export interface Site extends AsyncDisposable {
  readonly daemon: Daemon;
  readonly up: Upstream;
  readonly chance: Chance;
  key(name: string, more?: object): Promise<string>;
  /** Status 0: the connection was closed. */
  post(
    path: string,
    body: string | Buffer,
    of?: { key?: string; headers?: Record<string, string> },
  ): Promise<Told>;
  /** A socket that has sent these bytes. */
  dial(text: string): Promise<Socket & { said(): string }>;
  gauge(): Promise<Gauge>;
  /** Records how long one request alone blocked the event loop. */
  worst(held: number): void;
  /** A line of figures for the output. */
  noted(figures: string): void;
  readonly notes: string[];
  readonly held: number;
  /** The same after it had time to release memory. */
  settled(): Promise<Gauge>;
}

/** An attack, and the problems in its result: none if it was repelled. */
export interface Attack {
  readonly name: string;
  /** Too long for the short form. */
  readonly long?: boolean;
  run(site: Site): Promise<readonly string[]>;
}

const BILLED =
  "models: { bill: { price: { input: 3, output: 15 }, limits: { context: 100000, output: 4096 } } }";

const yaml = (url: string) => `
frontends: [chat-completions, messages, responses, gemini, images, models, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
shutdown: 2s
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: sk-one, images: [draw] } }
  hasty: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: sk-one }, timeouts: { first_byte: 3s } }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/v1", api_key: sk-two } }
  responses: { use: openai, with: { base_url: "${url}/r/v1", api_key: sk-three } }
  gemini: { use: google, with: { base_url: "${url}", api_key: sk-four } }
  bills-chat: { use: openai-compatible, with: { base_url: "${url}/bill/v1", api_key: sk-five }, ${BILLED} }
  bills-messages: { use: anthropic-compatible, with: { base_url: "${url}/bill/v1", api_key: sk-six }, ${BILLED} }
  bills-responses: { use: openai, with: { base_url: "${url}/bill/v1", api_key: sk-seven }, ${BILLED.replace("bill: {", "bill: { protocols: [responses],")} }
  bills-gemini: { use: google, with: { base_url: "${url}/bill", api_key: sk-eight }, ${BILLED} }
`;

export async function openSite(chance: Chance): Promise<Site> {
  const up = await upstream();
  const gaugePort = await freePort();
  const daemon = await startDaemon({
    yaml: yaml(up.url),
    env: {
      ATTACK_GAUGE: String(gaugePort),
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "gauge.mjs")}`,
    },
  });
  const { port } = new URL(daemon.url);
  const agent = new Agent({ keepAlive: true, maxSockets: 200 });
  const first = daemon.key;

  const ask = (of: {
    port: string | number;
    method: string;
    path: string;
    headers?: object;
    body?: string | Buffer;
    agent?: Agent;
  }) =>
    new Promise<Told>((resolve) => {
      const lost = () => resolve({ status: 0, headers: {}, body: "" });
      const asked = request(
        {
          host: "127.0.0.1",
          port: of.port,
          method: of.method,
          path: of.path,
          headers: { ...of.headers },
          ...(of.agent && { agent: of.agent }),
        },
        (answer) => {
          const pieces: Buffer[] = [];
          answer.on("data", (piece: Buffer) => pieces.push(piece));
          answer.on("error", lost);
          answer.on("end", () =>
            resolve({
              status: answer.statusCode ?? 0,
              headers: answer.headers,
              body: Buffer.concat(pieces).toString(),
            }),
          );
        },
      );
      asked.on("error", lost);
      asked.end(of.body);
    });
  let best = Infinity;
  const gauge = async (path: string): Promise<Gauge> => {
    const { body } = await ask({ port: gaugePort, method: "GET", path });
    const { reference, ...seen } = JSON.parse(body) as Gauge & { reference: number };
    best = Math.min(best, reference);
    return { ...seen, busy: reference / best };
  };

  let worst = 0;
  const notes: string[] = [];
  return {
    daemon,
    up,
    worst: (held) => void (worst = Math.max(worst, held)),
    get held() {
      return worst;
    },
    chance,
    notes,
    noted: (figures) => void notes.push(figures),
    key: async (name, more = {}) =>
      ((await daemon.ask("keys.create", { name, ...more } as never)) as { secret: string }).secret,
    post: (path, body, { key = first, headers = {} } = {}) =>
      ask({
        port,
        method: "POST",
        path,
        agent,
        body,
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          [path.startsWith("/v1/messages") ? "x-api-key" : "authorization"]: path.startsWith(
            "/v1/messages",
          )
            ? key
            : `Bearer ${key}`,
          ...headers,
        },
      }),
    dial: async (text) => {
      const socket = connect(Number(port), "127.0.0.1").on("error", () => {});
      await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
      let said = "";
      socket.on("data", (piece) => (said += piece));
      socket.write(text);
      return Object.assign(socket, { said: () => said });
    },
    gauge: () => gauge("/"),
    settled: () => gauge("/settle"),
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await daemon[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

// Target of hostile inputs: a gateway with a preloaded gauge, and an upstream that responds well,
// or as its prompt states.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  jsonResponse,
  startUpstream,
  type ScriptedResponse,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { goodAnswer } from "../faults/good-responses.ts";
import { edited, read } from "./input.ts";
import { ANSWERS, OPERATORS } from "./sse.ts";
import { freePort } from "../../kit/process/ports.ts";

/**
 * Resources of the process. `held`: the longest block of its event loop since the last reading, in
 * ms of CPU time.
 */
export interface Gauge {
  readonly held: number;
  readonly live: number;
  readonly descriptors: number;
}

export interface FuzzSite extends AsyncDisposable {
  readonly daemon: Daemon;
  readonly up: TestUpstream;
  /** After it had time to release memory. */
  gauge(): Promise<Gauge>;
}

/** Models of each provider, so that a failing one is not called again soon. */
export const FRESH = 2_000;

const yaml = (url: string) => `
frontends: [chat-completions, messages, responses, images, models]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-proxied] } }]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
retries: { per_target: 1, total: 1 }
request_history: 1000
timeouts: { connect: 2s, first_byte: 5s, idle: 5s, total: 10s }
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: "${KEY}", images: ["draw*"], list_models: false }, models: { draw: { operation: image } } }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/v1", api_key: "${KEY}" } }
  responses: { use: openai, with: { base_url: "${url}/v1", api_key: "${KEY}" }, models: { m: { protocols: [responses] }, ${Array.from({ length: FRESH }, (_, i) => `s${i}: { protocols: [responses] }`).join(", ")} } }
  google: { use: google, with: { base_url: "${url}", api_key: "${KEY}" }, models: { gemini-m-image: { operation: image } } }
`;
const KEY = "${env:RIG_KEY}";

/** Encoding of a response in a prompt. */
export const SPELLED = /fuzz (sse:\d+:[\d.+]*)/;

function answer(asked: UpstreamRequest): ScriptedResponse {
  const spelled = SPELLED.exec(asked.body.toString("latin1"))?.[1];
  if (spelled === undefined) return well(asked);
  const { input } = read(spelled);
  const recorded = ANSWERS[input.base]!;
  return {
    headers: { "content-type": recorded.type },
    body: edited(recorded.body, input, OPERATORS),
    framing: recorded.stream ? "chunked" : "length",
    // A deterministic split.
    chunks: { seed: spelled.length, max: 4_000 },
  };
}

function well(asked: UpstreamRequest): ScriptedResponse {
  try {
    const { type, bytes } = goodAnswer(asked);
    return { headers: { "content-type": type }, body: bytes };
  } catch {
    return jsonResponse({ error: { message: "What is that?" } }, 400);
  }
}

/** `plugin`: a plugin in its chain. */
export async function openSite(plugin?: string): Promise<FuzzSite> {
  const up = await startUpstream({
    "POST /*": answer,
    "GET /*": jsonResponse({ object: "list", data: [] }),
  });
  const port = await freePort();
  const daemon = await startDaemon({
    yaml: plugin ? yaml(up.url).replace("limits,", "limits, ./planted.ts,") : yaml(up.url),
    ...(plugin && { files: { "planted.ts": plugin } }),
    env: {
      RIG_KEY: "sk-upstream-rig",
      ATTACK_GAUGE: String(port),
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "../attack/gauge.mjs")}`,
    },
  });
  return {
    daemon,
    up,
    async gauge() {
      const said = await fetch(`http://127.0.0.1:${port}/settle`);
      const { held, live } = (await said.json()) as Gauge;
      return { held, live, descriptors: readdirSync(`/proc/${daemon.pid}/fd`).length };
    },
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await up.close();
    },
  };
}

// The three paths for hostile inputs: bytes on a client's socket, bodies, and responses of
// providers. Each sends one input and returns the violations, usually none.
import { connect } from "node:net";
import type { Daemon } from "../../kit/process/daemon.ts";
import { seen, type Heard } from "../faults/client-view.ts";
import { FRONTENDS, type FrontendName } from "../faults/request-paths.ts";
import { OPERATORS as ON_HTTP, REQUESTS } from "./http.ts";
import { edited, pick, spelled, type HostileInput } from "./input.ts";
import { BODIES, OPERATORS as ON_JSON } from "./json.ts";
import { FRESH } from "./target.ts";
import { ANSWERS, OPERATORS as ON_SSE } from "./sse.ts";

export interface Lane {
  readonly bases: number;
  readonly operators: number;
  /** At once. */
  readonly width: number;
  play(daemon: Daemon, input: HostileInput): Promise<string | undefined>;
}

/** Maximum time of an input. One that only waits for its own rest is closed earlier. */
const HANG_MS = 15_000;
const REST_MS = 60;

async function post({ url, key }: Daemon, path: string, body: string): Promise<Heard> {
  const began = performance.now();
  const over = (status: number, headers: Headers, text: string): Heard => ({
    status,
    headers,
    text,
    cut: false,
    ms: performance.now() - began,
  });
  try {
    const answer = await fetch(url + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(path === "/v1/messages" ? { "x-api-key": key } : { authorization: `Bearer ${key}` }),
      },
      body,
      signal: AbortSignal.timeout(HANG_MS),
    });
    return over(answer.status, answer.headers, await answer.text().catch(() => "cut off"));
  } catch (problem) {
    return over(0, new Headers(), String(problem));
  }
}

/** Rejected in the format of its protocol, or answered. */
const json: Lane = {
  bases: BODIES.length,
  operators: ON_JSON.length,
  width: 24,
  async play(daemon, input) {
    const { path, text } = BODIES[input.base]!;
    const { status, text: said } = await post(daemon, path, edited(text, input, ON_JSON));
    if (status === 0) return `no answer: ${said}`;
    if (status >= 500) return `${status} ${said.slice(0, 300)}`;
    return status === 200 || isError(said)
      ? undefined
      : `${status} without an error: ${said.slice(0, 300)}`;
  },
};

function isError(text: string): boolean {
  try {
    return typeof JSON.parse(text).error?.message === "string";
  } catch {
    return false;
  }
}

/** A failure causes a cooldown, so the models are used in turn. */
const MODELS = {
  chat: "chat/s",
  messages: "messages/s",
  responses: "responses/s",
  google: "google/gemini-s",
} as const;
let asked = 0;

const CHATS = [
  "chat-completions",
  "messages",
  "responses",
] as const satisfies readonly FrontendName[];

/** A complete response, an error in it, or an error in its place, and never an internal error. */
const sse: Lane = {
  bases: ANSWERS.length,
  operators: ON_SSE.length,
  width: 24,
  async play(daemon, input) {
    const { into, stream } = ANSWERS[input.base]!;
    const from = pick(CHATS, input.edits.length + (input.edits[0]?.[2] ?? 0));
    const { path, body } = FRONTENDS[from];
    const prompt = `fuzz ${spelled("sse", input)}`;
    const heard = await post(
      daemon,
      path,
      JSON.stringify({ model: `${MODELS[into]}${asked++ % FRESH}`, ...body(prompt), stream }),
    );
    const got = seen(from, stream, heard);
    if ("problem" in got) return `${from}: ${got.problem}`;
    return got.client === 500 || ("code" in got && got.code === "internal_error")
      ? `${from}: ${got.client}`
      : undefined;
  },
};

const STATUS = /HTTP\/1\.1 (\d{3})[^\r\n]*\r\n/g;
/**
 * Rejections of protocols that this server does not support, which HTTP defines as statuses above
 * 500.
 */
const SPOKEN = new Set([501, 505]);

const http: Lane = {
  bases: REQUESTS.length,
  operators: ON_HTTP.length,
  width: 64,
  async play(daemon, input) {
    const text = edited(REQUESTS[input.base]!.replace("KEY", daemon.key), input, ON_HTTP);
    const said = await exchanged(Number(new URL(daemon.url).port), text);
    for (const [, status] of said.matchAll(STATUS))
      if (Number(status) >= 500 && !SPOKEN.has(Number(status))) return said.slice(0, 400);
    return said === "" || said.startsWith("HTTP/1.1 ")
      ? undefined
      : `no HTTP: ${said.slice(0, 200)}`;
  },
};

/** Bytes received until it closes or falls silent. */
function exchanged(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.from(text, "latin1")));
    const done = () => {
      socket.destroy();
      resolve(said);
    };
    socket.setTimeout(REST_MS, done);
    socket.on("data", (bytes) => (said += bytes.toString("latin1")));
    socket.on("error", done).on("close", done);
  });
}

export const LANES = { http, json, sse } as const;
export type LaneName = keyof typeof LANES;

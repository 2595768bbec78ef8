// An upstream that fails every call for some time, with official SDKs that retry by themselves. The
// rig counts the calls that the gateway sends during it, and after the recovery.
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { say, type ScriptedResponse } from "tollgate/testing";
import { startDaemon } from "../../kit/process/daemon.ts";
import { runPaced } from "../load/paced-loop.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

/** Calls per second at the upstream, by second from the start. */
interface History {
  /** Seconds before, during, and after the outage. */
  readonly calm: number;
  readonly storm: number;
  /** Client requests per second, if the machine can send them. */
  readonly rate: number;
  readonly upstream: readonly number[];
  /** Requests at the gateway during the outage. */
  readonly received: number;
  /** Client requests in this time. An SDK makes several requests of one. */
  readonly asked: number;
  /** After the outage, the last seconds apart: client requests that failed. */
  readonly lost: number;
}

const MOST_OF_RECEIVED = 1.2;
const MOST_OF_ASKED = 1.5;
const MOST_OF_STEADY = 1.5;

const sum = (of: readonly number[]): number => of.reduce((all, one) => all + one, 0);

/** In two seconds, because the number in one depends on its start. */
const peakOf = (of: readonly number[]): number =>
  Math.max(...of.slice(1).map((count, i) => (count + of[i]!) / 2));

/** Violations. */
export function judge({ calm, storm, rate, upstream, received, asked, lost }: History): string[] {
  const wrong: string[] = [];
  // The first second is a start and not counted.
  const steady = Math.max(rate, sum(upstream.slice(1, calm)) / (calm - 1));
  const during = sum(upstream.slice(calm, calm + storm));
  const peak = peakOf(upstream.slice(calm + storm));
  if (received < asked) wrong.push(`${asked} calls made only ${received} requests`);
  if (during > MOST_OF_RECEIVED * received)
    wrong.push(`${during} calls upstream for ${received} requests`);
  if (during > MOST_OF_ASKED * asked) wrong.push(`${during} calls upstream for ${asked} asked`);
  if (during < 1) wrong.push("upstream was never asked whether it was well again");
  if (peak > MOST_OF_STEADY * steady)
    wrong.push(`a herd of ${peak} a second after the storm, ${steady.toFixed(1)} before it`);
  if (sum(upstream.slice(-3)) < steady / 2) wrong.push("upstream is well again, and is not asked");
  if (lost > 0) wrong.push(`${lost} calls failed long after the storm`);
  return wrong;
}

export interface StormOptions {
  readonly calm: number;
  readonly storm: number;
  readonly after: number;
  readonly rate: number;
  readonly seed: number;
  /** A replacement for the gateway that tries each request three times. */
  readonly naive?: boolean;
}

export async function storm(of: StormOptions): Promise<RigResult> {
  const chanced = createChance(of.seed);
  let began = performance.now();
  const seconds = of.calm + of.storm + of.after;
  const second = () => Math.floor((performance.now() - began) / 1_000);
  const counts = Array.from({ length: seconds }, () => 0);
  const storming = () => second() >= of.calm && second() < of.calm + of.storm;
  const up = await sky(chanced, storming, () => {
    if (second() < seconds) counts[second()]!++;
  });
  const gate = of.naive ? await naive(up.url) : await real(up.url);
  // The start does not count as normal operation.
  began = performance.now();
  let [received, asked, lost] = [0, 0, 0];
  const counted: typeof fetch = (...args) => {
    if (storming()) received++;
    return fetch(...args);
  };
  try {
    const ask = clients(gate, counted);
    await runPaced(
      of.rate,
      () => second() < seconds,
      (i) => {
        if (storming()) asked++;
        const late = second() >= of.calm + of.storm + of.after / 2;
        ask(i).catch(() => {
          if (late && second() < seconds) lost++;
        });
      },
    );
    const history = {
      rate: of.rate,
      calm: of.calm,
      storm: of.storm,
      upstream: counts,
      received,
      asked,
      lost,
    };
    const wrong = judge(history);
    return {
      wrong,
      counts: {
        asked,
        received,
        upstream: sum(counts.slice(of.calm, of.calm + of.storm)),
        steady: Math.round(sum(counts.slice(1, of.calm)) / (of.calm - 1)),
        peak: peakOf(counts.slice(of.calm + of.storm)),
        seconds: counts.join(","),
      },
      seed: of.seed,
    };
  } finally {
    await gate.end();
    up.close();
  }
}

/** Clients: each in its own protocol, with its SDK's default retries. */
function clients({ url, key }: { url: string; key: string }, counted: typeof fetch) {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, fetch: counted });
  const anthropic = new Anthropic({ baseURL: url, apiKey: key, fetch: counted });
  const hi = [{ role: "user" as const, content: "Hi" }];
  return async (i: number): Promise<void> => {
    if (i % 2 === 0) await openai.chat.completions.create({ model: "up/m", messages: hi });
    else await anthropic.messages.create({ model: "up/m", max_tokens: 10, messages: hi });
  };
}

/**
 * Upstream: it responds, and during the outage returns 503 or 429, with or without a retry time.
 */
async function sky(chanced: Chance, storming: () => boolean, came: () => void) {
  const server = createServer((req, res) => {
    // Model lists and other requests that are no calls.
    if (req.method !== "POST") return void res.writeHead(404).end();
    came();
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    req.on("end", () =>
      storming() ? thunder(res, chanced) : fair(req, Buffer.concat(parts), res),
    );
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function thunder(res: ServerResponse, chanced: Chance): void {
  res.writeHead(chanced.often(0.5) ? 503 : 429, {
    "content-type": "application/json",
    ...(chanced.often(0.3) && { "retry-after": String(1 + chanced.below(3)) }),
  });
  res.end('{"error":{"message":"Not now.","type":"server_error"}}');
}

function fair(req: IncomingMessage, body: Buffer, res: ServerResponse): void {
  const path = req.url!;
  const asked = { path, body, json: () => JSON.parse(body.toString()) as unknown, number: 1 };
  const { headers, body: said }: ScriptedResponse = say("Hello")
    .usage({ input: 10, output: 8 })
    .toResponse(asked as never);
  res.writeHead(200, headers as Record<string, string>);
  res.end(
    [said]
      .flat()
      .map((piece) => textOf(piece as never))
      .join(""),
  );
}

const textOf = (piece: string | Buffer | { bytes: string | Buffer }): string =>
  typeof piece === "string" || Buffer.isBuffer(piece) ? String(piece) : String(piece.bytes);

async function real(url: string) {
  const daemon = await startDaemon({
    yaml: `
frontends: [chat-completions, messages]
middleware: [auth, limits, usage]
store: memory
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k } }
`,
  });
  return {
    url: daemon.url,
    key: daemon.key,
    end: () => daemon[Symbol.asyncDispose](),
  };
}

/** A gateway that repeats each failed request twice, immediately. */
async function naive(url: string) {
  const server = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    req.on("end", () => send(2));
    const send = (more: number): void => {
      const { pathname } = new URL(req.url!, url);
      const out = request(`${url}${pathname}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
      });
      out.on("response", (answer) => {
        if (answer.statusCode! >= 400 && more > 0) return answer.resume() && send(more - 1);
        res.writeHead(answer.statusCode!, answer.headers);
        return answer.pipe(res);
      });
      out.on("error", () => res.destroy());
      out.end(Buffer.concat(parts));
    };
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key: "k",
    async end() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export const rig: Rig = {
  options: { calm: 15, storm: 60, after: 45, rate: 100, seed: Date.now() % 1e6 },
  run: ({ calm, storm: seconds, after, rate, seed }) =>
    storm({
      calm: Number(calm),
      storm: Number(seconds),
      after: Number(after),
      rate: Number(rate),
      seed: Number(seed),
    }),
};

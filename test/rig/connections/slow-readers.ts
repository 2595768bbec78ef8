// Clients that request a long stream and stop reading. The gateway stops reading from upstream, and
// keeps almost nothing in memory for them. After the time limit they are disconnected, and each
// call has its row.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { freePort } from "../../kit/process/ports.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import { createEndlessUpstream, type StreamProtocol } from "./endless-upstream.ts";

/** Maximum memory of all of them together. */
const MOST_BYTES = 128 * 1024 * 1024;
/** Memory of each after a garbage collection: its share of the total. */
const MOST_EACH = 256 * 1024;
const HOLD_MS = 4_000;
/** Clients that read, before the measurement. */
const WARM = 20;
/** More would be a flood, which another rig tests. */
const AT_ONCE = 10;
const WRITE_MS = 10_000;

/** A client's request: path and body. */
const CLIENTS: Record<
  StreamProtocol,
  (model: string, words: string) => [path: string, body: object]
> = {
  chat: (model, words) => [
    "/v1/chat/completions",
    { model, stream: true, messages: [{ role: "user", content: words }] },
  ],
  messages: (model, words) => [
    "/v1/messages",
    { model, stream: true, messages: [{ role: "user", content: words }], max_tokens: 9_000 },
  ],
  responses: (model, words) => ["/v1/responses", { model, stream: true, input: words }],
  gemini: (model, words) => [
    `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    { contents: [{ role: "user", parts: [{ text: words }] }] },
  ],
};

export interface ReadersOptions {
  readers: number;
  /** Protocols of the clients and the upstream. */
  from: StreamProtocol;
  to: StreamProtocol;
  /** Of each answer. */
  bytes: number;
  seed: number;
  /** A proxy without backpressure replaces the gateway. */
  heedless?: boolean;
}

export async function readers(of: ReadersOptions): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  await using up = await createEndlessUpstream(of.bytes);
  await using subject = of.heedless ? await heedless(`${up.url}/${of.to}`) : await gateway(up.url);
  const visitors: Socket[] = [];
  try {
    // The same traffic with readers: memory that a process keeps for later requests does not count.
    for (let i = 0; i < WARM; i += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, () => visit(subject, of, 0, true)));
    const held = (await subject.live?.()) ?? 0;
    const before = await rssOf(subject.pid);
    const warmed = up.sent();
    for (let i = 0; i < of.readers; i += AT_ONCE)
      visitors.push(
        ...(await Promise.all(
          Array.from({ length: Math.min(AT_ONCE, of.readers - i) }, () =>
            visit(subject, of, chanced.below(100_000), false),
          ),
        )),
      );
    let most = 0;
    for (const end = performance.now() + HOLD_MS; performance.now() < end; await sleep(100))
      most = Math.max(most, (await rssOf(subject.pid)) - before);
    // The last event of a response repeats all of its text, which is buffered once.
    const words = of.from === "responses" && of.to !== "responses" ? up.sent() - warmed : 0;
    if (most > MOST_BYTES + words) wrong.push(`memory grew by ${mib(most)}`);
    const each = (((await subject.live?.()) ?? held) - held) / of.readers;
    if (each > MOST_EACH + words / of.readers) wrong.push(`each holds ${kib(each)}`);
    if (subject.rows) await cutOff(of, subject.rows, up.open, wrong);
    const sent = up.sent();
    return {
      wrong,
      counts: { readers: of.readers, grew: mib(most), each: kib(each), sent: mib(sent) },
      seed: of.seed,
    };
  } finally {
    for (const each of visitors) each.destroy();
  }
}

const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)}MiB`;
const kib = (bytes: number): string => `${Math.round(bytes / 1024)}KiB`;

/** A call that takes longer to end was forgotten. */
const PATIENCE_MS = 30_000;

async function cutOff(
  { readers }: ReadersOptions,
  rows: () => Promise<number>,
  open: () => number,
  wrong: string[],
): Promise<void> {
  for (const end = performance.now() + WRITE_MS + PATIENCE_MS; open() > 0; await sleep(100))
    if (performance.now() > end)
      return void wrong.push(`${open()} answers of upstream still go on`);
  for (
    const end = performance.now() + PATIENCE_MS;
    (await rows()) < readers + WARM;
    await sleep(100)
  )
    if (performance.now() > end)
      return void wrong.push(`${await rows()} rows for ${readers + WARM} calls`);
}

interface Subject extends AsyncDisposable {
  readonly url: string;
  readonly key: string;
  readonly pid: number;
  rows?(): Promise<number>;
  /** Bytes after a garbage collection. */
  live?(): Promise<number>;
}

const yaml = (url: string) => `
frontends: [chat-completions, messages, responses, gemini]
middleware: [auth]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
timeouts: { client_write: ${WRITE_MS}ms }
shutdown: 1s
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k }, models: { model: {} } }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages/v1", api_key: k }, models: { model: {} } }
  responses: { use: openai, with: { base_url: "${url}/responses/v1", api_key: k }, models: { model: { protocols: [responses] } } }
  gemini: { use: google, with: { base_url: "${url}/gemini", api_key: k }, models: { model: {} } }
`;

async function gateway(url: string): Promise<Subject> {
  const port = await freePort();
  const daemon = await startDaemon({
    yaml: yaml(url),
    env: {
      ATTACK_GAUGE: String(port),
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "../attack/gauge.mjs")}`,
    },
  });
  return Object.assign(daemon, {
    rows: () => rowsOf(daemon),
    async live() {
      const said = await fetch(`http://127.0.0.1:${port}/settle`);
      return ((await said.json()) as { live: number }).live;
    },
  });
}

async function rowsOf(daemon: Daemon): Promise<number> {
  const { total } = (await daemon.ask("ledger.totals", {})) as unknown as {
    total: { calls: number };
  };
  return total.calls;
}

/**
 * A proxy with a defect: it writes everything from the upstream, whether or not the client reads.
 */
async function heedless(url: string): Promise<Subject> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", HEEDLESS(url)]);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return {
    url: line.toString().trim(),
    key: "k",
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
    },
  };
}

const HEEDLESS = (url: string) => `
import { createServer, request } from "node:http";
const server = createServer((req, res) => {
  const out = request("${url}" + req.url, { method: "POST", agent: false }, (answer) => {
    res.writeHead(200);
    answer.on("data", (chunk) => res.write(chunk));
    answer.on("end", () => res.end());
  });
  out.on("error", () => {});
  res.on("error", () => {});
  req.pipe(out);
}).listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
`;

/** Sends a request and reads this much, or to the end. */
async function visit(
  { url, key }: Subject,
  { from, to }: ReadersOptions,
  bytes: number,
  whole: boolean,
): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  const [path, asked] = CLIENTS[from](`${to}/model`, whole ? "short" : "long");
  const body = JSON.stringify(asked);
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\nx-api-key: ${key}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await new Promise<void>((resolve) => {
    let seen = 0;
    socket.on("data", (piece: Buffer) => {
      seen += piece.length;
      if (whole || seen < bytes) return;
      socket.pause();
      resolve();
    });
    socket.on("close", () => resolve());
  });
  if (whole) socket.destroy();
  return socket;
}

async function rssOf(pid: number): Promise<number> {
  const said = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(said)![1]) * 1024;
}

export const rig: Rig = {
  options: { readers: 500, mib: 20, from: "chat", to: "chat", seed: Date.now() % 1e6 },
  run: ({ readers: count, mib: size, from, to, seed }) =>
    readers({
      readers: Number(count),
      bytes: Number(size) * 1024 * 1024,
      from: from as StreamProtocol,
      to: to as StreamProtocol,
      seed: Number(seed),
    }),
};

// One large batch, and the memory of the gateway's process while the file is uploaded, the batch is
// created, its lines are sent, and its results are read. The client and the provider run in the
// process of this rig.
import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readJsonLines } from "tollgate/protocols/batches";
import { startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import type { Rig, RigResult } from "../rig.ts";
import type { ProcessMemory } from "./memory-probe.ts";

const PATH = "/v1/chat/completions";

export interface BatchMemory {
  readonly lines: number;
  readonly megabytes: number;
  /**
   * Ordinary requests before the batch, so that the gateway is idle as in use, not as after its
   * start: as many as lines.
   */
  readonly requests: number;
  /** Memory above that of the idle process that the batch may use. */
  readonly limitMib: number;
}

export async function runBatchMemory(
  { lines, megabytes, requests, limitMib }: BatchMemory,
  say: (line: string) => void = () => {},
): Promise<RigResult> {
  await using provider = await startProvider();
  const probe = join(tmpdir(), `tollgate-probe-${randomBytes(6).toString("hex")}`);
  await using gateway = await startDaemon({
    yaml: `
frontends: [chat-completions, jobs]
providers:
  fake:
    use: openai-compatible
    with: { base_url: "${provider.url}", api_key: secret, batches: true }
    models: { m: { price: { input: 1, output: 2 } } }
middleware: [auth]
`,
    env: {
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "memory-probe.ts")}`,
      TOLLGATE_MEMORY_PROBE: probe,
    },
  });
  const client = { url: gateway.url, key: gateway.key };
  const counts: Record<string, number> = { lines, megabytes, requests };
  const wrong: string[] = [];
  const report = (phase: string, idle: ProcessMemory, now: ProcessMemory) => {
    const above = (part: keyof ProcessMemory) => mib(now[part] - idle[part]);
    const resident = above("resident");
    counts[phase] = resident;
    say(
      `${phase}: ${resident} MiB above idle (young ${above("young")}, old ${above("old")}, external ${above("external")})`,
    );
    if (resident > limitMib) wrong.push(`${phase} uses ${resident} MiB above idle`);
  };
  await runBatch(client, 200, 4_000, async () => {});
  const { now: fresh } = await readProbe(probe, "collect");
  await sendRequests(client, requests);
  const { now: idle } = await readProbe(probe, "read");
  counts["started"] = mib(fresh.resident);
  counts["idle"] = mib(idle.resident);
  say(`after the start: ${mib(fresh.resident)} MiB`);
  say(
    `idle after ${requests} requests: ${mib(idle.resident)} MiB (young ${mib(idle.young)}, old ${mib(idle.old)})`,
  );
  const received = await runBatch(client, lines, (megabytes * 1_000_000) / lines, async (phase) =>
    report(phase, idle, (await readProbe(probe, "read")).peak),
  );
  report("after a collection", idle, (await readProbe(probe, "collect")).now);
  if (received !== lines) wrong.push(`${received} results, not ${lines}`);
  return { wrong, counts, seed: 0 };
}

const mib = (bytes: number): number => Math.round(bytes / 1_048_576);

/** Reads the memory of the gateway, now and at its highest since the last reading. */
async function readProbe(
  path: string,
  command: "read" | "collect",
): Promise<{ readonly now: ProcessMemory; readonly peak: ProcessMemory }> {
  const socket = createConnection(path);
  socket.write(command);
  let text = "";
  for await (const piece of socket) text += String(piece);
  return JSON.parse(text) as never;
}

/** Sends requests of 4 kB, 32 at a time. */
async function sendRequests({ url, key }: Client, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const messages = [{ role: "user", content: "word ".repeat(800) }];
  const body = JSON.stringify({ model: "fake/m", max_tokens: 10, messages });
  let left = count;
  const send = async () => {
    while (left-- > 0) {
      const response = await fetch(`${url}${PATH}`, { method: "POST", headers, body });
      const text = await response.text();
      if (!response.ok) throw new Error(`${response.status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 32 }, send));
}

interface Client {
  readonly url: string;
  readonly key: string;
}

/** Runs a batch, and returns the number of its results. Calls `onPhase` at the end of each phase. */
async function runBatch(
  client: Client,
  lines: number,
  lineBytes: number,
  onPhase: (name: string) => Promise<void>,
): Promise<number> {
  const file = await upload(client, lines, lineBytes);
  await onPhase("upload");
  const body = JSON.stringify({ input_file_id: file, endpoint: PATH, completion_window: "24h" });
  const created = await fetchJson(client, "/v1/batches", { method: "POST", body });
  await onPhase("create");
  let batch = created;
  await until(
    async () => {
      batch = await fetchJson(client, `/v1/batches/${String(created["id"])}`);
      return ["completed", "failed", "expired"].includes(String(batch["status"]));
    },
    undefined,
    1_000_000,
  );
  await onPhase("run");
  const response = await fetch(
    `${client.url}/v1/files/${String(batch["output_file_id"])}/content`,
    {
      headers: { authorization: `Bearer ${client.key}` },
    },
  );
  let found = 0;
  for await (const _ of readJsonLines(response.body as unknown as AsyncIterable<Uint8Array>))
    found++;
  await onPhase("download");
  return found;
}

async function fetchJson(
  { url, key }: Client,
  path: string,
  init: RequestInit = {},
): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${url}${path}`, { ...init, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** Sends a file as it is created, and returns its ID. */
async function upload({ url, key }: Client, lines: number, lineBytes: number): Promise<string> {
  const sent = request(`${url}/v1/files`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "multipart/form-data; boundary=edge",
    },
  });
  const responded = once(sent, "response") as Promise<[IncomingMessage]>;
  const send = async (text: string) => {
    if (!sent.write(text)) await once(sent, "drain");
  };
  await send(
    '--edge\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--edge\r\n' +
      'content-disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n',
  );
  for (let n = 0; n < lines; n++) {
    const head = `{"custom_id":"request-${n}","method":"POST","url":"${PATH}","body":{"model":"fake/m","max_tokens":10,"messages":[{"role":"user","content":"`;
    await send(`${head}${"word ".repeat(Math.max(0, lineBytes - head.length - 8) / 5)}"}]}}\n`);
  }
  sent.end("\r\n--edge--\r\n");
  const [response] = await responded;
  let text = "";
  for await (const piece of response) text += String(piece);
  return (JSON.parse(text) as { id: string }).id;
}

/** Starts a provider with OpenAI's files and batches. It keeps only the IDs of the lines. */
async function startProvider() {
  const files = new Map<string, string[]>();
  const batches = new Map<string, string>();
  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const { pathname } = new URL(req.url!, "http://provider");
    const [, , kind, id] = pathname.split("/");
    const reply = (value: object) => res.end(JSON.stringify(value));
    if (kind === "chat") {
      res.setHeader("content-type", "application/json");
      return reply(resultOf("chat").response.body);
    }
    if (req.method === "POST" && kind === "files") {
      const ids: string[] = [];
      for await (const line of readJsonLines(req)) ids.push(String(line["custom_id"]));
      const name = `file-${files.size}`;
      files.set(
        name,
        ids.filter((one) => one !== "undefined"),
      );
      return reply({ id: name, status: "processed" });
    }
    if (req.method === "POST" && kind === "batches") {
      let text = "";
      for await (const piece of req) text += String(piece);
      const { input_file_id } = JSON.parse(text) as { input_file_id: string };
      const name = `batch-${batches.size}`;
      batches.set(name, input_file_id);
      return reply({ id: name, status: "validating" });
    }
    if (kind === "batches" && id)
      return reply({ id, status: "completed", output_file_id: `out-${batches.get(id)}` });
    if (kind === "batches") return reply({ data: [] });
    if (req.method === "GET" && id?.startsWith("out-")) {
      for (const line of files.get(id.slice(4))!)
        if (!res.write(`${JSON.stringify(resultOf(line))}\n`)) await once(res, "drain");
      return res.end();
    }
    return reply({ id, deleted: true, data: [] });
  };
  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const resultOf = (id: string) => ({
  id: `r-${id}`,
  custom_id: id,
  response: {
    status_code: 200,
    request_id: `q-${id}`,
    body: {
      id: `chatcmpl-${id}`,
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          finish_reason: "stop",
          message: { role: "assistant", content: "an answer of some words ".repeat(20) },
        },
      ],
      usage: { prompt_tokens: 900, completion_tokens: 10, total_tokens: 910 },
    },
  },
  error: null,
});

export const rig: Rig = {
  options: { lines: 50_000, megabytes: 200, requests: 50_000, limit: 64 },
  run: ({ lines, megabytes, requests, limit }, say) =>
    runBatchMemory(
      {
        lines: Number(lines),
        megabytes: Number(megabytes),
        requests: Number(requests),
        limitMib: Number(limit),
      },
      say,
    ),
};

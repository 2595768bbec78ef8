// A provider with OpenAI's files and batches over HTTP, as real providers fail: requests that fail,
// answers that are lost or late, and results that are missing at first, doubled, or out of order.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { readJsonLines } from "tollgate/protocols/batches";
import type { Chance } from "../rig.ts";

/** Longest delay of a late answer in milliseconds. */
const LATE_MS = 150;

export interface SentLine {
  readonly id: string;
  readonly input: number;
  readonly output: number;
  /** Whether the provider answers the line, and bills it. */
  readonly isBilled: boolean;
}

export interface SentBatch {
  readonly id: string;
  /** Key of the gateway's provider batch. */
  readonly key: string;
  readonly file: string;
  readonly lines: readonly SentLine[];
  polls: number;
  reads: number;
}

export interface UnreliableProvider extends AsyncDisposable {
  readonly url: string;
  readonly batches: readonly SentBatch[];
  /** Ends the failures, so that all work can end. */
  recover(): void;
}

export async function startUnreliableProvider(chance: Chance): Promise<UnreliableProvider> {
  const files = new Map<string, readonly SentLine[]>();
  const batches: SentBatch[] = [];
  let fails = true;
  const happens = (oneIn: number): boolean => fails && chance.below(oneIn) === 0;
  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const url = new URL(req.url!, "http://provider");
    const [, , kind, id, what] = url.pathname.split("/");
    const isLost = happens(12);
    if (happens(12)) {
      req.resume();
      res.statusCode = 503;
      return res.end('{"error":{"message":"busy"}}');
    }
    const reply = async (value: object) => {
      if (happens(8)) await sleep(chance.below(LATE_MS));
      if (isLost) return res.destroy();
      res.end(JSON.stringify(value));
    };
    if (req.method === "POST" && kind === "files") {
      const lines: SentLine[] = [];
      for await (const line of readJsonLines(req)) if (line["body"]) lines.push(toLine(line));
      const name = `file-${files.size}`;
      files.set(name, lines);
      return reply({ id: name, status: "processed" });
    }
    if (req.method === "POST" && kind === "batches" && id === undefined) {
      let text = "";
      for await (const piece of req) text += String(piece);
      const { input_file_id: file, metadata } = JSON.parse(text) as {
        input_file_id: string;
        metadata: { tollgate_job: string };
      };
      const key = metadata.tollgate_job;
      const lines = files.get(file)!;
      batches.push({ id: `batch-${batches.length}`, key, file, lines, polls: 0, reads: 0 });
      return reply(show(batches.at(-1)!));
    }
    if (kind === "batches" && id === undefined) {
      const newest = batches.toReversed();
      const after = url.searchParams.get("after");
      const start = newest.findIndex((one) => one.id === after) + 1;
      const limit = Number(url.searchParams.get("limit") ?? 20);
      return reply({ data: newest.slice(start, start + limit).map(show) });
    }
    const batch = batches.find((one) => one.id === id || `out-${one.id}` === id);
    if (kind === "batches" && batch) {
      batch.polls++;
      return reply(show(batch));
    }
    if (batch && what === "content") {
      for (const line of resultsOf(batch, happens)) res.write(`${JSON.stringify(line)}\n`);
      return isLost ? res.destroy() : res.end();
    }
    return reply({ id, deleted: true });
  };
  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    batches,
    recover() {
      fails = false;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Usage follows from the length of the text, so that it is the same each time. */
function toLine(line: { readonly [name: string]: unknown }): SentLine {
  const length = JSON.stringify(line["body"]).length;
  return {
    id: String(line["custom_id"]),
    input: length,
    output: (length % 7) + 1,
    isBilled: length % 6 !== 0,
  };
}

const show = ({ id, key, file, polls }: SentBatch): object => ({
  id,
  object: "batch",
  created_at: Math.floor(Date.now() / 1_000),
  input_file_id: file,
  metadata: { tollgate_job: key },
  status: polls < 2 ? "in_progress" : "completed",
  ...(polls >= 2 && { output_file_id: `out-${id}` }),
});

function resultsOf(batch: SentBatch, happens: (oneIn: number) => boolean): readonly object[] {
  batch.reads++;
  const all = batch.lines.flatMap((line) =>
    happens(4) ? [encodeResult(line), encodeResult(line)] : [encodeResult(line)],
  );
  const some = batch.reads === 1 && happens(3) ? all.slice(0, all.length / 2) : all;
  return happens(2) ? some.toReversed() : some;
}

const encodeResult = ({ id, input, output, isBilled }: SentLine): object => ({
  id: `r-${id}`,
  custom_id: id,
  response: {
    status_code: isBilled ? 200 : 400,
    request_id: `q-${id}`,
    body: isBilled
      ? {
          id: `chatcmpl-${id}`,
          object: "chat.completion",
          created: 1,
          model: "m",
          choices: [
            { index: 0, finish_reason: "stop", message: { role: "assistant", content: "yes" } },
          ],
          usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
        }
      : { error: { message: "no", type: "invalid_request_error" } },
  },
  error: null,
});

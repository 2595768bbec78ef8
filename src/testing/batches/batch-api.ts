// A fake batch API. It keeps the batches that a provider plugin submits, runs them by a script, and
// knows what it bills. It is used over HTTP, as routes of a fake upstream, or in the process, which
// is fast enough for thousands of batches.
import { createFault } from "../../model/error.ts";
import type { Usage } from "../../model/usage.ts";
import type { BatchClient } from "../../plugin/batch.ts";
import { createSeededRandom } from "../random.ts";
import { say, protocolAtPath } from "../upstream/model-script.ts";
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import type { ScriptedRoutes } from "../upstream/upstream.ts";
import type {
  BatchApiRequest,
  BatchApiState,
  BatchFormat,
  BatchOutcome,
  FakeBatch,
  LineAnswer,
  SubmittedLine,
  WrittenResult,
} from "./batch-format.ts";
import { openAiBatchFormat } from "./openai-format.ts";

/** Failure of one request to the API. */
export type BatchApiFailure =
  /** The connection ends before the request is executed. */
  | "lost_request"
  /** The request is executed, and the connection ends before the response. */
  | "lost_response"
  /** The request is executed, and the response ends after half of its bytes. */
  | "truncated"
  /** The request is not executed, and this response is sent. */
  | ScriptedResponse;

/** Script of a fake batch API. */
export interface BatchApiOptions {
  /** API that is imitated. Default: OpenAI's files and batches. */
  readonly format?: BatchFormat;
  /** Path of the API before the paths of the format. Default: `/v1`. */
  readonly base?: string;
  /** Returns the answer of a line. Default: a text with a usage of 10 and 5 tokens. */
  readonly answer?: (line: SubmittedLine) => LineAnswer;
  /** Number of polls until a batch has ended. Default: 1. */
  readonly polls?: number;
  /**
   * How a batch ends. If it expires or is canceled, only the first half of its lines has run.
   * Default: `completed`, or `canceled` after a cancellation.
   */
  readonly outcome?: (batch: FakeBatch) => BatchOutcome;
  /** Order of the results. Default: `input`. */
  readonly order?: "input" | "reversed" | "shuffled";
  /** Each n-th result is written twice. Default: none. */
  readonly repeatEvery?: number;
  /** Seed of the order. Default: 1. */
  readonly seed?: number;
  /** Returns the failure of a request, if any. `number` counts all requests, from 1. */
  readonly failure?: (request: BatchApiRequest, number: number) => BatchApiFailure | undefined;
}

/** Options of a client that calls a fake batch API in the process. */
export interface BatchApiClientOptions {
  /** Scheme and host of relative URLs. Default: `http://batches.test`. */
  readonly origin?: string;
  /** Aborts the requests of the client. */
  readonly signal?: AbortSignal;
}

/** A fake batch API. */
export interface BatchApi {
  /** All batches that exist, oldest first. */
  readonly batches: readonly FakeBatch[];
  /** All requests. */
  readonly requests: readonly BatchApiRequest[];
  /** Files that exist, by ID. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Usage that is billed for all lines of all batches, including batches that were deleted. */
  readonly usage: Usage;
  /** Routes for a fake upstream. */
  readonly routes: ScriptedRoutes;
  /** Executes a request. */
  handle(request: BatchApiRequest): ScriptedResponse;
  /** Ends a batch, as a poll does. */
  end(id: string): void;
  /** Returns a client that calls the API in the process. Relative URLs are below `base`. */
  client(options?: BatchApiClientOptions): BatchClient;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type OwnBatch = Mutable<FakeBatch> & { polls: number };

/** Creates a fake batch API. */
export function createBatchApi(options: BatchApiOptions = {}): BatchApi {
  const { format = openAiBatchFormat, base = "/v1", answer = answerHello, failure } = options;
  const batches: OwnBatch[] = [];
  const deleted: OwnBatch[] = [];
  const requests: BatchApiRequest[] = [];
  const files = new Map<string, Buffer>();
  const random = createSeededRandom(options.seed ?? 1);
  let ids = 0;

  const end = (batch: OwnBatch) => {
    const isCanceled = batch.state === "canceling";
    batch.outcome = isCanceled ? "canceled" : (options.outcome?.(batch) ?? "completed");
    batch.state = "ended";
    if (batch.outcome === "failed") return;
    const ran = batch.outcome === "completed" ? Infinity : Math.floor(batch.lines.length / 2);
    const left = batch.outcome === "expired" ? "expired" : "canceled";
    const results = batch.lines.map((line, i) => ({ line, answer: i < ran ? answer(line) : left }));
    batch.usage = sumUsage(results.map((result) => usageOf(result.answer)));
    batch.results = written(results as WrittenResult[], options, random);
  };
  const state: BatchApiState = {
    files,
    batches,
    nextId: (prefix) => `${prefix}${String(++ids).padStart(6, "0")}`,
    create(of) {
      const batch: OwnBatch = {
        ...of,
        id: state.nextId("batch_"),
        state: "running",
        outcome: undefined,
        results: [],
        usage: {},
        createdAt: 1_790_000_000 + ids,
        polls: 0,
      };
      batches.push(batch);
      return batch;
    },
    advance(id) {
      const batch = batches.find((one) => one.id === id);
      if (batch && batch.state !== "ended" && batch.polls++ >= (options.polls ?? 1)) end(batch);
      return batch;
    },
    cancel(id) {
      const batch = batches.find((one) => one.id === id);
      if (!batch || batch.state === "ended") return false;
      batch.state = "canceling";
      return true;
    },
    delete(id) {
      const at = batches.findIndex((one) => one.id === id);
      if (at >= 0) deleted.push(...batches.splice(at, 1));
    },
  };
  const execute = (request: BatchApiRequest): ScriptedResponse => {
    const route = request.path.startsWith(base) ? request.path.slice(base.length) : request.path;
    return (
      format.handle(state, { ...request, route }) ??
      jsonResponse({ error: { message: `No route ${request.method} ${request.path}.` } }, 404)
    );
  };
  const handle = (request: BatchApiRequest): ScriptedResponse => {
    requests.push(request);
    const failed = failure?.(request, requests.length);
    if (failed === "lost_request") return LOST;
    if (typeof failed === "object") return failed;
    const response = execute(request);
    if (failed === "lost_response") return LOST;
    if (failed !== "truncated") return response;
    const { length } = Buffer.from(textOf(response));
    return { ...response, truncation: { after: Math.floor(length / 2), how: "close" } };
  };
  return {
    batches,
    requests,
    files,
    get usage() {
      return sumUsage([...batches, ...deleted].map((batch) => batch.usage));
    },
    routes: Object.fromEntries(
      [...format.paths.map((path) => base + path), ...(format.absolutePaths ?? [])].map((path) => [
        `* ${path}*`,
        ({ method, path: at, query, headers, body }) =>
          handle({
            method,
            origin: `http://${headers.host}`,
            path: at,
            query,
            headers: headers as BatchApiRequest["headers"],
            body,
          }),
      ]),
    ) as ScriptedRoutes,
    handle,
    end(id) {
      const batch = batches.find((one) => one.id === id);
      if (batch && batch.state !== "ended") end(batch);
    },
    client: (of = {}) => createClient(handle, base, of),
  };
}

const LOST: ScriptedResponse = { truncation: { after: "nothing", how: "reset" } };

function answerHello({ url, body }: SubmittedLine): LineAnswer {
  const script = say("Hello").usage({ input: 10, output: 5 });
  const response = script.toProtocol(protocolAtPath(url) ?? "chat-completions", {
    model: body?.model,
    body,
  });
  return { body: JSON.parse(textOf(response)), usage: script.output.usage ?? {} };
}

const usageOf = (answer: LineAnswer): Usage =>
  typeof answer === "object" ? (answer.usage ?? {}) : {};

function sumUsage(all: readonly Usage[]): Usage {
  const sum: Mutable<Usage> = {};
  for (const usage of all)
    for (const [unit, count] of Object.entries(usage) as [keyof Usage, number][])
      sum[unit] = (sum[unit] ?? 0) + count;
  return sum;
}

/** Returns the results in the order and with the repetitions of the script. */
function written(
  results: readonly WrittenResult[],
  { order = "input", repeatEvery }: BatchApiOptions,
  random: () => number,
): WrittenResult[] {
  const kept = results.filter(({ answer }) => answer !== "lost");
  if (order === "reversed") kept.reverse();
  if (order === "shuffled")
    for (let i = kept.length - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [kept[i], kept[j]] = [kept[j]!, kept[i]!];
    }
  return kept.flatMap((result, i) =>
    repeatEvery && (i + 1) % repeatEvery === 0 ? [result, result] : [result],
  );
}

const textOf = ({ body = "" }: ScriptedResponse): string =>
  [body]
    .flat()
    .map((piece) => {
      const bytes = typeof piece === "object" && "tells" in piece ? piece.bytes : piece;
      return bytes.toString();
    })
    .join("");

function createClient(
  handle: (request: BatchApiRequest) => ScriptedResponse,
  base: string,
  { origin = "http://batches.test", signal = new AbortController().signal }: BatchApiClientOptions,
): BatchClient {
  return {
    credential: "default",
    signal,
    async fetch(to, { method = "GET", headers = {}, body } = {}) {
      signal.throwIfAborted();
      const isAbsolute = /^https?:/.test(String(to));
      const url = new URL(isAbsolute ? to : `${origin}${base}/${String(to)}`);
      const response = handle({
        method,
        origin: url.origin,
        path: url.pathname,
        query: url.searchParams,
        headers,
        body: await collectBody(body),
      });
      return toResponse(response);
    },
  };
}

async function collectBody(
  body: NonNullable<Parameters<BatchClient["fetch"]>[1]>["body"],
): Promise<Buffer> {
  if (typeof body !== "function") return Buffer.from(body ?? "");
  const pieces: Uint8Array[] = [];
  for await (const piece of body()) pieces.push(piece);
  return Buffer.concat(pieces);
}

const brokenConnection = () =>
  createFault("upstream", "The connection to the provider broke.", {
    code: "upstream_disconnected",
  });

/** Returns a response as the host creates it. A truncated body fails while it is read. */
function toResponse(of: ScriptedResponse): Response {
  if (of.truncation?.after === "nothing") throw brokenConnection();
  const bytes = Buffer.from(textOf(of));
  const end = typeof of.truncation?.after === "number" ? of.truncation.after : undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.subarray(0, end));
      if (end === undefined) controller.close();
    },
    // Errors discard pieces that were not read, so the first piece has to be read before.
    pull(controller) {
      if (end !== undefined) controller.error(brokenConnection());
    },
  });
  const headers = Object.entries(of.headers ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one): [string, string] => [name, one]),
  );
  const status = of.status ?? 200;
  return new Response(status === 204 ? null : body, { status, headers });
}

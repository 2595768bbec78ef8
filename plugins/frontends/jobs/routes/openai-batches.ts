// Routes of /v1/batches, in OpenAI's format.
import { fail, type Body, type Json, type RequestHead, type Route } from "tollgate/plugin";
import type { BatchPlanner } from "../batch-planner.ts";
import {
  isFinal,
  progressOf,
  type BatchState,
  type InputError,
  type StoredBatch,
} from "../batch-record.ts";
import { CREATE_MS, type BatchService } from "../batch-service.ts";
import { encodeDirect } from "./direct-lines.ts";
import type { FileService } from "../file-service.ts";
import { findJsonError, memberText, splitLines, type TextLine } from "../line-text.ts";
import { ownerOf } from "../owned-records.ts";
import { openaiPaths } from "../../route-paths.ts";
import {
  BATCH_FILE_MS,
  idOf,
  ok,
  readKeepMs,
  readLimit,
  rejectZeroRetention,
} from "./request-fields.ts";

const MAX_LINES = 50_000;
/** Errors of an input after which the rest is not read. */
const MAX_ERRORS = 20;
const MAX_METADATA = { pairs: 16, name: 64, value: 512 };

/** Paths of requests in batches. The frontend of each has to be mounted. */
const ENDPOINTS = [
  "/v1/responses",
  "/v1/chat/completions",
  "/v1/embeddings",
  "/v1/completions",
  "/v1/moderations",
  "/v1/images/generations",
];

export function openaiBatchRoutes(batches: BatchService, files: FileService): readonly Route[] {
  const [all, one] = [openaiPaths("/batches"), openaiPaths("/batches/:id")];
  return [
    {
      method: "POST",
      path: all,
      body: "json",
      timeoutMs: CREATE_MS,
      handle: async (x: RequestHead, body: Body) => ok(await createBatch(batches, files, x, body)),
    },
    {
      method: "GET",
      path: all,
      async handle(x) {
        const limit = readLimit(x.query, 20, { max: 100 });
        const after = x.query.get("after") ?? undefined;
        const page = await batches.list(ownerOf(x), { limit, after, format: "openai" });
        const data = page.items.map(encodeBatch);
        const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
        return ok({ object: "list", data, first_id, last_id, has_more: page.hasMore });
      },
    },
    {
      method: "GET",
      path: one,
      handle: async (x) => ok(encodeBatch(await batches.find(ownerOf(x), idOf(x)))),
    },
    {
      method: "POST",
      path: one.map((path) => `${path}/cancel`),
      handle: async (x) => ok(encodeBatch(await batches.cancel(ownerOf(x), idOf(x)))),
    },
  ];
}

async function createBatch(
  batches: BatchService,
  files: FileService,
  x: RequestHead,
  body: Body,
): Promise<Json> {
  rejectZeroRetention(x);
  const owner = ownerOf(x);
  const path = body["endpoint"];
  if (typeof path !== "string" || !ENDPOINTS.includes(path))
    return fail("invalid", `endpoint must be one of ${ENDPOINTS.join(", ")}.`, {
      param: "endpoint",
    });
  if (body["completion_window"] !== "24h")
    fail("invalid", "completion_window must be 24h.", { param: "completion_window" });
  const { anchor, seconds } = (body["output_expires_after"] ?? {}) as Body;
  const keepMs = readKeepMs("batch", anchor, seconds) ?? BATCH_FILE_MS;
  const metadata = readMetadata(body["metadata"]);
  const fileId = body["input_file_id"];
  if (typeof fileId !== "string")
    return fail("invalid", "input_file_id must be the ID of a file.", { param: "input_file_id" });
  const file = await files.find(owner, fileId);
  if (file.purpose !== "batch")
    fail("invalid", `The file has the purpose ${file.purpose}, not batch.`, {
      param: "input_file_id",
    });
  const content = await files.read(owner, file);
  const input = new InputReader(path);
  const batch = await batches.create(owner, x, {
    format: "openai",
    path,
    inputFile: file.id,
    metadata,
    keepMs,
    readLines: (planner) => input.read(content, planner),
    model: () => input.model,
  });
  return encodeBatch(batch);
}

/** Reads the lines of an input file. */
class InputReader {
  readonly #path: string;
  readonly #errors: InputError[] = [];
  model: string | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async read(
    content: AsyncIterable<Uint8Array>,
    planner: BatchPlanner,
  ): Promise<readonly InputError[]> {
    for await (const line of splitLines(content)) {
      await this.#readLine(line, planner);
      if (planner.total > MAX_LINES)
        this.#addError(line, "too_many_requests", `A batch can have up to ${MAX_LINES} requests.`);
      if (this.#errors.length === MAX_ERRORS || planner.total > MAX_LINES) break;
    }
    return this.#errors;
  }

  async #readLine(line: TextLine, planner: BatchPlanner): Promise<void> {
    const { bytes, number } = line;
    const request = parseLine(bytes);
    if (typeof request === "string") return this.#addError(line, "invalid_json_line", request);
    const { custom_id: id, method, url, body } = request;
    const idProblem = planner.registerId(id);
    if (idProblem !== undefined) {
      const isRepeated = idProblem.endsWith("unique.");
      const code = isRepeated ? "duplicate_custom_id" : "missing_required_parameter";
      return this.#addError(line, code, idProblem, "custom_id");
    }
    const customId = id as string;
    const reject = (message: string, param: string) =>
      planner.reject(customId, {
        kind: "invalid",
        message,
        param,
        code: "invalid_request",
      });
    if (method !== "POST") return reject("method must be POST.", "method");
    if (url !== this.#path)
      return reject(`url must be ${this.#path}, as the endpoint of the batch.`, "url");
    if (typeof body !== "object" || body === null || Array.isArray(body))
      return reject("body must be an object.", "body");
    const { model } = body as Body;
    if (typeof model === "string") this.model ??= model;
    return planner.add(number, customId, memberText(bytes, "body")!);
  }

  #addError(line: TextLine, code: string, message: string, param: string | null = null): void {
    this.#errors.push({ code, line: line.number, message, param });
  }
}

/** Parses a line. Returns why it cannot be parsed. */
function parseLine(bytes: Buffer): Body | string {
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const at = findJsonError(text);
    return at === undefined
      ? "The line is not JSON. The error is after its first 262,144 characters."
      : `The line is not JSON: see column ${at + 1}.`;
  }
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Body)
    : "The line is not a JSON object.";
}

function readMetadata(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null) return undefined;
  const { pairs, name: nameBytes, value: valueBytes } = MAX_METADATA;
  const entries = typeof value === "object" ? Object.entries(value as object) : undefined;
  const isValid =
    !Array.isArray(value) &&
    entries !== undefined &&
    entries.length <= pairs &&
    entries.every(
      ([name, text]) =>
        name.length <= nameBytes && typeof text === "string" && text.length <= valueBytes,
    );
  return isValid
    ? (value as Record<string, string>)
    : fail(
        "invalid",
        `metadata must be an object of up to ${pairs} texts, with names of up to ${nameBytes} and values of up to ${valueBytes} characters.`,
        { param: "metadata" },
      );
}

const seconds = (at: number | undefined): number | null =>
  at === undefined ? null : Math.floor(at / 1_000);

const STATUS: Readonly<Record<BatchState, string>> = {
  reserving: "validating",
  running: "in_progress",
  canceling: "cancelling",
  reading: "finalizing",
  finishing: "finalizing",
  completed: "completed",
  failed: "failed",
  expired: "expired",
  canceled: "cancelled",
};

function statusOf({ state, batches, cancelRequestedAt }: StoredBatch): string {
  if (state === "running" && batches.every((one) => one.state === "planned")) return "validating";
  const isCanceling = cancelRequestedAt !== undefined && STATUS[state] === "finalizing";
  return isCanceling ? "cancelling" : STATUS[state];
}

function encodeBatch(batch: StoredBatch) {
  const { record, state, times, path, inputFile, model, expiresAt, errors, usage } = batch;
  const ended = (of: BatchState) => (state === of ? seconds(times[of]) : null);
  const { createdAt } = record;
  const isRead = usage !== undefined && isFinal(state);
  return {
    id: `batch_${record.id}`,
    object: "batch",
    endpoint: path,
    ...(model !== undefined && { model }),
    errors: errors ? { object: "list", data: errors.map((error) => ({ ...error })) } : null,
    input_file_id: `file-${inputFile}`,
    completion_window: "24h",
    status: statusOf(batch),
    output_file_id: isRead && batch.outputFile !== undefined ? `file-${batch.outputFile}` : null,
    error_file_id: isRead && batch.errorFile !== undefined ? `file-${batch.errorFile}` : null,
    created_at: seconds(createdAt),
    in_progress_at: seconds(times.running),
    expires_at: seconds(expiresAt),
    finalizing_at: seconds(times.reading),
    completed_at: ended("completed"),
    failed_at: ended("failed"),
    expired_at: ended("expired"),
    cancelling_at: seconds(batch.cancelRequestedAt),
    cancelled_at: ended("canceled"),
    request_counts: encodeCounts(batch),
    ...(usage && {
      usage: {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cached },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: usage.input + usage.output,
      },
    }),
    metadata: batch.metadata ?? null,
    ...encodeDirect(batch),
  };
}

function encodeCounts(batch: StoredBatch) {
  const { total, done, failed } = progressOf(batch);
  return { total, completed: done - failed, failed };
}

// Batches of backends that have OpenAI's files and batches, or Mistral's batch jobs, which use the
// same files with other names. The lines are uploaded as a file, and the results are in two files:
// one with responses, and one with errors.
import {
  fail,
  type BatchClient,
  type BatchInput,
  type BatchResult,
  type BatchStatus,
  type DataPolicy,
  type EndpointBatches,
  type JsonObject,
  type Opt,
  type Usage,
} from "../../plugin/index.ts";
import {
  asCount,
  asList,
  asNumber,
  asObject,
  asObjects,
  asText,
  omitUndefined,
  parseObject,
} from "../json-values.ts";
import { encodeBatchForm, type LineFormat } from "./batch-file.ts";
import {
  createObject,
  deleteObject,
  fetchJsonLines,
  fetchObject,
  requestCancellation,
} from "./batch-response.ts";

/** Differences between the batch API of a backend and that of OpenAI. */
export interface BatchDialect {
  /** `mistral`: batch jobs at `batch/jobs`. Default: `openai`. */
  api?: "openai" | "mistral";
  /** Maximum number of lines. Default: 50,000. */
  lines?: number;
  /** Maximum size of the file in bytes. Default: 200 MB. */
  bytes?: number;
  /** Path before the path of a request in a line. Default: `/v1`. */
  pathPrefix?: string;
  /** Value of `endpoint` if it is not the path in the lines. */
  endpoint?: string;
  /**
   * Fields of the upload, in addition to `purpose`, such as the time after which the file is
   * deleted.
   */
  uploadFields?: Readonly<Record<string, string>>;
  /** Fields of the request that creates the batch. */
  createFields?: JsonObject;
  /**
   * Waits until the state of the uploaded file may have changed. Set it if a batch can be created
   * only after the file was processed. Default: the batch is created immediately.
   */
  waitForFile?: (signal: AbortSignal) => Promise<unknown>;
  /** Whether a batch keeps metadata, by which it is found after a lost response. Default: true. */
  keepsMetadata?: boolean;
  /** Data policy of batches, if it differs from that of the endpoint. */
  dataPolicy?: Partial<DataPolicy>;
}

/** Name of the metadata that contains the key of the batch. */
const KEY_FIELD = "tollgate_job";
const MEGABYTE = 1_000_000;

/** Returns the batches of an endpoint of OpenAI's API, or of an API that is compatible with it. */
export function openAiBatches(dialect: BatchDialect = {}): EndpointBatches {
  const api = APIS[dialect.api ?? "openai"];
  const poll = async (reference: string, client: BatchClient) =>
    api.read(await fetchObject(client, api.batch(parseReference(reference).batch)));
  return {
    limits: { lines: dialect.lines ?? 50_000, bytes: dialect.bytes ?? 200 * MEGABYTE },
    ...(dialect.dataPolicy && { dataPolicy: dialect.dataPolicy }),
    submit: (input, client) => submit(api, dialect, input, client),
    ...(dialect.keepsMetadata !== false && {
      find: (key, client) => find(api, key, client),
    }),
    poll,
    readResults: (_reference, status, client) => readResults(status, client),
    cancel: (reference, client) =>
      requestCancellation(
        client,
        `${api.batch(parseReference(reference).batch)}/cancel`,
        async () => (await poll(reference, client)).state === "ended",
      ),
    async discard(reference, client) {
      const { input } = parseReference(reference);
      const { results } = await poll(reference, client);
      for (const file of new Set([input, ...asList(results).flatMap((id) => asText(id) ?? [])]))
        if (file !== undefined) await deleteObject(client, fileUrl(file));
    },
  };
}

/** A batch and the file with its lines. */
interface Reference {
  readonly batch: string;
  readonly input: Opt<string>;
}

const formatReference = ({ batch, input }: Reference): string => JSON.stringify({ batch, input });

function parseReference(reference: string): Reference {
  const { batch, input } = parseObject(reference) ?? {};
  return typeof batch === "string"
    ? { batch, input: asText(input) }
    : fail("internal", "The reference of a batch is not valid.");
}

const fileUrl = (id: string): string => `files/${encodeURIComponent(id)}`;

async function submit(
  api: BatchApi,
  dialect: BatchDialect,
  input: BatchInput,
  client: BatchClient,
): Promise<string> {
  const path = `${dialect.pathPrefix ?? "/v1"}${input.path.replace(/\?.*$/, "")}`;
  const form = encodeBatchForm(input, api.line(path), {
    purpose: "batch",
    ...dialect.uploadFields,
  });
  const file = await fetchObject(client, "files", {
    method: "POST",
    headers: { "content-type": form.contentType, "content-length": String(form.bytes) },
    body: form.pieces,
  });
  const id = requireId(file, "file");
  const undo = () => deleteObject(client, fileUrl(id));
  if (dialect.waitForFile) await processFile(file, client, dialect.waitForFile, undo);
  const metadata = dialect.keepsMetadata !== false && { metadata: { [KEY_FIELD]: input.key } };
  const fields = api.create(id, dialect.endpoint ?? path, input);
  const created = await createObject(
    client,
    api.batches,
    { ...fields, ...dialect.createFields, ...metadata },
    undo,
  );
  return formatReference({ batch: requireId(created, "batch"), input: id });
}

const requireId = (object: JsonObject, what: string): string =>
  asText(object["id"]) ||
  fail("upstream", `The batch API returned a ${what} without an ID.`, { code: "bad_answer" });

/** States of a file that the backend has not read yet. */
const UNREAD_FILE: ReadonlySet<unknown> = new Set(["uploaded", "pending", "running", "notRunning"]);
const MAX_FILE_POLLS = 600;

/** Resolves when the backend has read the file. */
async function processFile(
  file: JsonObject,
  client: BatchClient,
  wait: (signal: AbortSignal) => Promise<unknown>,
  undo: () => Promise<void>,
): Promise<void> {
  let current = file;
  for (let polls = 0; UNREAD_FILE.has(current["status"]); polls++) {
    if (polls === MAX_FILE_POLLS)
      fail("timeout", "The provider did not process the file of the batch.", {
        code: "file_not_processed",
      });
    await wait(client.signal);
    current = await fetchObject(client, fileUrl(requireId(file, "file")));
  }
  if (current["status"] !== "error") return;
  await undo().catch(() => {});
  const reason = asText(current["status_details"]) ?? "no reason was given";
  fail("invalid", `The provider rejected the file of the batch: ${reason}.`);
}

/** Batches are created within minutes of their key, so older ones are not searched. */
const MAX_AGE_S = 2 * 24 * 3_600;
const MAX_PAGES = 50;

async function find(api: BatchApi, key: string, client: BatchClient): Promise<Opt<string>> {
  let newest: number | undefined;
  let last: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const list = await fetchObject(client, api.page(page, last));
    const batches = asObjects(list["data"]);
    for (const batch of batches) {
      if (asObject(batch["metadata"])?.[KEY_FIELD] === key)
        return formatReference({ batch: requireId(batch, "batch"), input: api.inputOf(batch) });
      last = asText(batch["id"]);
      const created = asNumber(batch["created_at"]);
      newest ??= created;
      if (created !== undefined && newest !== undefined && created < newest - MAX_AGE_S)
        return undefined;
    }
    if (batches.length < PAGE_SIZE) return undefined;
  }
  return fail("upstream", "The provider has too many batches to find one by its key.", {
    code: "batch_not_identified",
  });
}

const PAGE_SIZE = 100;

async function* readResults(status: BatchStatus, client: BatchClient): AsyncGenerator<BatchResult> {
  for (const file of asList(status.results))
    if (typeof file === "string")
      for await (const line of fetchJsonLines(client, `${fileUrl(file)}/content`)) {
        const result = parseResult(line);
        if (result) yield result;
      }
}

/** Codes of lines that did not run. */
const NOT_RUN: ReadonlyMap<unknown, "canceled" | "expired"> = new Map([
  ["batch_expired", "expired"],
  ["batch_cancelled", "canceled"],
  ["batch_canceled", "canceled"],
]);

/** Parses one line of a result file. Returns undefined if it names no line. */
function parseResult(line: JsonObject): BatchResult | undefined {
  const id = asText(line["custom_id"]);
  if (id === undefined) return undefined;
  const response = asObject(line["response"]);
  const error = asObject(line["error"]);
  const body = response?.["body"];
  if (response && body !== undefined && body !== null) {
    const requestId = asText(response["request_id"]);
    return {
      id,
      outcome: "answered",
      status: asCount(response["status_code"]) ?? (asObject(body)?.["error"] ? 500 : 200),
      body,
      ...(requestId && { requestId }),
    };
  }
  const outcome = NOT_RUN.get(error?.["code"]);
  if (outcome) return { id, outcome, status: 0 };
  return {
    id,
    outcome: "answered",
    status: asCount(response?.["status_code"]) ?? 500,
    body: {
      error: error ?? { message: asText(line["error"]) ?? "The provider returned no response." },
    },
  };
}

// The two APIs. They differ in the names of paths and fields, and in the names of states.

interface BatchApi {
  /** Path of all batches. */
  readonly batches: string;
  /** Returns the format of the lines for requests to a path. */
  line(path: string): LineFormat;
  /** Returns the path of one batch. */
  batch(id: string): string;
  /** Returns the path of a page of the list, newest batches first. */
  page(page: number, last: string | undefined): string;
  /** Returns the request that creates a batch. */
  create(file: string, endpoint: string, input: BatchInput): JsonObject;
  inputOf(batch: JsonObject): Opt<string>;
  read(batch: JsonObject): BatchStatus;
}

type End = NonNullable<BatchStatus["outcome"]>;
const ENDS: { readonly [status: string]: End } = {
  completed: "completed",
  failed: "failed",
  expired: "expired",
  cancelled: "canceled",
  canceled: "canceled",
  success: "completed",
  timeout_exceeded: "expired",
};
const CANCELING: ReadonlySet<string> = new Set([
  "cancelling",
  "canceling",
  "cancellation_requested",
]);

/** Returns the state of a batch. Some backends write the names of states in capitals. */
function toStatus(
  status: unknown,
  of: Omit<BatchStatus, "state" | "outcome"> & { readonly files: readonly unknown[] },
): BatchStatus {
  const name = asText(status)?.toLowerCase() ?? "";
  const { files, ...more } = of;
  const results = files.filter((file) => typeof file === "string" && file !== "") as string[];
  const end = Object.hasOwn(ENDS, name) ? ENDS[name] : undefined;
  if (end === undefined) return { ...more, state: CANCELING.has(name) ? "canceling" : "running" };
  // A batch that failed while it ran has results, and was billed for them.
  const outcome = end === "failed" && results.length > 0 ? "canceled" : end;
  return { ...omitUndefined(more), state: "ended", outcome, results };
}

const APIS: { readonly [name in "openai" | "mistral"]: BatchApi } = {
  openai: {
    batches: "batches",
    line: (path) => ({
      before: '{"custom_id":"',
      between: `","method":"POST","url":${JSON.stringify(path)},"body":`,
      after: "}\n",
    }),
    batch: (id) => `batches/${encodeURIComponent(id)}`,
    page: (_page, last) =>
      `batches?limit=${PAGE_SIZE}${last === undefined ? "" : `&after=${encodeURIComponent(last)}`}`,
    create: (input_file_id, endpoint) => ({ input_file_id, endpoint, completion_window: "24h" }),
    inputOf: (batch) => asText(batch["input_file_id"]),
    read: (batch) =>
      toStatus(batch["status"], {
        files: [batch["output_file_id"], batch["error_file_id"]],
        message: messageOf(asObject(batch["errors"])?.["data"]),
        counts: countsOf(asObject(batch["request_counts"]), "completed", "failed"),
        usage: usageOf(asObject(batch["usage"])),
      }),
  },
  mistral: {
    batches: "batch/jobs",
    line: () => ({ before: '{"custom_id":"', between: '","body":', after: "}\n" }),
    batch: (id) => `batch/jobs/${encodeURIComponent(id)}`,
    page: (page) => `batch/jobs?page_size=${PAGE_SIZE}&page=${page}&order_by=-created`,
    create: (file, endpoint, { model }) => ({ input_files: [file], endpoint, model }),
    inputOf: (batch) => asText(asList(batch["input_files"])[0]),
    read: (job) =>
      toStatus(job["status"], {
        files: [job["output_file"], job["error_file"]],
        message: messageOf(job["errors"]),
        counts: countsOf(job, "succeeded_requests", "failed_requests"),
      }),
  },
};

/** Maximum number of errors in the message of a batch. */
const MAX_ERRORS = 3;

function messageOf(errors: unknown): string | undefined {
  const all = asObjects(asList(errors).slice(0, MAX_ERRORS)).flatMap(({ message, line }) => {
    const text = asText(message)?.slice(0, 500);
    return text === undefined
      ? []
      : [asCount(line) === undefined ? text : `Line ${String(line)}: ${text}`];
  });
  return all.length === 0 ? undefined : all.join(" ");
}

function countsOf(of: Opt<JsonObject>, succeededField: string, failedField: string) {
  const succeeded = asCount(of?.[succeededField]);
  const failed = asCount(of?.[failedField]);
  return succeeded === undefined || failed === undefined ? undefined : { succeeded, failed };
}

/** Returns the usage of a batch. Cached input is part of the input in OpenAI's count. */
function usageOf(usage: Opt<JsonObject>): Usage | undefined {
  const input = asCount(usage?.["input_tokens"]);
  const output = asCount(usage?.["output_tokens"]);
  if (input === undefined || output === undefined || input + output === 0) return undefined;
  const cached = asCount(asObject(usage?.["input_tokens_details"])?.["cached_tokens"]) ?? 0;
  const reasoning = asCount(asObject(usage?.["output_tokens_details"])?.["reasoning_tokens"]);
  return omitUndefined({
    input: input - Math.min(input, cached),
    cache_read: cached,
    output,
    reasoning,
  });
}

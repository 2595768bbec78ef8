// Batch APIs that only tests imitate: Mistral's jobs, Azure's version of OpenAI's API, and Gemini's
// operations. Written by hand from the vendors' clients and pages, not from the adapters.
import {
  jsonResponse,
  messageBatchFormat,
  openAiBatchFormat,
  type BatchApiState,
  type BatchFormat,
  type FakeBatch,
  type WrittenResult,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";

const STATUS = {
  completed: "SUCCESS",
  canceled: "CANCELLED",
  expired: "TIMEOUT_EXCEEDED",
  failed: "FAILED",
} as const;

/** Mistral: files as OpenAI's, and jobs with other names. */
export const mistralFormat: BatchFormat = {
  paths: ["/files", "/batch/jobs"],
  fails: true,
  handle(state, request) {
    const [, kind = "", jobs = "", id = "", action = ""] = request.route.split("/");
    if (kind === "files") return openAiBatchFormat.handle(state, request);
    if (kind !== "batch" || jobs !== "jobs") return undefined;
    if (id === "" && request.method === "POST") {
      const { input_files, endpoint, model, metadata } = JSON.parse(request.body.toString());
      const file = state.files.get(input_files[0]);
      if (!file || typeof model !== "string")
        return jsonResponse({ object: "error", message: "No such file." }, 422);
      const lines = file
        .toString()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
        .map(({ custom_id, body }) => ({ id: custom_id, url: endpoint, body }));
      const key = metadata?.tollgate_job;
      return jsonResponse(job(state.create({ key, input: input_files[0], endpoint, lines })));
    }
    if (id === "") {
      const size = Number(request.query.get("page_size"));
      const from = Number(request.query.get("page")) * size;
      const all = state.batches.toReversed();
      return jsonResponse({
        object: "list",
        total: all.length,
        data: all.slice(from, from + size).map(job),
      });
    }
    if (action === "cancel" && !state.cancel(id))
      return jsonResponse({ object: "error", message: "The job has ended." }, 422);
    const batch =
      request.method === "GET" ? state.advance(id) : state.batches.find((one) => one.id === id);
    return batch ? jsonResponse(job(batch)) : jsonResponse({ detail: "Not found." }, 404);
  },
};

const isGood = ({ answer }: WrittenResult): boolean =>
  typeof answer === "object" && (answer.status ?? 200) < 300;

function job(batch: FakeBatch): JsonObject {
  const { id, key, input, endpoint, lines, state, outcome, results } = batch;
  const good = results.filter(isGood).length;
  const has = state === "ended" && outcome !== "failed";
  return {
    id,
    object: "batch",
    input_files: [input ?? ""],
    endpoint: endpoint ?? "",
    metadata: key === undefined ? null : { tollgate_job: key },
    status: outcome
      ? STATUS[outcome]
      : state === "canceling"
        ? "CANCELLATION_REQUESTED"
        : "RUNNING",
    created_at: batch.createdAt,
    output_file: has && good > 0 ? `file-${id}-output` : null,
    error_file: has && good < results.length ? `file-${id}-error` : null,
    errors: outcome === "failed" ? [{ message: "Invalid line.", count: 3 }] : [],
    total_requests: lines.length,
    completed_requests: results.length,
    succeeded_requests: good,
    failed_requests: results.length - good,
  };
}

/**
 * Azure: states with capitals, and times as text. The endpoint of the request is not compared with
 * the lines.
 */
export const azureFormat: BatchFormat = {
  ...openAiBatchFormat,
  handle(state, request) {
    const isCreation = request.route === "/batches" && request.method === "POST";
    const body = isCreation ? withEndpointOfLines(state, request.body) : request.body;
    const response = openAiBatchFormat.handle(state, { ...request, body });
    if (!response || typeof response.body !== "string" || (response.status ?? 200) >= 300)
      return response;
    const object = JSON.parse(response.body);
    if (object.object !== "batch") return response;
    const { status, created_at } = object;
    return jsonResponse({
      ...object,
      status: status[0].toUpperCase() + status.slice(1),
      created_at: new Date(created_at * 1000).toISOString(),
    });
  },
};

/** Returns the request with the endpoint of the lines in its file. */
function withEndpointOfLines({ files }: BatchApiState, body: Buffer): Buffer {
  const request = JSON.parse(body.toString());
  const url = /"url":"([^"]*)"/.exec(files.get(request.input_file_id)?.toString() ?? "")?.[1];
  return Buffer.from(JSON.stringify({ ...request, endpoint: url }));
}

/** Gemini: a resumable upload, and batches that are operations. */
export const geminiFormat: BatchFormat = {
  paths: ["/batches", "/files", "/models"],
  absolutePaths: ["/upload/v1beta/files", "/download/v1beta/files"],
  fails: true,
  handle(state, { method, route, path, origin, query, headers, body }) {
    if (path.startsWith("/upload/")) {
      if (headers["x-goog-upload-command"] === "start")
        return {
          headers: { "x-goog-upload-url": `${origin}/upload/v1beta/files?upload_id=u1` },
          body: "{}",
        };
      const name = state.nextId("files/");
      state.files.set(name, body);
      return jsonResponse({ file: { name, state: "ACTIVE" } });
    }
    if (path.startsWith("/download/")) {
      const id = /files\/(.+)-output:download$/.exec(path)?.[1];
      const batch = state.batches.find((one) => one.id === id);
      const lines = batch?.results.filter(({ answer }) => answer !== "expired").map(geminiLine);
      return lines && { body: lines.map((line) => `${JSON.stringify(line)}\n`).join("") };
    }
    if (route.startsWith("/files/")) {
      if (!state.files.delete(route.slice(1)))
        return jsonResponse(
          { error: { code: 404, message: "Not found.", status: "NOT_FOUND" } },
          404,
        );
      return jsonResponse({});
    }
    if (route.endsWith(":batchGenerateContent")) {
      const { displayName, inputConfig } = JSON.parse(body.toString()).batch;
      const file = state.files.get(inputConfig.fileName);
      if (!file) return jsonResponse({ error: { code: 400, message: "No such file." } }, 400);
      const lines = file
        .toString()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
        .map(({ key, request }) => ({ id: key, url: route, body: request }));
      const input = inputConfig.fileName;
      return jsonResponse(
        operation(state.create({ key: displayName, input, endpoint: undefined, lines })),
      );
    }
    if (route === "/batches") {
      const from = Number(query.get("pageToken") ?? 0);
      const page = state.batches.toReversed().slice(from, from + 2);
      const next = from + page.length;
      return jsonResponse({
        operations: page.map(operation),
        ...(next < state.batches.length && { nextPageToken: String(next) }),
      });
    }
    const id = route.slice("/batches/".length).replace(/:cancel$/, "");
    if (route.endsWith(":cancel"))
      return state.cancel(id)
        ? jsonResponse({})
        : jsonResponse({ error: { code: 400, message: "It has ended." } }, 400);
    const batch = method === "GET" ? state.advance(id) : state.batches.find((one) => one.id === id);
    if (!batch) return jsonResponse({ error: { code: 404, message: "Not found." } }, 404);
    if (method === "DELETE") {
      state.delete(id);
      return jsonResponse({});
    }
    return jsonResponse(operation(batch));
  },
};

const GEMINI_STATES = {
  completed: "BATCH_STATE_SUCCEEDED",
  canceled: "BATCH_STATE_CANCELLED",
  expired: "BATCH_STATE_EXPIRED",
  failed: "BATCH_STATE_FAILED",
} as const;

function operation(batch: FakeBatch): JsonObject {
  const { id, key, input, state, outcome, results } = batch;
  const good = results.filter(isGood).length;
  return {
    name: `batches/${id}`,
    metadata: {
      displayName: key ?? "",
      state: outcome
        ? GEMINI_STATES[outcome]
        : state === "canceling"
          ? "BATCH_STATE_CANCELLING"
          : "BATCH_STATE_RUNNING",
      inputConfig: { fileName: input ?? "" },
      batchStats: {
        successfulRequestCount: String(good),
        failedRequestCount: String(results.length - good),
      },
      ...(results.length > 0 && { output: { responsesFile: `files/${id}-output` } }),
    },
    done: state === "ended",
    ...(outcome === "failed" && { error: { code: 3, message: "Line 1 is not JSON." } }),
  };
}

const geminiLine = ({ line, answer }: WrittenResult): JsonObject =>
  typeof answer === "object" && (answer.status ?? 200) < 300
    ? { key: line.id, response: answer.body }
    : {
        key: line.id,
        error:
          typeof answer === "object"
            ? { code: 3, message: "Invalid.", status: "INVALID_ARGUMENT" }
            : { code: 1, message: "Canceled.", status: "CANCELLED" },
      };

/** Batch APIs of built-in providers that differ from OpenAI's. */
export const BATCH_FORMATS: Readonly<Record<string, BatchFormat>> = {
  anthropic: messageBatchFormat,
  google: geminiFormat,
  mistral: mistralFormat,
};

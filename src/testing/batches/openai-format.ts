// OpenAI's files and batches: the lines are uploaded as a file, and the results are in two files.
import type { Usage } from "../../model/usage.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import type {
  BatchApiRequest,
  BatchApiState,
  BatchFormat,
  BatchOutcome,
  FakeBatch,
  SubmittedLine,
  WrittenResult,
} from "./batch-format.ts";

/** OpenAI's files and batches. */
export const openAiBatchFormat: BatchFormat = {
  paths: ["/files", "/batches"],
  fails: true,
  handle(state, request) {
    const [, kind = "", id = "", action = ""] = request.route.split("/");
    if (kind === "files") return handleFiles(state, request, id, action);
    if (kind !== "batches") return undefined;
    if (id === "") return request.method === "POST" ? create(state, request) : list(state, request);
    if (request.method === "POST" && action === "cancel" && !state.cancel(id))
      return rejected("The batch has ended.", 409);
    const batch =
      request.method === "GET" ? state.advance(id) : state.batches.find((b) => b.id === id);
    return batch ? jsonResponse(render(batch)) : rejected("No such batch.", 404);
  },
};

const rejected = (message: string, status = 400): ScriptedResponse =>
  jsonResponse(
    { error: { message, type: "invalid_request_error", param: null, code: null } },
    status,
  );

/** Handles requests to files. Uploads are forms, and the API is strict about their lines. */
export function handleFiles(
  state: BatchApiState,
  { method, headers, body, route }: BatchApiRequest & { readonly route: string },
  id: string,
  action: string,
): ScriptedResponse {
  if (id === "") {
    const form = parseForm(headers["content-type"] ?? "", body);
    const file = form.get("file");
    if (!file || form.get("purpose")?.toString() !== "batch")
      return rejected("Expected a file with the purpose batch.");
    const name = state.nextId("file-");
    state.files.set(name, file);
    return jsonResponse({
      id: name,
      object: "file",
      bytes: file.length,
      purpose: "batch",
      status: "processed",
    });
  }
  const file = state.files.get(id) ?? resultFile(state, id);
  if (!file) return rejected(`No such file: ${route}.`, 404);
  if (method === "DELETE") {
    state.files.delete(id);
    return jsonResponse({ id, object: "file", deleted: true });
  }
  if (action === "content") return { headers: { "content-type": "application/jsonl" }, body: file };
  return jsonResponse({
    id,
    object: "file",
    bytes: file.length,
    purpose: "batch",
    status: "processed",
  });
}

/** Returns the parts of a form by name. */
export function parseForm(type: string, body: Buffer): Map<string, Buffer> {
  const boundary = /boundary=([^;]+)/.exec(type)?.[1] ?? "";
  const parts = new Map<string, Buffer>();
  const mark = Buffer.from(`--${boundary}\r\n`);
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + 1)) {
    const head = body.indexOf("\r\n\r\n", at);
    const end = body.indexOf(`\r\n--${boundary}`, head);
    const name = /name="([^"]*)"/.exec(body.subarray(at, head).toString())?.[1];
    if (name !== undefined && head >= 0 && end >= 0) parts.set(name, body.subarray(head + 4, end));
  }
  return parts;
}

/** Returns the lines of a file of JSON Lines. Throws if one is no line of a batch. */
export function parseLines(file: Buffer): SubmittedLine[] {
  return file
    .toString()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { custom_id, url = "", body } = JSON.parse(line);
      if (typeof custom_id !== "string" || typeof body !== "object")
        throw new Error(`Not a line of a batch: ${line.slice(0, 100)}`);
      return { id: custom_id, url, body };
    });
}

function create(state: BatchApiState, { body }: BatchApiRequest): ScriptedResponse {
  const { input_file_id, endpoint, completion_window, metadata } = JSON.parse(body.toString());
  const file = state.files.get(input_file_id);
  if (!file) return rejected("No such input file.");
  if (typeof completion_window !== "string" || typeof endpoint !== "string")
    return rejected("Missing completion_window or endpoint.");
  const lines = parseLines(file);
  if (lines.some(({ url }) => url !== endpoint)) return rejected("A line has another endpoint.");
  const key = metadata?.tollgate_job;
  return jsonResponse(render(state.create({ key, input: input_file_id, endpoint, lines })));
}

/** Lists batches, newest first. */
function list(state: BatchApiState, { query }: BatchApiRequest): ScriptedResponse {
  const all = state.batches.toReversed();
  const after = query.get("after");
  const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
  const limit = Number(query.get("limit") ?? 20);
  const data = all.slice(from, from + limit).map(render);
  return jsonResponse({ object: "list", data, has_more: from + limit < all.length });
}

const STATUS: { readonly [outcome in BatchOutcome]: string } = {
  completed: "completed",
  canceled: "cancelled",
  expired: "expired",
  failed: "failed",
};

function render(batch: FakeBatch): JsonObject {
  const { id, key, input, endpoint, lines, state, outcome, createdAt } = batch;
  const running = state === "canceling" ? "cancelling" : "in_progress";
  const good = batch.results.filter(isSuccess);
  const hasResults = state === "ended" && outcome !== "failed";
  return {
    id,
    object: "batch",
    endpoint: endpoint ?? null,
    input_file_id: input ?? null,
    completion_window: "24h",
    status: outcome ? STATUS[outcome] : running,
    created_at: createdAt,
    metadata: key === undefined ? null : { tollgate_job: key },
    output_file_id: hasResults && good.length > 0 ? `file-${id}-output` : null,
    error_file_id: hasResults && good.length < batch.results.length ? `file-${id}-error` : null,
    errors:
      outcome === "failed"
        ? { object: "list", data: [{ code: "invalid_json_line", line: 1, message: "Not JSON." }] }
        : null,
    request_counts: {
      total: lines.length,
      completed: good.length,
      failed: hasResults ? batch.results.length - good.length : 0,
    },
    ...(hasResults && { usage: renderUsage(batch.usage) }),
  };
}

const isSuccess = ({ answer }: WrittenResult): boolean =>
  typeof answer === "object" && (answer.status ?? 200) < 300;

const renderUsage = (usage: Usage): JsonObject => {
  const cached = usage.cache_read ?? 0;
  const input = (usage.input ?? 0) + cached;
  const output = usage.output ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  };
};

/** Returns a result file of a batch, unless it was deleted. */
function resultFile(state: BatchApiState, id: string): Buffer | undefined {
  const [, batchId, kind] = /^file-(.+)-(output|error)$/.exec(id) ?? [];
  const batch = state.batches.find((one) => one.id === batchId);
  if (!batch || batch.state !== "ended") return undefined;
  const results = batch.results.filter((one) => isSuccess(one) === (kind === "output"));
  return Buffer.from(results.map((result) => `${JSON.stringify(renderResult(result))}\n`).join(""));
}

/** Codes of lines that did not run. */
const NOT_RUN = { expired: "batch_expired", canceled: "batch_cancelled", lost: "lost" } as const;

/** Renders a result as one line of a result file. */
export function renderResult({ line, answer }: WrittenResult): Json {
  const own = { id: `batch_req_${line.id}`, custom_id: line.id };
  if (typeof answer !== "object")
    return {
      ...own,
      response: null,
      error: { code: NOT_RUN[answer], message: "The line did not run." },
    };
  const { status = 200, body } = answer;
  return {
    ...own,
    response: { status_code: status, request_id: `req_${line.id}`, body },
    error: null,
  };
}

// Batch APIs of the clouds, with their object storage: Vertex's batch prediction jobs on Cloud
// Storage, and Bedrock's model invocation jobs on S3. Written by hand from the vendors' clients and
// pages, not from the adapters.
import type { JsonObject } from "tollgate/plugin";
import {
  jsonResponse,
  type BatchApiState,
  type BatchFormat,
  type FakeBatch,
  type WrittenResult,
} from "tollgate/testing";

const isGood = ({ answer }: WrittenResult): boolean =>
  typeof answer === "object" && (answer.status ?? 200) < 300;
const jsonLines = (file: Buffer): any[] =>
  file
    .toString()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
const lineFile = (lines: readonly object[]): Buffer =>
  Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
const answered = (batch: FakeBatch): readonly WrittenResult[] =>
  batch.results.filter(({ answer }) => typeof answer === "object");

/** Writes the results of a job into the bucket when it has ended. */
function store(state: BatchApiState, batch: FakeBatch, name: string, file: () => Buffer): void {
  if (batch.state === "ended" && batch.outcome !== "failed" && !written.has(batch)) {
    written.add(batch);
    state.files.set(name, file());
  }
}
const written = new WeakSet<FakeBatch>();

const VERTEX_STATES = {
  completed: "JOB_STATE_SUCCEEDED",
  canceled: "JOB_STATE_CANCELLED",
  expired: "JOB_STATE_EXPIRED",
  failed: "JOB_STATE_FAILED",
} as const;

/** Vertex: lines of Gemini have a label with their ID, and lines of Claude have a `custom_id`. */
export const vertexFormat: BatchFormat = {
  paths: ["/batchPredictionJobs"],
  absolutePaths: ["/upload/storage", "/storage"],
  fails: true,
  handle(state, { method, route, path, query, body }) {
    if (path.startsWith("/upload/storage/")) {
      state.files.set(query.get("name")!, body);
      return jsonResponse({ name: query.get("name") });
    }
    if (path.startsWith("/storage/")) return handleObjects(state, method, path, query);
    const notFound = jsonResponse({ error: { code: 404, message: "Not found." } }, 404);
    const [, , id = ""] = route.split(/[/:]/);
    if (id === "" && method === "POST") {
      const { displayName, inputConfig, outputConfig } = JSON.parse(body.toString());
      const input = inputConfig.gcsSource.uris[0].replace(/^gs:\/\/[^/]+\//, "");
      const file = state.files.get(input);
      if (!file) return jsonResponse({ error: { code: 400, message: "No such object." } }, 400);
      const lines = jsonLines(file).map(({ custom_id, request }) => {
        if (custom_id !== undefined) return { id: custom_id, url: "claude", body: request };
        const { labels, ...rest } = request;
        return { id: labels.tollgate_line, url: "gemini", body: rest };
      });
      const endpoint = outputConfig.gcsDestination.outputUriPrefix;
      return jsonResponse(render(state.create({ key: displayName, input, endpoint, lines })));
    }
    if (id === "") {
      const name = /^displayName="(.*)"$/.exec(query.get("filter") ?? "")?.[1];
      const found = state.batches.filter((batch) => batch.key === name);
      return jsonResponse(found.length === 0 ? {} : { batchPredictionJobs: found.map(render) });
    }
    if (route.endsWith(":cancel") && !state.cancel(id))
      return jsonResponse({ error: { code: 400, message: "It has ended." } }, 400);
    const batch = method === "GET" ? state.advance(id) : state.batches.find((one) => one.id === id);
    if (!batch) return notFound;
    store(state, batch, `${folderOf(batch).slice("gs://bucket/".length)}/predictions.jsonl`, () =>
      lineFile(answered(batch).map(vertexLine)),
    );
    return jsonResponse(render(batch));
  },
};

const folderOf = ({ endpoint, id }: FakeBatch): string => `${endpoint}/prediction-${id}`;

function handleObjects(state: BatchApiState, method: string, path: string, query: URLSearchParams) {
  const [, name] = /\/o\/(.+)$/.exec(path) ?? [];
  if (name === undefined) {
    const prefix = query.get("prefix") ?? "";
    const items = [...state.files.keys()].filter((one) => one.startsWith(prefix));
    return jsonResponse(items.length === 0 ? {} : { items: items.map((one) => ({ name: one })) });
  }
  const file = state.files.get(decodeURIComponent(name));
  if (!file) return jsonResponse({ error: { code: 404, message: "No such object." } }, 404);
  if (method !== "DELETE") return { body: file };
  state.files.delete(decodeURIComponent(name));
  return { status: 204 };
}

function render(batch: FakeBatch): JsonObject {
  const { key, state, outcome, results } = batch;
  const good = results.filter(isGood).length;
  return {
    name: `projects/my-project/locations/global/batchPredictionJobs/${batch.id}`,
    displayName: key ?? "",
    state: outcome
      ? VERTEX_STATES[outcome]
      : state === "canceling"
        ? "JOB_STATE_CANCELLING"
        : "JOB_STATE_RUNNING",
    ...(outcome &&
      outcome !== "failed" && {
        outputInfo: { gcsOutputDirectory: folderOf(batch) },
        completionStats: {
          successfulCount: String(good),
          failedCount: String(answered(batch).length - good),
        },
      }),
    ...(outcome === "failed" && { error: { code: 3, message: "Line 1 is not JSON." } }),
  };
}

function vertexLine({ line, answer }: WrittenResult): object {
  const request =
    line.url === "claude" ? line.body : { labels: { tollgate_line: line.id }, ...line.body };
  const { status = 200, body } = answer as { status?: number; body: object };
  return {
    ...(line.url === "claude" && { custom_id: line.id }),
    request,
    response: status < 300 ? body : {},
    status: status < 300 ? "" : `Bad Request: {"error":{"code": ${status}, "message": "Invalid."}}`,
  };
}

const BEDROCK_STATES = {
  completed: "Completed",
  canceled: "Stopped",
  expired: "PartiallyCompleted",
  failed: "Failed",
} as const;
const ARN = "arn:aws:bedrock:eu-central-1:123456789012:model-invocation-job/";

/** Bedrock: jobs at the control plane, and objects in S3. A repeated token creates no second job. */
export const bedrockFormat: BatchFormat = {
  paths: [],
  absolutePaths: ["/model-invocation-job", "/bucket"],
  fails: true,
  handle(state, { method, path, query, body }) {
    if (path.startsWith("/bucket/")) {
      if (method === "PUT") state.files.set(path, body);
      if (method === "DELETE") state.files.delete(path);
      const file = state.files.get(path);
      if (method === "GET") return file ? { body: file } : { status: 404, body: "<Error/>" };
      return { status: method === "PUT" ? 200 : 204 };
    }
    if (path === "/model-invocation-job") {
      const { jobName, clientRequestToken, inputDataConfig, outputDataConfig } = JSON.parse(
        body.toString(),
      );
      const known = state.batches.find((batch) => batch.key === clientRequestToken);
      if (known) return jsonResponse({ jobArn: ARN + known.id });
      const input = inputDataConfig.s3InputDataConfig.s3Uri.replace("s3:/", "");
      const file = state.files.get(input);
      if (!file || !/^[a-zA-Z0-9][a-zA-Z0-9.+-]{0,62}$/.test(jobName))
        return jsonResponse({ message: "ValidationException" }, 400);
      const lines = jsonLines(file).map(({ recordId, modelInput }) => ({
        id: recordId,
        url: "",
        body: modelInput,
      }));
      const endpoint = outputDataConfig.s3OutputDataConfig.s3Uri.replace("s3:/", "");
      const batch = state.create({ key: clientRequestToken, input, endpoint, lines });
      return jsonResponse({ jobArn: ARN + batch.id });
    }
    if (path === "/model-invocation-jobs") {
      const name = query.get("nameContains") ?? "";
      const found = state.batches.filter(({ key }) => key?.includes(name));
      return jsonResponse({
        invocationJobSummaries: found.map(({ key, id }) => ({ jobName: key!, jobArn: ARN + id })),
      });
    }
    const id = decodeURIComponent(path)
      .replace(/\/stop$/, "")
      .split("/")
      .at(-1)!;
    if (path.endsWith("/stop"))
      return state.cancel(id)
        ? jsonResponse({})
        : jsonResponse({ message: "The job has ended." }, 409);
    const batch = state.advance(id);
    if (!batch) return jsonResponse({ message: "No such job." }, 404);
    store(state, batch, `${batch.endpoint}${id}/lines.jsonl.out`, () =>
      lineFile(answered(batch).map(bedrockLine)),
    );
    const good = batch.results.filter(isGood).length;
    return jsonResponse({
      jobArn: ARN + id,
      jobName: batch.key!,
      status: batch.outcome
        ? BEDROCK_STATES[batch.outcome]
        : batch.state === "canceling"
          ? "Stopping"
          : "InProgress",
      ...(batch.outcome === "failed" && { message: "The input is not valid." }),
      successRecordCount: good,
      errorRecordCount: answered(batch).length - good,
    });
  },
};

function bedrockLine({ line, answer }: WrittenResult): object {
  const { status = 200, body } = answer as { status?: number; body: object };
  return {
    recordId: line.id,
    modelInput: line.body,
    ...(status < 300
      ? { modelOutput: body }
      : { error: { errorCode: status, errorMessage: "bad request" } }),
  };
}

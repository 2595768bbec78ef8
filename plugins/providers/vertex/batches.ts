// Batches of Vertex: batch prediction jobs, which read their lines from Cloud Storage and write
// their results to Cloud Storage.
import {
  fail,
  type BatchClient,
  type BatchInput,
  type BatchResult,
  type BatchStatus,
  type EndpointBatches,
  type JsonObject,
  type Opt,
} from "tollgate/plugin";
import {
  createObject,
  deleteObject,
  encodeBatchLines,
  fetchJsonLines,
  fetchObject,
  requestCancellation,
  requireSuccess,
  type BatchBody,
} from "tollgate/protocols/batches";
import { asNonEmptyText, asObject } from "tollgate/protocols/compatible";
import { bareName } from "./locations.ts";

/** Address of the lines and results, and the format of a line. */
export interface VertexBatchPlace {
  /** Base URL of Cloud Storage. */
  readonly storage: string;
  /** Bucket and prefix, such as `gs://bucket/tollgate`. */
  readonly uri: string;
  readonly format: VertexLineFormat;
}

/** Format of the lines of one publisher. */
export interface VertexLineFormat {
  readonly publisher: string;
  encode(input: BatchInput): BatchBody;
  /** Returns the ID of a line in a result. */
  idOf(line: JsonObject): string | undefined;
}

/** Lines for Claude have a field for an ID. */
export const claudeLines: VertexLineFormat = {
  publisher: "anthropic",
  encode: (input) =>
    encodeBatchLines(input, { before: '{"custom_id":"', between: '","request":', after: "}\n" }),
  idOf: (line) => asNonEmptyText(line["custom_id"]),
};

/** Name of the label that contains the ID of a line. */
const LABEL = "tollgate_line";

/**
 * Lines for Gemini have no field for an ID. A label contains it, because results contain the
 * request with its labels.
 */
export const geminiLines: VertexLineFormat = {
  publisher: "google",
  encode(input) {
    // The label is the first member of the request, so the opening brace of each body is replaced.
    const inner: BatchInput = {
      ...input,
      bytes: input.bytes - input.count,
      async *lines() {
        for await (const { id, body } of input.lines()) yield { id, body: body.slice(1) };
      },
    };
    return encodeBatchLines(inner, {
      before: `{"request":{"labels":{"${LABEL}":"`,
      between: '"},',
      after: "}\n",
    });
  },
  idOf: (line) => asNonEmptyText(asObject(asObject(line["request"])?.["labels"])?.[LABEL]),
};

const JOBS = "batchPredictionJobs";

export function vertexBatches(place: VertexBatchPlace): EndpointBatches {
  const poll = async (reference: string, client: BatchClient) =>
    parseStatus(await fetchObject(client, parseReference(reference).job));
  return {
    limits: { lines: 200_000, bytes: 1_000_000_000 },
    origins: [new URL(place.storage).origin],
    dataPolicy: { retention: { kind: "until_deleted" }, requires: "unavailable" },
    submit: (input, client) => submit(place, input, client),
    find,
    poll,
    async *readResults(_reference, status, client) {
      const folder = asNonEmptyText(status.results);
      if (folder === undefined) return;
      for (const name of await listObjects(place, folder, client)) {
        if (!name.endsWith(".jsonl")) continue;
        const lines = fetchJsonLines(client, `${objectUrl(place, name)}?alt=media`);
        for await (const line of lines) {
          const result = parseResult(line, place.format.idOf(line));
          if (result) yield result;
        }
      }
    },
    cancel: (reference, client) =>
      requestCancellation(
        client,
        `${parseReference(reference).job}:cancel`,
        async () => (await poll(reference, client)).state === "ended",
      ),
    async discard(reference, client) {
      const folder = `${place.uri.replace(/\/$/, "")}/${parseReference(reference).key}/`;
      for (const name of await listObjects(place, folder, client, true))
        await deleteObject(client, objectUrl(place, name));
    },
  };
}

interface Reference {
  readonly key: string;
  /** Path of the job below the location. */
  readonly job: string;
}

function parseReference(reference: string): Reference {
  const [key, job] = reference.split(" ");
  return key && job ? { key, job } : fail("internal", "The reference of a batch is not valid.");
}

/** Returns the reference of a job. Its name contains the project and the location. */
function referenceOf(key: string, job: JsonObject): string {
  const id = /\/batchPredictionJobs\/([\w-]+)$/.exec(String(job["name"]))?.[1];
  return id === undefined
    ? fail("upstream", "Vertex returned a job without a name.", { code: "bad_answer" })
    : `${key} ${JOBS}/${id}`;
}

/** Splits `gs://bucket/prefix`. */
function splitUri(uri: string): { bucket: string; prefix: string } {
  const { host: bucket, pathname } = new URL(uri);
  return { bucket, prefix: pathname.replace(/^\//, "") };
}

const objectUrl = ({ storage, uri }: VertexBatchPlace, name: string): string =>
  `${storage}/storage/v1/b/${splitUri(uri).bucket}/o/${encodeURIComponent(name)}`;

const MAX_PAGES = 20;

/** Returns the names of the objects in a folder. Results that were deleted are an error. */
async function listObjects(
  place: VertexBatchPlace,
  folder: string,
  client: BatchClient,
  mayBeEmpty = false,
): Promise<string[]> {
  const { bucket, prefix } = splitUri(folder);
  const names: string[] = [];
  let token = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const list = await fetchObject(
      client,
      `${place.storage}/storage/v1/b/${bucket}/o?prefix=${encodeURIComponent(prefix)}${token}`,
    );
    for (const item of Array.isArray(list["items"]) ? list["items"] : [])
      names.push(...[asNonEmptyText(asObject(item)?.["name"]) ?? []].flat());
    const next = asNonEmptyText(list["nextPageToken"]);
    if (next === undefined) break;
    token = `&pageToken=${encodeURIComponent(next)}`;
  }
  if (names.length === 0 && !mayBeEmpty)
    fail("not_found", "The results of the batch were deleted in Cloud Storage.", {
      code: "results_deleted",
    });
  return names;
}

async function submit(
  place: VertexBatchPlace,
  input: BatchInput,
  client: BatchClient,
): Promise<string> {
  const { bucket } = splitUri(place.uri);
  const folder = `${place.uri.replace(/\/$/, "")}/${input.key}`;
  const lines = `${folder}/lines.jsonl`;
  const name = splitUri(lines).prefix;
  const body = place.format.encode(input);
  const query = `uploadType=media&name=${encodeURIComponent(name)}`;
  const stored = await requireSuccess(
    await client.fetch(`${place.storage}/upload/storage/v1/b/${bucket}/o?${query}`, {
      method: "POST",
      headers: { "content-type": "application/jsonl", "content-length": String(body.bytes) },
      body: body.pieces,
    }),
  );
  await stored.body?.cancel();
  const created = await createObject(
    client,
    JOBS,
    {
      displayName: input.key,
      model: `publishers/${place.format.publisher}/models/${bareName(input.model)}`,
      inputConfig: { instancesFormat: "jsonl", gcsSource: { uris: [lines] } },
      outputConfig: {
        predictionsFormat: "jsonl",
        gcsDestination: { outputUriPrefix: `${folder}/results` },
      },
    },
    () => deleteObject(client, objectUrl(place, name)),
  );
  return referenceOf(input.key, created);
}

async function find(key: string, client: BatchClient): Promise<Opt<string>> {
  const filter = encodeURIComponent(`displayName="${key}"`);
  const list = await fetchObject(client, `${JOBS}?filter=${filter}`);
  const jobs = Array.isArray(list[JOBS]) ? (list[JOBS] as readonly JsonObject[]) : [];
  const found = jobs.find((job) => job["displayName"] === key);
  return found && referenceOf(key, found);
}

const OUTCOMES: ReadonlyMap<unknown, NonNullable<BatchStatus["outcome"]>> = new Map([
  ["JOB_STATE_SUCCEEDED", "completed"],
  ["JOB_STATE_PARTIALLY_SUCCEEDED", "completed"],
  ["JOB_STATE_FAILED", "failed"],
  ["JOB_STATE_CANCELLED", "canceled"],
  ["JOB_STATE_EXPIRED", "expired"],
]);

function parseStatus(job: JsonObject): BatchStatus {
  const outcome = OUTCOMES.get(job["state"]);
  if (!outcome) return { state: job["state"] === "JOB_STATE_CANCELLING" ? "canceling" : "running" };
  const stats = asObject(job["completionStats"]) ?? {};
  const succeeded = Number(stats["successfulCount"] ?? 0);
  const failed = Number(stats["failedCount"] ?? 0);
  const folder = asNonEmptyText(asObject(job["outputInfo"])?.["gcsOutputDirectory"]);
  const message = asNonEmptyText(asObject(job["error"])?.["message"]);
  return {
    state: "ended",
    // A job that failed after its first lines was billed for them.
    outcome: outcome === "failed" && succeeded > 0 ? "canceled" : outcome,
    ...(Number.isSafeInteger(succeeded + failed) && { counts: { succeeded, failed } }),
    ...(folder !== undefined && outcome !== "failed" && { results: folder }),
    ...(message !== undefined && { message }),
  };
}

/** Number of characters of an error in which its code is looked for. */
const MAX_ERROR_TEXT = 4_096;

/** Parses a result. A line that failed has an empty response, and the error as text. */
function parseResult(line: JsonObject, id: string | undefined): BatchResult | undefined {
  if (id === undefined) return undefined;
  const response = asObject(line["response"]);
  if (response && Object.keys(response).length > 0)
    return { id, outcome: "answered", status: 200, body: response };
  const message = asNonEmptyText(line["status"]) ?? "The request was not processed.";
  const code = /"?code"?:\s{0,8}(\d{3})\b/.exec(message.slice(0, MAX_ERROR_TEXT));
  const status = Number(code?.[1] ?? 500);
  return { id, outcome: "answered", status, body: { error: { code: status, message } } };
}

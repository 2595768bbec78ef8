// Batches of the Gemini API. The lines are uploaded as a file, and the batch is an operation whose
// name is its reference.
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
} from "tollgate/protocols/batches";
import { asNonEmptyText, asObject } from "tollgate/protocols/compatible";

/** Returns the batches of an API with this base URL, which ends with the version. */
export function geminiBatches(base: string): EndpointBatches {
  const { origin, pathname } = new URL(base);
  const poll = async (reference: string, client: BatchClient) =>
    parseStatus(await fetchObject(client, parseReference(reference).batch));
  return {
    limits: { lines: 100_000, bytes: 2_000_000_000 },
    dataPolicy: { retention: { kind: "unknown" }, requires: "unavailable" },
    submit: (input, client) => submit(input, client, `${origin}/upload${pathname}/files`),
    find,
    poll,
    async *readResults(_reference, status, client) {
      const file = asNonEmptyText(status.results);
      if (file === undefined) return;
      const url = `${origin}/download${pathname}/${file}:download?alt=media`;
      for await (const line of fetchJsonLines(client, url)) {
        const result = parseResult(line);
        if (result) yield result;
      }
    },
    cancel: (reference, client) =>
      requestCancellation(
        client,
        `${parseReference(reference).batch}:cancel`,
        async () => (await poll(reference, client)).state === "ended",
      ),
    async discard(reference, client) {
      const { batch, input } = parseReference(reference);
      await deleteObject(client, batch);
      if (input !== undefined) await deleteObject(client, input);
    },
  };
}

interface Reference {
  readonly batch: string;
  readonly input: Opt<string>;
}

/** Names of resources are paths, so only names of the expected form are used. */
const nameOf = (value: unknown, collection: string): string | undefined => {
  const name = asNonEmptyText(value);
  return name !== undefined && new RegExp(`^${collection}/[\\w.-]+$`).test(name) ? name : undefined;
};

function parseReference(reference: string): Reference {
  const [batch, input] = reference.split(" ");
  return {
    batch: nameOf(batch, "batches") ?? fail("internal", "The reference of a batch is not valid."),
    input: nameOf(input, "files"),
  };
}

const badAnswer = (what: string): never =>
  fail("upstream", `The Gemini API returned no ${what}.`, { code: "bad_answer" });

async function submit(input: BatchInput, client: BatchClient, uploadUrl: string): Promise<string> {
  const file = await upload(input, client, uploadUrl);
  const created = await createObject(
    client,
    `models/${encodeURIComponent(input.model)}:batchGenerateContent`,
    { batch: { displayName: input.key, inputConfig: { fileName: file } } },
    () => deleteObject(client, file),
  );
  return `${nameOf(created["name"], "batches") ?? badAnswer("name of the batch")} ${file}`;
}

/** Uploads the lines, and returns the name of the file. */
async function upload(input: BatchInput, client: BatchClient, url: string): Promise<string> {
  const body = encodeBatchLines(input, {
    before: '{"key":"',
    between: '","request":',
    after: "}\n",
  });
  const size = String(body.bytes);
  const started = await requireSuccess(
    await client.fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": size,
        "x-goog-upload-header-content-type": "application/jsonl",
      },
      body: JSON.stringify({ file: { displayName: input.key } }),
    }),
  );
  await started.body?.cancel();
  const session = URL.parse(started.headers.get("x-goog-upload-url") ?? "");
  if (session?.origin !== new URL(url).origin) return badAnswer("upload URL on its own host");
  const uploaded = await fetchObject(client, session, {
    method: "POST",
    headers: {
      "content-length": size,
      "x-goog-upload-offset": "0",
      "x-goog-upload-command": "upload, finalize",
    },
    body: body.pieces,
  });
  return nameOf(asObject(uploaded["file"])?.["name"], "files") ?? badAnswer("name of the file");
}

const MAX_PAGES = 50;

async function find(key: string, client: BatchClient): Promise<Opt<string>> {
  let token = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const list = await fetchObject(client, `batches?pageSize=100${token}`);
    const operations = Array.isArray(list["operations"]) ? list["operations"] : [];
    for (const operation of operations as readonly JsonObject[]) {
      const metadata = asObject(operation["metadata"]);
      const name = nameOf(operation["name"], "batches");
      if (metadata?.["displayName"] !== key || name === undefined) continue;
      const input = nameOf(asObject(metadata["inputConfig"])?.["fileName"], "files");
      return input === undefined ? name : `${name} ${input}`;
    }
    const next = asNonEmptyText(list["nextPageToken"]);
    if (next === undefined) return undefined;
    token = `&pageToken=${encodeURIComponent(next)}`;
  }
  return fail("upstream", "The provider has too many batches to find one by its key.", {
    code: "batch_not_identified",
  });
}

const OUTCOMES: ReadonlyMap<string, NonNullable<BatchStatus["outcome"]>> = new Map([
  ["SUCCEEDED", "completed"],
  ["PARTIALLY_SUCCEEDED", "completed"],
  ["FAILED", "failed"],
  ["CANCELLED", "canceled"],
  ["EXPIRED", "expired"],
]);

function parseStatus(operation: JsonObject): BatchStatus {
  const metadata = asObject(operation["metadata"]) ?? {};
  // States are named BATCH_STATE_… or JOB_STATE_…, depending on the version of the API.
  const state = String(metadata["state"]).replace(/^(BATCH|JOB)_STATE_/, "");
  const outcome = OUTCOMES.get(state);
  if (!outcome) return { state: state === "CANCELLING" ? "canceling" : "running" };
  const output = asObject(metadata["output"]) ?? asObject(operation["response"]) ?? {};
  const results = nameOf(output["responsesFile"], "files");
  const stats = asObject(metadata["batchStats"]) ?? {};
  const succeeded = Number(stats["successfulRequestCount"] ?? Number.NaN);
  const failed = Number(stats["failedRequestCount"] ?? 0);
  const message = asNonEmptyText(asObject(operation["error"])?.["message"]);
  return {
    state: "ended",
    // A batch that failed while it ran has results, and was billed for them.
    outcome: outcome === "failed" && results !== undefined ? "canceled" : outcome,
    ...(message !== undefined && { message }),
    ...(Number.isSafeInteger(succeeded + failed) && { counts: { succeeded, failed } }),
    ...(results !== undefined && { results }),
  };
}

/** HTTP status of the codes of google.rpc.Status. */
const STATUS: ReadonlyMap<unknown, number> = new Map([
  [1, 499],
  [3, 400],
  [4, 504],
  [5, 404],
  [7, 403],
  [8, 429],
  [9, 400],
  [14, 503],
  [16, 401],
]);

function parseResult(line: JsonObject): BatchResult | undefined {
  const id = asNonEmptyText(line["key"]);
  if (id === undefined) return undefined;
  const response = asObject(line["response"]);
  if (response) return { id, outcome: "answered", status: 200, body: response };
  const error = asObject(line["error"]) ?? asObject(line["status"]) ?? {};
  if (error["code"] === 1) return { id, outcome: "canceled", status: 0 };
  const status = STATUS.get(error["code"]) ?? 500;
  return { id, outcome: "answered", status, body: { error: { ...error, code: status } } };
}

// Batches of Bedrock: model invocation jobs, which read their lines from S3 and write their results
// to S3. The token of a job makes its creation idempotent, so a repeated submission starts no
// second job.
import { createHash } from "node:crypto";
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
import { listOf, objectOf, textOf } from "./json.ts";

/** Addresses of the batches of one endpoint, and of their lines and results. */
export interface BedrockBatchPlace {
  /** Base URL of the control plane. */
  readonly control: string;
  /** Base URL of S3. */
  readonly storage: string;
  /** Bucket and prefix, such as `s3://bucket/tollgate`. */
  readonly uri: string;
  /** ARN of the role with which Bedrock accesses the bucket. */
  readonly role: string;
  /** API whose request and response bodies the lines contain. */
  readonly api: "InvokeModel" | "Converse";
}

/** Length of a record ID, as in AWS's documentation. Line IDs have 8 digits. */
const ID_PADDING = "000";
const ID_LENGTH = 8;
const HOURS = 24;

export function bedrockBatches(place: BedrockBatchPlace): EndpointBatches {
  const { control } = place;
  const poll = async (reference: string, client: BatchClient) =>
    parseStatus(await fetchObject(client, jobUrl(control, parseReference(reference).job)));
  return {
    limits: { lines: 50_000, bytes: 1_000_000_000, minLines: 100 },
    origins: [control, place.storage].map((url) => new URL(url).origin),
    dataPolicy: { retention: { kind: "until_deleted" }, requires: "unavailable" },
    submit: (input, client) => submit(place, input, client),
    find: (key, client) => find(control, jobName(key), client),
    poll,
    async *readResults(reference, status, client) {
      const { succeeded = 0, failed = 0 } = status.counts ?? {};
      // A job that was stopped before its first record has no result file.
      if (
        status.outcome === "failed" ||
        (status.outcome !== "completed" && succeeded + failed === 0)
      )
        return;
      for await (const line of fetchJsonLines(client, resultUrl(place, reference))) {
        const result = parseResult(line);
        if (result) yield result;
      }
    },
    cancel: (reference, client) =>
      requestCancellation(
        client,
        `${jobUrl(control, parseReference(reference).job)}/stop`,
        async () => (await poll(reference, client)).state === "ended",
      ),
    async discard(reference, client) {
      const { name } = parseReference(reference);
      const results = resultUrl(place, reference);
      await deleteObject(client, objectUrl(place, `${name}/${LINES}`));
      await deleteObject(client, results);
      await deleteObject(client, results.replace(/[^/]*$/, "manifest.json.out"));
    },
  };
}

/** Name of the file with the lines. The file with the results has the same name and a suffix. */
const LINES = "lines.jsonl";

/** Returns the name of the job, which only contains characters that AWS allows. */
const jobName = (key: string): string =>
  `tollgate-${createHash("sha256").update(key).digest("hex").slice(0, 40)}`;

interface Reference {
  readonly name: string;
  /** ARN of the job. */
  readonly job: string;
}

function parseReference(reference: string): Reference {
  const [name, job] = reference.split(" ");
  return name && job ? { name, job } : fail("internal", "The reference of a batch is not valid.");
}

const jobUrl = (control: string, arn: string): string =>
  `${control}/model-invocation-job/${encodeURIComponent(arn)}`;

/** Splits `s3://bucket/prefix`. The prefix has no slash at its end. */
function splitUri(uri: string): { bucket: string; prefix: string } {
  const { host: bucket, pathname } = new URL(uri);
  return { bucket, prefix: pathname.replace(/^\/|\/$/g, "") };
}

/** Returns the URL of an object below the prefix, with the bucket in the path. */
function objectUrl({ storage, uri }: BedrockBatchPlace, name: string): string {
  const { bucket, prefix } = splitUri(uri);
  const path = [bucket, ...prefix.split("/"), ...name.split("/")].filter((part) => part !== "");
  return `${storage}/${path.map(encodeURIComponent).join("/")}`;
}

/** Returns the URL of the results. The service adds the ID of the job to the path. */
function resultUrl(place: BedrockBatchPlace, reference: string): string {
  const { name, job } = parseReference(reference);
  return objectUrl(place, `${name}/results/${job.split("/").at(-1)}/${LINES}.out`);
}

async function submit(
  place: BedrockBatchPlace,
  input: BatchInput,
  client: BatchClient,
): Promise<string> {
  const name = jobName(input.key);
  const lines = objectUrl(place, `${name}/${LINES}`);
  const body = encodeBatchLines(input, {
    before: `{"recordId":"${ID_PADDING}`,
    between: '","modelInput":',
    after: "}\n",
  });
  const stored = await requireSuccess(
    await client.fetch(lines, {
      method: "PUT",
      headers: { "content-type": "application/jsonl", "content-length": String(body.bytes) },
      body: body.pieces,
    }),
  );
  await stored.body?.cancel();
  const folder = `${place.uri.replace(/\/$/, "")}/${name}`;
  const created = await createObject(
    client,
    `${place.control}/model-invocation-job`,
    {
      jobName: name,
      clientRequestToken: name,
      roleArn: place.role,
      modelId: input.model,
      modelInvocationType: place.api,
      timeoutDurationInHours: HOURS,
      inputDataConfig: {
        s3InputDataConfig: { s3InputFormat: "JSONL", s3Uri: `${folder}/${LINES}` },
      },
      outputDataConfig: { s3OutputDataConfig: { s3Uri: `${folder}/results/` } },
    },
    () => deleteObject(client, lines),
  );
  const job =
    textOf(created["jobArn"]) ??
    fail("upstream", "Bedrock returned a job without an ARN.", { code: "bad_answer" });
  return `${name} ${job}`;
}

async function find(control: string, name: string, client: BatchClient): Promise<Opt<string>> {
  const list = await fetchObject(
    client,
    `${control}/model-invocation-jobs?nameContains=${encodeURIComponent(name)}&maxResults=10`,
  );
  const found = listOf(list["invocationJobSummaries"])
    .map(objectOf)
    .find((one) => one?.["jobName"] === name);
  const job = textOf(found?.["jobArn"]);
  return job === undefined ? undefined : `${name} ${job}`;
}

const OUTCOMES: ReadonlyMap<unknown, NonNullable<BatchStatus["outcome"]>> = new Map([
  ["Completed", "completed"],
  // The time of the job was over before all records were processed.
  ["PartiallyCompleted", "expired"],
  ["Expired", "expired"],
  ["Stopped", "canceled"],
  ["Failed", "failed"],
]);

function parseStatus(job: JsonObject): BatchStatus {
  const outcome = OUTCOMES.get(job["status"]);
  if (!outcome) return { state: job["status"] === "Stopping" ? "canceling" : "running" };
  const succeeded = Number(job["successRecordCount"] ?? Number.NaN);
  const failed = Number(job["errorRecordCount"] ?? 0);
  const message = textOf(job["message"]);
  return {
    state: "ended",
    // A job that failed after its first records was billed for them.
    outcome: outcome === "failed" && succeeded > 0 ? "canceled" : outcome,
    ...(Number.isSafeInteger(succeeded + failed) && { counts: { succeeded, failed } }),
    ...(message !== undefined && { message }),
  };
}

function parseResult(line: JsonObject): BatchResult | undefined {
  const id = textOf(line["recordId"])?.slice(-ID_LENGTH);
  if (id === undefined) return undefined;
  const output = objectOf(line["modelOutput"]);
  if (output) return { id, outcome: "answered", status: 200, body: output };
  const error = objectOf(line["error"]) ?? {};
  const code = Number(error["errorCode"]);
  const message = textOf(error["errorMessage"]) ?? "The record was not processed.";
  return {
    id,
    outcome: "answered",
    status: code >= 400 && code < 600 ? code : 500,
    body: { message },
  };
}

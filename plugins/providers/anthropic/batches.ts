// Anthropic's message batches. The lines are sent in the request that creates the batch. The API
// keeps no metadata, so the ID of each line begins with a hash of the batch's key: the results of
// a batch then show which submission created it.
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
  deleteObject,
  encodeBatchLines,
  fetchJsonLines,
  fetchObject,
  requestCancellation,
} from "tollgate/protocols/batches";
import { asNonEmptyText, asObject } from "tollgate/protocols/compatible";

const PATH = "messages/batches";
const RESULT_DAYS = 29;

/** Returns the message batches of an API with this version. */
export function messageBatches(version: string): EndpointBatches {
  const headers = { "anthropic-version": version };
  const at = (reference: string) => `${PATH}/${encodeURIComponent(reference)}`;
  const poll = async (reference: string, client: BatchClient) =>
    parseStatus(await fetchObject(client, at(reference), { headers }));
  const results = (reference: string, client: BatchClient) =>
    fetchJsonLines(client, `${at(reference)}/results`, { headers });
  return {
    limits: { lines: 100_000, bytes: 256_000_000 },
    // Batches are not part of zero data retention agreements.
    dataPolicy: { retention: { kind: "days", days: RESULT_DAYS }, requires: "unavailable" },
    submit: (input, client) => submit(input, client, headers),
    find: (key, client) => find(idPrefix(key), client, headers, results),
    poll,
    async *readResults(reference, _status, client) {
      for await (const line of results(reference, client)) {
        const result = parseResult(line);
        if (result) yield result;
      }
    },
    cancel: (reference, client) =>
      requestCancellation(
        client,
        `${at(reference)}/cancel`,
        async () => (await poll(reference, client)).state === "ended",
        { method: "POST", headers },
      ),
    discard: (reference, client) => deleteObject(client, at(reference), headers),
  };
}

/** Length of the hash in the ID of a line. */
const PREFIX_LENGTH = 24;

/** Returns the text before the ID of each line in a batch with this key. */
const idPrefix = (key: string): string =>
  `${createHash("sha256").update(key).digest("hex").slice(0, PREFIX_LENGTH)}-`;

async function submit(
  input: BatchInput,
  client: BatchClient,
  headers: Record<string, string>,
): Promise<string> {
  const body = encodeBatchLines(
    input,
    {
      before: `{"custom_id":"${idPrefix(input.key)}`,
      between: '","params":',
      after: "}",
      separator: ",",
    },
    { head: '{"requests":[', tail: "]}" },
  );
  const created = await fetchObject(client, PATH, {
    method: "POST",
    headers: {
      ...headers,
      ...input.headers,
      "content-type": "application/json",
      "content-length": String(body.bytes),
    },
    body: body.pieces,
  });
  return (
    asNonEmptyText(created["id"]) ??
    fail("upstream", "Anthropic returned a batch without an ID.", { code: "bad_answer" })
  );
}

/** A batch ends within 24 hours of its creation. Older batches are not searched. */
const MAX_AGE_MS = 26 * 3_600_000;
const MAX_PAGES = 20;

/**
 * Finds the batch whose lines have this prefix. Lines can be read only after a batch has ended, so
 * the search fails while a batch runs that could be the one.
 */
async function find(
  prefix: string,
  client: BatchClient,
  headers: Record<string, string>,
  results: (reference: string, client: BatchClient) => AsyncIterable<JsonObject>,
): Promise<Opt<string>> {
  let newest: number | undefined;
  let isUndecided = false;
  let after = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const list = await fetchObject(client, `${PATH}?limit=100${after}`, { headers });
    const batches = Array.isArray(list["data"]) ? list["data"] : [];
    for (const batch of batches as readonly JsonObject[]) {
      const created = Date.parse(String(batch["created_at"]));
      newest ??= created;
      if (created < newest - MAX_AGE_MS) return decide(isUndecided);
      const id = asNonEmptyText(batch["id"]);
      if (id === undefined) continue;
      if (batch["processing_status"] !== "ended") isUndecided = true;
      else if (batch["results_url"] && (await firstLineId(results(id, client)))?.startsWith(prefix))
        return id;
    }
    const last = asNonEmptyText(list["last_id"]);
    if (list["has_more"] !== true || last === undefined) return decide(isUndecided);
    after = `&after_id=${encodeURIComponent(last)}`;
  }
  return decide(true);
}

const decide = (isUndecided: boolean): undefined => {
  if (isUndecided)
    fail("overloaded", "A batch that may be the one in question has not ended.", {
      code: "batch_not_identified",
    });
};

async function firstLineId(lines: AsyncIterable<JsonObject>): Promise<string | undefined> {
  for await (const line of lines) return asNonEmptyText(line["custom_id"]);
  return undefined;
}

function parseStatus(batch: JsonObject): BatchStatus {
  const counts = asObject(batch["request_counts"]) ?? {};
  const count = (name: string) => (typeof counts[name] === "number" ? counts[name] : 0);
  const state = batch["processing_status"];
  if (state !== "ended") return { state: state === "canceling" ? "canceling" : "running" };
  const outcome =
    count("canceled") > 0 ? "canceled" : count("expired") > 0 ? "expired" : "completed";
  return {
    state: "ended",
    outcome,
    counts: { succeeded: count("succeeded"), failed: count("errored") },
  };
}

/** HTTP status of an error outside of a batch. */
const STATUS: ReadonlyMap<unknown, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

function parseResult(line: JsonObject): BatchResult | undefined {
  const name = asNonEmptyText(line["custom_id"]);
  const id = name?.slice(name.indexOf("-") + 1);
  const result = asObject(line["result"]);
  if (id === undefined || !result) return undefined;
  const { type, message } = result;
  if (type === "canceled" || type === "expired") return { id, outcome: type, status: 0 };
  if (type === "succeeded" && message !== undefined)
    return { id, outcome: "answered", status: 200, body: message };
  const error = asObject(result["error"]);
  const inner = asObject(error?.["error"]) ?? error ?? {};
  const status = STATUS.get(inner["type"]) ?? 500;
  const requestId = asNonEmptyText(error?.["request_id"]);
  return {
    id,
    outcome: "answered",
    status,
    body: { type: "error", error: inner },
    ...(requestId !== undefined && { requestId }),
  };
}

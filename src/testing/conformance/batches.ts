// Checks of batches. A fake of the provider's batch API runs the batches, so the checks know which
// lines it received and which results it wrote. Every line must be sent once, and its result must
// be returned under its ID, whatever the order of the results is.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type { Json } from "../../model/values.ts";
import type { BatchClient, BatchInput, BatchResult, EndpointBatches } from "../../plugin/batch.ts";
import type { Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import { createBatchApi, type BatchApi, type BatchApiOptions } from "../batches/batch-api.ts";
import { openAiBatchFormat } from "../batches/openai-format.ts";
import type { Check } from "../check.ts";
import { jsonResponse } from "../upstream/scripted-response.ts";
import * as fakes from "../fakes.ts";
import { isProtocolEndpoint } from "./operation.ts";
import { createSetupCheck } from "./side-effects.ts";
import type { ConformanceSubject } from "./subject.ts";

/** Returns the checks of a provider's batches. */
export function batchChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Provider>(subject);
  const check = (name: string, run: (of: BatchSubject) => Promise<unknown>) =>
    each(`batches: ${name}`, async (provider) => {
      for (const endpoint of provider.endpoints)
        if (isProtocolEndpoint(endpoint) && endpoint.batches)
          await run({ endpoint, batches: endpoint.batches, subject });
    });
  return [
    check("the declaration can be used", async (of) => checkDeclaration(of)),
    check("limits are positive, and a reference is short", checkLimits),
    check("each line is sent once, and its result has its ID", checkResults),
    check("the order and the repetition of results do not matter", checkDisorder),
    check("a batch that was canceled or expired returns the results that exist", checkEnds),
    check("a batch that failed reports the reason", checkFailed),
    check("a batch is found after the response to its submission was lost", checkLostSubmission),
    check("results that are cut off or deleted are an error", checkMissingResults),
    check("canceling and discarding can be repeated", checkRepetition),
    check("an error of the API is a fault", checkFaults),
  ];
}

interface BatchSubject {
  readonly endpoint: ProtocolEndpoint;
  readonly batches: EndpointBatches;
  readonly subject: ConformanceSubject;
}

/** Starts a fake API at the path of the endpoint. */
function startApi(
  { endpoint, subject }: BatchSubject,
  options: BatchApiOptions = {},
): { api: BatchApi; client: BatchClient } {
  const { origin, pathname } = new URL(endpoint.base);
  const api = createBatchApi({
    format: subject.batches ?? openAiBatchFormat,
    base: pathname.replace(/\/$/, ""),
    answer: ({ id }) => ({ body: { answer: id } }),
    ...options,
  });
  return { api, client: api.client({ origin }) };
}

const LINES = 20;

/** Returns a batch of requests to the endpoint. */
function createInput({ endpoint, batches }: BatchSubject, key = "job-1"): BatchInput {
  const paths = endpoint.paths ?? endpoint.protocol.client?.paths;
  const path = paths?.["generate"];
  const call = fakes.call({ protocol: endpoint.protocol.id, model: "model" });
  const count = Math.max(LINES, batches.limits.minLines ?? 1);
  const lines = Array.from({ length: count }, (_, i) => ({
    id: String(i + 1).padStart(8, "0"),
    body: JSON.stringify({ model: "model", text: `Line ${i + 1}: ☕\r\n"quoted"` }),
  }));
  return {
    key,
    model: "model",
    path: typeof path === "function" ? path(call) : (path ?? "/"),
    headers: {},
    count,
    bytes: lines.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0),
    async *lines() {
      yield* lines;
    },
  };
}

/** Polls a batch until it has ended. */
async function waitForEnd(batches: EndpointBatches, reference: string, client: BatchClient) {
  for (let polls = 0; polls < 10; polls++) {
    const status = await batches.poll(reference, client);
    if (status.state === "ended") return status;
  }
  return assert.fail("poll() does not report that the batch has ended");
}

async function readAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Runs a batch to its end, and returns its results. */
async function runBatch(of: BatchSubject, options: BatchApiOptions = {}) {
  const { api, client } = startApi(of, options);
  const input = createInput(of);
  const reference = await of.batches.submit(input, client);
  const status = await waitForEnd(of.batches, reference, client);
  const results = await readAll(of.batches.readResults(reference, status, client));
  return { api, client, input, reference, status, results };
}

/** Names of models with which `servesModel` is called. */
const MODELS = ["model", "", "gpt-6", "family/model:tag", "models/é"];

/** Checks the members that the gateway reads before it runs a batch. */
function checkDeclaration({ endpoint, batches }: BatchSubject): void {
  assert.notEqual(
    endpoint.streaming,
    "always",
    "an endpoint that streams every response cannot run batches: remove `batches`",
  );
  const { limits, origins = [] } = batches;
  const { lines, minLines } = limits;
  assert.ok((minLines ?? 1) <= lines, "limits.minLines is larger than limits.lines");
  for (const origin of origins)
    assert.equal(origin, new URL(origin).origin, `origins: "${origin}" is not an origin`);
  for (const model of MODELS) {
    const serves = batches.servesModel?.(model) ?? true;
    assert.equal(typeof serves, "boolean", "servesModel() must return a boolean");
    assert.equal(
      batches.servesModel?.(model) ?? true,
      serves,
      "servesModel() must return the same for the same model",
    );
  }
}

async function checkLimits(of: BatchSubject): Promise<void> {
  const { lines, bytes, minLines = 1 } = of.batches.limits;
  for (const [name, limit] of Object.entries({ lines, bytes, minLines }))
    assert.ok(Number.isSafeInteger(limit) && limit > 0, `limits.${name} must be positive`);
  const { reference } = await runBatch(of);
  assert.equal(typeof reference, "string", "submit() must return a text");
  assert.ok(Buffer.byteLength(reference) <= 2048, "a reference must be at most 2 KiB");
}

/** Returns the ID that the fake API wrote into the body of a result. */
const answerOf = (result: BatchResult): string =>
  String((result.body as { readonly answer?: Json } | undefined)?.answer);

async function checkResults(of: BatchSubject): Promise<void> {
  const { api, input, status, results } = await runBatch(of);
  const [batch] = api.batches;
  assert.equal(api.batches.length, 1, "submit() must create one batch");
  const sent = await readAll(input.lines());
  assert.deepEqual(
    batch?.lines.map((line) => JSON.stringify(line.body)),
    sent.map((line) => line.body),
    "the bodies of the lines must be sent unchanged and in order",
  );
  for (const request of api.requests) {
    const length = request.headers["content-length"];
    if (length !== undefined)
      assert.equal(Number(length), request.body.length, "content-length must be correct");
  }
  assert.equal(status.outcome, "completed", "the outcome of a batch that completed");
  assert.deepEqual(
    results.map(({ id }) => id).sort(),
    sent.map(({ id }) => id),
    "each line must have one result",
  );
  for (const result of results) {
    assert.equal(result.outcome, "answered");
    assert.equal(result.status, 200);
    assert.ok(answerOf(result).endsWith(result.id), `line ${result.id} has another line's result`);
  }
}

async function checkDisorder(of: BatchSubject): Promise<void> {
  const failing = (id: string) => Number(id.slice(-8)) % 3 === 0;
  const { input, results } = await runBatch(of, {
    order: "shuffled",
    repeatEvery: 2,
    answer: ({ id }) =>
      failing(id)
        ? { status: 400, body: { error: { message: id, type: "invalid_request_error" } } }
        : { body: { answer: id } },
  });
  const seen = new Map(results.map((result) => [result.id, result]));
  assert.equal(seen.size, input.count, "each line must have a result");
  for (const [id, result] of seen) {
    assert.equal(result.outcome, "answered");
    if (failing(id)) assert.ok(result.status >= 400, `line ${id} failed: status ${result.status}`);
    else assert.ok(answerOf(result).endsWith(id), `line ${id} has another line's result`);
  }
}

async function checkEnds(of: BatchSubject): Promise<void> {
  const expired = await runBatch(of, { outcome: () => "expired" });
  assert.equal(expired.status.outcome, "expired", "the outcome of a batch that expired");
  const { api, client } = startApi(of, { polls: 3 });
  const reference = await of.batches.submit(createInput(of), client);
  assert.equal((await of.batches.poll(reference, client)).state, "running");
  await of.batches.cancel(reference, client);
  assert.equal((await of.batches.poll(reference, client)).state, "canceling");
  const status = await waitForEnd(of.batches, reference, client);
  assert.equal(status.outcome, "canceled", "the outcome of a batch that was canceled");
  const results = await readAll(of.batches.readResults(reference, status, client));
  for (const [outcome, all] of [
    ["expired", expired.results],
    ["canceled", results],
  ] as const) {
    const answered = all.filter((result) => result.outcome === "answered");
    assert.equal(answered.length, Math.floor(api.batches[0]!.lines.length / 2));
    for (const result of all)
      if (result.outcome !== "answered")
        assert.equal(result.outcome, outcome, "the outcome of a line that did not run");
  }
}

async function checkFailed(of: BatchSubject): Promise<void> {
  if (!(of.subject.batches ?? openAiBatchFormat).fails) return;
  const { status, results } = await runBatch(of, { outcome: () => "failed" });
  assert.equal(status.outcome, "failed", "the outcome of a batch that was rejected");
  assert.ok(status.message, "the reason must be reported in `message`");
  assert.deepEqual(results, [], "a batch that was rejected has no results");
}

async function checkLostSubmission(of: BatchSubject): Promise<void> {
  const { batches } = of;
  if (!batches.find) return;
  for (const failure of ["lost_response", "lost_request"] as const) {
    // The last request of a submission creates the batch.
    const probe = startApi(of);
    await batches.submit(createInput(of), probe.client);
    const last = probe.api.requests.length;
    const { api, client } = startApi(of, {
      polls: 0,
      failure: (_request, number) => (number === 2 * last ? failure : undefined),
    });
    await batches.submit(createInput(of, "job-0"), client);
    await assert.rejects(batches.submit(createInput(of), client), "the response was lost");
    for (const { id } of api.batches) api.end(id);
    const found = await batches.find("job-1", client);
    if (failure === "lost_request") {
      assert.equal(found, undefined, "find() returns a batch that does not exist");
      continue;
    }
    assert.ok(found !== undefined, "find() does not return the batch");
    const status = await waitForEnd(batches, found, client);
    const results: BatchResult[] = await readAll(batches.readResults(found, status, client));
    assert.equal(results.length, api.batches[1]!.lines.length);
    await batches.cancel(found, client);
    await batches.discard?.(found, client);
  }
}

/** An error that the host shows to the client or uses to decide on a repetition. */
const isFault = (error: unknown): boolean => getFault(error) !== undefined;

async function checkMissingResults(of: BatchSubject): Promise<void> {
  let failure: BatchApiOptions["failure"];
  const { client } = startApi(of, { failure: (...request) => failure?.(...request) });
  const { batches } = of;
  const reference = await batches.submit(createInput(of), client);
  const status = await waitForEnd(batches, reference, client);
  const read = () => readAll(batches.readResults(reference, status, client));
  failure = () => "truncated";
  await assert.rejects(read(), "results that are cut off must be an error");
  failure = () => jsonResponse({ error: { message: "Not found." } }, 404);
  await assert.rejects(
    read(),
    (error) => getFault(error)?.kind === "not_found",
    "deleted results must be a fault of the kind not_found",
  );
}

async function checkRepetition(of: BatchSubject): Promise<void> {
  const { client, reference, api } = await runBatch(of);
  const { batches } = of;
  for (let turn = 0; turn < 2; turn++) await batches.cancel(reference, client);
  assert.equal(api.batches[0]?.outcome, "completed", "a batch that has ended must not change");
  for (let turn = 0; turn < 2; turn++) await batches.discard?.(reference, client);
}

const FAULTS = [
  jsonResponse({ error: { message: "Busy." } }, 503),
  jsonResponse({ error: { message: "No such key." } }, 401),
  { status: 502, body: "<html>", headers: { "content-type": "text/html" } },
  { status: 200, body: "<html>", headers: { "content-type": "text/html" } },
];

async function checkFaults(of: BatchSubject): Promise<void> {
  const { batches } = of;
  for (const failed of FAULTS) {
    let fails = false;
    const { client } = startApi(of, { failure: () => (fails ? failed : undefined) });
    const reference = await batches.submit(createInput(of), client);
    fails = true;
    await assert.rejects(batches.submit(createInput(of), client), isFault, "submit()");
    await assert.rejects(batches.poll(reference, client), isFault, "poll()");
    if (batches.find) await assert.rejects(batches.find("job-1", client), isFault, "find()");
    if (failed.status !== 200)
      await assert.rejects(batches.cancel(reference, client), isFault, "cancel()");
  }
}

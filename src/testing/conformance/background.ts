// Checks of the background mode. A fake of the provider's API runs the requests, so the checks know
// what was started, canceled, and billed.
import assert from "node:assert/strict";
import { getFault, type ErrorKind } from "../../model/error.ts";
import type { BatchClient } from "../../plugin/batch.ts";
import type { EndpointBackground } from "../../plugin/jobs/background.ts";
import type { Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import { createBackgroundApi, type BackgroundApiOptions } from "../background/background-api.ts";
import { openAiBackgroundFormat } from "../background/openai-format.ts";
import type { Check } from "../check.ts";
import * as fakes from "../fakes.ts";
import { jsonResponse } from "../upstream/scripted-response.ts";
import { isProtocolEndpoint } from "./operation.ts";
import { createSetupCheck } from "./side-effects.ts";
import type { ConformanceSubject } from "./subject.ts";

/** Returns the checks of a provider's background mode. */
export function backgroundChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Provider>(subject);
  const check = (name: string, run: (of: BackgroundSubject) => Promise<unknown>) =>
    each(`background: ${name}`, async (provider) => {
      for (const endpoint of provider.endpoints)
        if (isProtocolEndpoint(endpoint) && endpoint.background)
          await run({ endpoint, background: endpoint.background, subject });
    });
  return [
    check("the declaration can be used", async (of) => checkDeclaration(of)),
    check("a response is polled to its end, with its usage", checkEnd),
    check("a reference is short, and contains no content", checkReference),
    check("a response that failed has a reason", checkFailed),
    check("a response is canceled, and canceling can be repeated", checkCanceled),
    check("a response that was deleted is not found", checkDeleted),
    check("a rejection is distinguished from a lost answer", checkRejections),
    check("an error of the API is a fault", checkFaults),
  ];
}

interface BackgroundSubject {
  readonly endpoint: ProtocolEndpoint;
  readonly background: EndpointBackground;
  readonly subject: ConformanceSubject;
}

function startApi({ endpoint, subject }: BackgroundSubject, options: BackgroundApiOptions = {}) {
  const { origin, pathname } = new URL(endpoint.base);
  const api = createBackgroundApi({
    format: subject.background ?? openAiBackgroundFormat,
    base: pathname.replace(/\/$/, ""),
    ...options,
  });
  return { api, client: api.client(origin) };
}

const PROMPT = "A sunrise over the sea: ☕";

function start({ endpoint, background }: BackgroundSubject, client: BatchClient): Promise<string> {
  const path = (endpoint.paths ?? endpoint.protocol.client?.paths)?.["generate"];
  const call = fakes.call({ protocol: endpoint.protocol.id, model: "model" });
  return background.create(
    {
      model: "model",
      path: typeof path === "function" ? path(call) : (path ?? "/"),
      headers: {},
      body: JSON.stringify({ model: "model", input: PROMPT, stream: true }),
    },
    client,
  );
}

async function waitForEnd(of: BackgroundSubject, reference: string, client: BatchClient) {
  for (let polls = 0; polls < 10; polls++) {
    const status = await of.background.poll(reference, client);
    if (status.state !== "queued" && status.state !== "running") return status;
    assert.equal(status.response, undefined, "a response that has not ended");
  }
  return assert.fail("poll() does not report that the response has ended");
}

/** Checks that the frontend for background responses can use the endpoint. */
function checkDeclaration({ endpoint }: BackgroundSubject): void {
  assert.equal(
    endpoint.protocol.id,
    "responses",
    "only an endpoint with the protocol responses can have a background mode",
  );
  assert.notEqual(
    endpoint.streaming,
    "always",
    "a response in the background is not streamed: remove `background`",
  );
}

async function checkEnd(of: BackgroundSubject): Promise<void> {
  const { api, client } = startApi(of, { polls: 2 });
  const reference = await start(of, client);
  assert.equal(api.responses.size, 1, "create() must start one response");
  const [started] = api.responses.values();
  assert.equal(started!.body["input"], PROMPT, "the request must be sent unchanged");
  const open = await of.background.poll(reference, client);
  assert.equal(open.state, "running", "a response that is not complete");
  const { state, response, hasUsage = true } = await waitForEnd(of, reference, client);
  assert.equal(state, "completed", "the state of a response that is complete");
  assert.ok(hasUsage, "a complete response has its usage");
  assert.ok(JSON.stringify(response).includes(api.text), "`response` must contain the text");
}

async function checkReference(of: BackgroundSubject): Promise<void> {
  const { client } = startApi(of);
  const reference = await start(of, client);
  assert.equal(typeof reference, "string", "create() must return a text");
  assert.ok(Buffer.byteLength(reference) <= 2048, "a reference must be at most 2 KiB");
  assert.ok(!reference.includes("sunrise"), "a reference must not contain the prompt");
}

async function checkFailed(of: BackgroundSubject): Promise<void> {
  const { client } = startApi(of, { outcome: "failed" });
  const reference = await start(of, client);
  const { state, message, hasUsage = true } = await waitForEnd(of, reference, client);
  assert.equal(state, "failed", "the state of a response that failed");
  assert.ok(message, "the reason must be reported in `message`");
  assert.equal(hasUsage, false, "the response has no usage to bill");
}

async function checkCanceled(of: BackgroundSubject): Promise<void> {
  const { client } = startApi(of, { polls: 5 });
  const reference = await start(of, client);
  await of.background.cancel(reference, client);
  await of.background.cancel(reference, client);
  const { state, hasUsage = true } = await waitForEnd(of, reference, client);
  assert.equal(state, "canceled", "the state of a response that was canceled");
  assert.equal(hasUsage, false, "the response has no usage to bill");
  const ended = await start(of, client);
  await waitForEnd(of, ended, client);
  await of.background.cancel(ended, client);
  assert.equal((await waitForEnd(of, ended, client)).state, "completed", "after its end");
}

const isKind =
  (...kinds: ErrorKind[]) =>
  (error: unknown): boolean =>
    kinds.includes(getFault(error)?.kind as ErrorKind);

async function checkDeleted(of: BackgroundSubject): Promise<void> {
  const { api, client } = startApi(of);
  const reference = await start(of, client);
  await waitForEnd(of, reference, client);
  for (let turn = 0; turn < 2; turn++) await of.background.delete?.(reference, client);
  if (of.background.delete) assert.equal(api.responses.size, 0, "delete() must delete it");
  api.responses.clear();
  const missing = isKind("not_found");
  await assert.rejects(of.background.poll(reference, client), missing, "poll() after deletion");
}

async function checkRejections(of: BackgroundSubject): Promise<void> {
  const isAmbiguous = isKind("upstream", "timeout");
  for (const status of [400, 401, 403, 429]) {
    const { client } = startApi(of, {
      failure: () => jsonResponse({ error: { message: "Rejected." } }, status),
    });
    await assert.rejects(
      start(of, client),
      (error) => getFault(error) !== undefined && !isAmbiguous(error),
      `a rejection with status ${status} must not have the kind upstream or timeout`,
    );
  }
  const { client } = startApi(of, {
    failure: () => ({ truncation: { after: "nothing", how: "reset" } }),
  });
  await assert.rejects(start(of, client), isAmbiguous, "a lost answer must be a fault");
}

const FAULTS = [
  jsonResponse({ error: { message: "Busy." } }, 503),
  { status: 502, body: "<html>", headers: { "content-type": "text/html" } },
  { status: 200, body: "<html>", headers: { "content-type": "text/html" } },
];

async function checkFaults(of: BackgroundSubject): Promise<void> {
  const isFault = (error: unknown): boolean => getFault(error) !== undefined;
  for (const failed of FAULTS) {
    let fails = false;
    const { client } = startApi(of, { failure: () => (fails ? failed : undefined) });
    const reference = await start(of, client);
    fails = true;
    await assert.rejects(start(of, client), isFault, "create()");
    await assert.rejects(of.background.poll(reference, client), isFault, "poll()");
    if (failed.status !== 200)
      await assert.rejects(of.background.cancel(reference, client), isFault, "cancel()");
  }
}

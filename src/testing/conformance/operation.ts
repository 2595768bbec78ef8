// Checks of operations that a provider performs itself: model lists, readiness, and native
// endpoints. They must obey the event grammar, stop when they are aborted, and not wait for an
// upstream that has already failed.
import { BUILT_IN_OPERATIONS } from "../../model/operations/built-in-operations.ts";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { getFault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { Operation, ModelRequest } from "../../model/request.ts";
import type { Call } from "../../plugin/call.ts";
import type {
  Endpoint,
  NativeEndpoint,
  Provider,
  ProtocolEndpoint,
} from "../../plugin/provider.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";
import { withoutUndefined } from "../codec.ts";
import { errorResponse } from "../error-response.ts";
import { deepFreeze } from "../freeze.ts";
import { createEventGrammar } from "../event-grammar.ts";
import * as fakes from "../fakes.ts";
import { isStreamRecording, readRecordings, replayResponse, type Recording } from "../recording.ts";
import { startUpstream, type ScriptedRoutes, type TestUpstream } from "../upstream/upstream.ts";
import { createProviderClient, settlesWithin } from "./provider-client.ts";
import { notCheckedMessage, type ConformanceSubject } from "./subject.ts";

/** Whether the host sends the requests of this endpoint. If not, the endpoint sends them itself. */
export const isProtocolEndpoint = (endpoint: Endpoint): endpoint is ProtocolEndpoint =>
  "protocol" in endpoint;

/** Whether the endpoint sends the requests of the host's calls itself. */
export const isNativeEndpoint = (endpoint: Endpoint): endpoint is AnyNativeEndpoint =>
  "run" in endpoint;

/**
 * Returns a sample request. For an operation that a package adds, the sample is taken from the
 * `operations` of the options.
 */
export const sampleRequest = (
  kind: Operation,
  model: string,
  { operations = [] }: ConformanceSubject,
): ModelRequest =>
  deepFreeze(
    (
      operations.find((work) => work.name === kind) ??
      BUILT_IN_OPERATIONS.get(kind) ??
      assert.fail(`Unknown operation "${kind}": add its Work to \`works\`.`)
    ).sampleRequest(model),
  );

/**
 * Aborts the signal while the upstream does not respond. The operation must end, and its socket
 * must close. Rejects if the operation continues.
 */
export async function checkAborts(of: Provider, subject: ConformanceSubject): Promise<void> {
  const { credential } = subject;
  await using up = await startUpstream({ "*": { truncation: { after: "nothing", how: "stall" } } });
  for (const endpoint of of.endpoints) {
    const { listModels, checkReady } = of;
    const way = (signal: AbortSignal) => createProviderClient(up, endpoint, credential, signal);
    if (listModels) await stopsOnAbort(up, "models()", (signal) => listModels(way(signal)));
    if (checkReady) await stopsOnAbort(up, "ready()", (signal) => checkReady(way(signal)));
    if (!isNativeEndpoint(endpoint)) continue;
    await stopsOnAbort(up, "run()", (signal) => {
      const exchange = fakes.exchange({ signal });
      return collectEvents(
        endpoint,
        fakes.call({ ...way(signal), exchange, protocol: null }),
        subject,
      );
    });
  }
}

/**
 * Time in milliseconds after which an operation that has not ended counts as continuing. It is far
 * longer than any machine needs. The duration of an operation that ends earlier is not checked.
 */
const CONTINUES_MS = 5_000;
/** Maximum time until the first request of a provider to its upstream, in milliseconds. */
const CALLS_MS = 20_000;

/**
 * Aborts the signal after the upstream has received a request, and while it does not respond. The
 * operation must end and close its connection before the upstream responds.
 */
async function stopsOnAbort(
  up: TestUpstream,
  what: string,
  work: (signal: AbortSignal) => unknown,
) {
  up.reset();
  const stop = new AbortController();
  const working = Promise.resolve(stop.signal).then(work);
  const over = working.then(
    () => undefined,
    () => undefined,
  );
  const request = await Promise.race([up.waitForRequest(1, CALLS_MS).catch(() => undefined), over]);
  if (!request) return;
  stop.abort(new DOMException("The client disconnected.", "AbortError"));
  assert.equal(
    await settlesWithin(working, CONTINUES_MS),
    "settled",
    `${what} continues after its signal was aborted`,
  );
  await settlesWithin(request.whenDone, CONTINUES_MS);
  assert.equal(
    request.state,
    "aborted",
    `${what} leaves its connection open after its signal was aborted`,
  );
}

/**
 * Runs a native endpoint to its end. Rejects if its events violate the grammar, or if an event is
 * emitted after an abort.
 */
export async function collectEvents(
  endpoint: NativeEndpoint<any, any>,
  call: Call,
  subject: ConformanceSubject,
  of?: ModelRequest,
): Promise<ModelEvent[]> {
  const judge = createEventGrammar();
  const events: ModelEvent[] = [];
  const request = of ?? sampleRequest(endpoint.operation, call.model, subject);
  for await (const event of endpoint.run(request as never, call, deepFreeze(subject.credential))) {
    if (call.signal.aborted) throw new Error("An event was emitted after the abort.");
    judge.event(event);
    events.push(event);
  }
  judge.end();
  return events;
}

const FAILING_UPSTREAMS: readonly ScriptedRoutes[string][] = [
  errorResponse(401, "No such key."),
  errorResponse(503, "Busy."),
  { body: "<html>", headers: { "content-type": "text/html" } },
  { body: "{", truncation: { after: 1, how: "close" } },
  { body: "", status: 204 },
];

/**
 * `listModels()` and native runs against failing upstreams must throw within the time limit. A
 * later check searches their errors for secrets.
 */
export async function checkFailingUpstreams(
  of: Provider,
  subject: ConformanceSubject,
): Promise<void> {
  const { credential, observed } = subject;
  for (const answer of FAILING_UPSTREAMS) {
    await using up = await startUpstream({ "*": answer });
    for (const endpoint of of.endpoints) {
      const way = createProviderClient(up, endpoint, credential);
      const work: Promise<unknown>[] = [];
      if (of.listModels) work.push(of.listModels(way));
      if (isNativeEndpoint(endpoint))
        work.push(collectEvents(endpoint, fakes.call({ ...way, protocol: null }), subject));
      for (const one of work) one.catch((error: unknown) => observed.push(error));
      for (const one of work)
        assert.equal(
          await settlesWithin(one, 5000),
          "settled",
          "the operation does not end although the upstream responded",
        );
    }
  }
}

/**
 * The events of a native endpoint must obey the grammar, in process or against the upstream of a
 * recording.
 */
export async function checkNative(of: Provider, subject: ConformanceSubject): Promise<void> {
  for (const endpoint of of.endpoints) {
    if (!isNativeEndpoint(endpoint)) continue;
    const { recordings: folder } = subject;
    const own = folder && existsSync(join(folder, "native")) ? join(folder, "native") : folder;
    const model = await pickModel(of, endpoint, subject);
    if (!own) await checkWithoutRecordings(endpoint, model, subject);
    else for (const one of readRecordings(own)) await checkReplayed(endpoint, model, subject, one);
  }
}

/** Returns a model that the endpoint serves, if one is known without calling an upstream. */
export async function pickModel(
  of: Provider,
  endpoint: NativeEndpoint<any, any>,
  { definition }: ConformanceSubject,
): Promise<string> {
  await using up = await startUpstream({ "*": { status: 404 } });
  const facts = "facts" in definition ? definition.facts?.models : undefined;
  const list =
    facts ?? (await of.listModels?.(createProviderClient(up, endpoint, {})).catch(() => []));
  return list?.find(({ operation }) => operation === endpoint.operation)?.model ?? "model";
}

/** An endpoint that sends its own requests, with any credential. */
export type AnyNativeEndpoint = NativeEndpoint<any, any>;

/**
 * Runs a native endpoint against an upstream. A later check searches its recorded events and errors
 * for secrets.
 */
export async function runNative(
  endpoint: AnyNativeEndpoint,
  model: string,
  subject: ConformanceSubject,
  up: TestUpstream,
): Promise<ModelEvent[]> {
  const { credential, observed } = subject;
  const call = fakes.call({
    ...createProviderClient(up, endpoint, credential),
    protocol: null,
    model,
  });
  try {
    const events = await collectEvents(endpoint, call, subject);
    observed.push(events);
    return events;
  } catch (error) {
    observed.push(error);
    throw error;
  }
}

/**
 * Runs an endpoint once, which is sufficient if it sends no requests. An endpoint that sends
 * requests must have recordings.
 */
async function checkWithoutRecordings(
  endpoint: AnyNativeEndpoint,
  model: string,
  subject: ConformanceSubject,
): Promise<void> {
  await using up = await startUpstream();
  try {
    await runNative(endpoint, model, subject, up);
  } catch (error) {
    if (up.requests.length === 0) throw error;
  }
  if (up.requests.length > 0 && subject.recordings !== false)
    throw new Error(notCheckedMessage("How a native endpoint decodes responses", "native"));
}

/** Number of positions at which a response is truncated. */
const TRUNCATIONS = 12;
/** Maximum duration of a run after the upstream has sent everything, in milliseconds. */
const RUN_TIMEOUT_MS = 5_000;

/**
 * Replays a recording in one piece, in other splits, and truncated. The result must be the same
 * events or an error.
 */
async function checkReplayed(
  endpoint: AnyNativeEndpoint,
  model: string,
  subject: ConformanceSubject,
  one: Recording,
): Promise<void> {
  let hangs: string | undefined;
  const events = async (more: ScriptedResponse = {}) => {
    await using up = await startUpstream({ "*": replayResponse(one, more) });
    const running = runNative(endpoint, model, subject, up);
    running.catch(() => {});
    if ((await settlesWithin(running, RUN_TIMEOUT_MS)) === "settled") return await running;
    hangs = `${one.name}: the operation does not end ${more.truncation ? "after the upstream closed the connection" : "after the upstream responded"}`;
    throw new Error(hangs);
  };
  if (one.status >= 400 || one.expected?.error !== undefined)
    return assert.rejects(
      events(),
      (error) => getFault(error) !== undefined,
      `${one.name}: a fault`,
    );
  const whole = await events();
  if (one.events) assert.deepEqual(withoutUndefined(whole), withoutUndefined(one.events), one.name);
  assert.deepEqual(
    withoutUndefined(await events({ chunks: "bytes" })),
    withoutUndefined(whole),
    `${one.name}, split at every byte`,
  );
  const stream = isStreamRecording(one);
  for (let i = 0; i < TRUNCATIONS; i++) {
    const after = Math.floor((one.body.length * i) / TRUNCATIONS);
    const framing = stream ? "chunked" : one.body.length;
    // A proxy may end a truncated response properly, although more data should follow.
    const how = stream && i % 2 === 1 ? "end" : "close";
    const part = await events({ framing, truncation: { after, how } }).catch(() => undefined);
    assert.ok(hangs === undefined, hangs);
    if (part)
      assert.deepEqual(
        withoutUndefined(part),
        withoutUndefined(whole),
        `${one.name}: the response was truncated after ${after} bytes, but was reported as complete`,
      );
  }
}

// Checks that every protocol must pass, whether it is built in or not. They use recordings of real
// responses of its providers.
import assert from "node:assert/strict";
import { ERRORS, getFault, type ErrorKind } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import { collectResponse } from "../model/response-collector.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import { UNITS } from "../model/usage.ts";
import type { ClientHalf, Protocol, ServerHalf } from "../plugin/protocol.ts";
import { createResponseContext, createCallContext } from "./codec-contexts.ts";
import { createCheck, type Check } from "./check.ts";
import { deepFreeze } from "./freeze.ts";
import { splitChunks, type Chunks } from "./upstream/script-pieces.ts";
import {
  decode,
  decodeWhole,
  encodeBytes,
  comparableContent,
  withoutUndefined,
  runRelay,
  encodeWhole,
  type RelayResult,
} from "./codec.ts";
import { isStreamRecording, readRecordings, type Recording } from "./recording.ts";

/** Recordings that a protocol is checked with, and how thoroughly. */
export interface ProtocolCheckOptions {
  /** Folder of recordings, or the recordings themselves. */
  readonly recordings?: URL | string | readonly Recording[];
  /**
   * Number of random ways to split each recording, in addition to byte by byte and not split at
   * all.
   */
  readonly trials?: number;
}

/** One recorded exchange under test. */
interface RecordingCase {
  readonly recording: Recording;
  readonly stream: boolean;
  readonly trials: number;
}

/**
 * Returns the checks of protocols for a runner. A test file calls it while it loads. Recordings are
 * read immediately, and a folder without any throws here. The codec runs only inside the checks.
 */
export function protocolChecks(protocol: Protocol, options: ProtocolCheckOptions = {}): Check[] {
  const { id, client, server } = protocol as Protocol<Operation>;
  const from = options.recordings ?? [];
  const cases = (typeof from === "string" || from instanceof URL ? readRecordings(from) : from).map(
    (recording): RecordingCase => ({
      recording: deepFreeze({ ...recording }),
      stream: isStreamRecording(recording),
      trials: options.trials ?? 40,
    }),
  );
  const each = (
    law: string,
    run: (of: RecordingCase) => void,
    fits: (of: RecordingCase) => boolean = isSuccess,
  ) =>
    cases
      .filter(fits)
      .map((of) => createCheck(`${id}: ${law}: ${of.recording.name}`, () => run(of)));
  return [
    createCheck(`${id}: has an id and at least one half`, () =>
      checkShape(protocol as Protocol<Operation>),
    ),
    ...(server ? [createCheck(`${id}: every error has a message`, () => checkErrors(server))] : []),
    ...(client && server
      ? each(
          "a request round-trips through the codec",
          (of) => checkRoundTrip(client, server, of),
          () => true,
        )
      : []),
    ...(server
      ? each(
          "request analysis changes nothing",
          (of) => checkAnalysis(server, of),
          () => true,
        )
      : []),
    ...(client
      ? [
          ...each("recordings decode to the expected content", (of) => checkContent(client, of)),
          ...each(
            "events do not depend on how the bytes are split",
            (of) => checkChunking(client, of),
            isStreamed,
          ),
          ...each("a truncated response is never reported as complete", (of) =>
            checkTruncation(client, of),
          ),
          ...each(
            "an upstream error is decoded to a fault",
            (of) => checkFaults(client, of),
            (of) => !isSuccess(of),
          ),
        ]
      : []),
    ...(client && server
      ? each("streaming and non-streaming responses have the same content", (of) =>
          checkStreamMatchesWhole(client, server, of),
        )
      : []),
    ...(client?.createPassthrough && server
      ? each("passthrough and translation give the same result", (of) =>
          checkRelayMatchesTranslation(client, server, of),
        )
      : []),
  ];
}

const isSuccess = ({ recording }: RecordingCase) => recording.status < 300;
const isStreamed = (of: RecordingCase) => of.stream && isSuccess(of);

const callContextFor = ({ stream }: RecordingCase) => deepFreeze(createCallContext({ stream }));
const responseContextFor = ({ stream, recording }: RecordingCase) =>
  deepFreeze(createResponseContext({ stream, body: recording.request }));

function decodeCase(
  client: ClientHalf<Operation>,
  of: RecordingCase,
  chunks: Chunks = "whole",
): ModelEvent[] {
  const { body, headers } = of.recording;
  return of.stream
    ? decode(client, splitChunks([body], chunks), callContextFor(of), headers)
    : decodeWhole(client, body, callContextFor(of), headers);
}

function checkShape({ id, client, server, socket, runsJobs, headers }: Protocol<Operation>): void {
  assert.match(id, /^[a-z][a-z0-9-]*$/, "a protocol's id must be lowercase, with dashes");
  assert.ok(
    client || server || socket || runsJobs,
    "a protocol must have a client half, a server half, or a socket half, unless it runs jobs",
  );
  for (const name of [...(headers?.request ?? []), ...(headers?.response ?? [])])
    assert.match(name, /^[a-z0-9-]+\*?$/, `header name ${name} must be lowercase`);
}

/**
 * Every kind of error must be encoded as plain JSON with a message, and with a status that reports
 * a failure.
 */
function checkErrors(server: ServerHalf<Operation>): void {
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const message = `Something went wrong (${kind}).`;
    const fault = deepFreeze({ kind, message, code: "some_code", retryAfterMs: 2000 });
    const { status, body } = server.encodeFault(fault, { id: "x1" });
    if (status !== undefined) assert.ok(status >= 400 && status < 600, `${kind}: status ${status}`);
    const text = JSON.stringify(body);
    assert.deepEqual(
      withoutUndefined(body),
      JSON.parse(text),
      `${kind}: the body must be plain JSON`,
    );
    if (kind !== "internal")
      assert.ok(text.includes(message), `${kind}: the body must contain the message: ${text}`);
  }
}

function checkAnalysis(server: ServerHalf<Operation>, { recording }: RecordingCase): void {
  const first = server.analyze(recording.request);
  assert.deepEqual(
    server.analyze(recording.request),
    first,
    "repeated analysis must give the same result",
  );
  for (const feature of first.features) assert.equal(typeof feature, "string");
}

/**
 * A request must survive a round trip: decoding the encoded request gives the same request, except
 * for reported losses. A second round trip must lose nothing.
 */
function checkRoundTrip(
  client: ClientHalf<Operation>,
  server: ServerHalf<Operation>,
  of: RecordingCase,
): void {
  const request = server.decodeRequest(of.recording.request, "generate");
  const of1 = createCallContext({ model: request.model, stream: request.stream });
  // The host adds the fields that no codec knows.
  const wire = {
    ...client.encodeRequest(deepFreeze(request) as ModelRequest, deepFreeze(of1)),
    ...request.rest,
  };
  const again = server.decodeRequest(deepFreeze(wire), "generate");
  if (of1.losses.length === 0) assert.deepEqual(withoutUndefined(again), withoutUndefined(request));
  const of2 = createCallContext({ model: request.model, stream: request.stream });
  const second = {
    ...client.encodeRequest(deepFreeze(again) as ModelRequest, deepFreeze(of2)),
    ...again.rest,
  };
  assert.deepEqual(withoutUndefined(second), withoutUndefined(wire));
  assert.deepEqual(of2.losses, [], "a second round trip must drop nothing");
}

function checkContent(client: ClientHalf<Operation>, of: RecordingCase): void {
  const got = decodeCase(client, of);
  const expected = of.recording.events;
  if (!expected) return;
  assert.deepEqual(withoutUndefined(got), withoutUndefined(expected));
  const { usage } = collectResponse(expected);
  for (const unit of UNITS)
    assert.equal(collectResponse(got).usage[unit], usage[unit], `usage: ${unit}`);
}

function checkChunking(client: ClientHalf<Operation>, of: RecordingCase): void {
  const expected = withoutUndefined(decodeCase(client, of));
  const same = (chunks: Chunks) =>
    assert.deepEqual(
      withoutUndefined(decodeCase(client, of, chunks)),
      expected,
      `split ${JSON.stringify(chunks)}`,
    );
  same("bytes");
  for (const chunks of listSplits(of)) same(chunks);
}

/**
 * Yields random splits, and one split at every byte that could be inside an event or a character.
 */
function* listSplits({ recording, trials }: RecordingCase): Generator<Chunks> {
  for (let seed = 1; seed <= trials; seed++) yield { seed, max: 1 << (seed % 9) };
  const step = Math.max(1, Math.floor(recording.body.length / 400));
  for (let at = 1; at < recording.body.length; at += step) yield { at: [at] };
}

/**
 * For every prefix of a response, the decoder must either throw or have emitted a finish event.
 * After a finish event, the complete content of the model must have been emitted. Only usage may be
 * missing.
 */
function checkTruncation(client: ClientHalf<Operation>, of: RecordingCase): void {
  const { body, headers } = of.recording;
  const expected = contentWithoutUsage(decodeCase(client, of));
  const step = Math.max(1, Math.floor(body.length / 2000));
  for (let length = 0; length < body.length; length += step) {
    const part = body.subarray(0, length);
    let got: ModelEvent[];
    try {
      got = of.stream
        ? decode(client, [part], callContextFor(of), headers)
        : decodeWhole(client, part, callContextFor(of), headers);
    } catch (error) {
      assertFault(error, `truncated after ${length} bytes`);
      continue;
    }
    assert.deepEqual(
      contentWithoutUsage(got),
      expected,
      `truncated after ${length} of ${body.length} bytes`,
    );
  }
}

const contentWithoutUsage = (all: readonly ModelEvent[]) => {
  const { usage: _, ...content } = comparableContent(all) as { usage: unknown };
  return content;
};

function assertFault(error: unknown, when: string): void {
  assert.ok(getFault(error), `${when}: the thrown error must be a fault, not ${String(error)}`);
}

function checkFaults(client: ClientHalf<Operation>, { recording }: RecordingCase): void {
  const fault = client.decodeFault(recording.status, recording.headers, recording.body);
  assert.ok(fault.kind in ERRORS, `${fault.kind} must be a known error kind`);
  assert.ok(fault.message.length > 0, "a fault must have a message");
  assert.ok(fault.retryAfterMs === undefined || fault.retryAfterMs >= 0);
  for (const odd of ["", "<html>", "null", "[]", '"x"', '{"error":null}', "\u0000"])
    client.decodeFault(recording.status, recording.headers, Buffer.from(odd));
}

/**
 * Whether the operation never streams, such as embeddings and reranking. The response then arrives
 * in one piece, even if the client requests a stream.
 */
function isNeverStreamed(server: ServerHalf<Operation>): boolean {
  try {
    server.createEncoder(() => {}, createResponseContext({ stream: true }));
    return false;
  } catch (error) {
    return getFault(error)?.kind === "unsupported";
  }
}

function checkStreamMatchesWhole(
  client: ClientHalf<Operation>,
  server: ServerHalf<Operation>,
  of: RecordingCase,
): void {
  if (isNeverStreamed(server)) return;
  const events = decodeCase(client, of);
  const requestContext = { body: of.recording.request };
  const streamed = encodeBytes(
    server,
    events,
    createResponseContext({ ...requestContext, stream: true }),
  );
  const whole = encodeWhole(server, events, createResponseContext(requestContext));
  const inStream = decode(client, [streamed], createCallContext({ stream: true }));
  const inOne = decodeWhole(client, whole, createCallContext());
  // Some API formats send the usage of a stream only to clients that request it.
  const reportsUsage = inStream.some((e) => e.type === "usage");
  const view = reportsUsage ? comparableContent : contentWithoutUsage;
  assert.deepEqual(view(inStream), view(inOne));
}

/**
 * The relayed response must have the same content and usage as the translated response, and must
 * not depend on how the bytes were split.
 */
function checkRelayMatchesTranslation(
  client: ClientHalf<Operation>,
  server: ServerHalf<Operation>,
  of: RecordingCase,
): void {
  const events = decodeCase(client, of);
  const to = responseContextFor(of);
  const { headers } = of.recording;
  const relayed = runRelay(client, [of.recording.body], to, undefined, headers);
  const read = (bytes: Buffer) =>
    of.stream
      ? decode(client, [bytes], createCallContext({ stream: true }))
      : decodeWhole(client, bytes, createCallContext());
  const translated = of.stream
    ? encodeBytes(
        server,
        events,
        createResponseContext({ stream: true, body: of.recording.request }),
      )
    : encodeWhole(server, events, createResponseContext({ body: of.recording.request }));
  assert.deepEqual(comparableContent(read(relayed.bytes)), comparableContent(read(translated)));

  const { usage, finish } = collectResponse(events);
  assert.deepEqual(
    withoutUndefined(relayed.usage),
    withoutUndefined(usage),
    "passthrough and translation must report the same usage",
  );
  assert.equal(
    relayed.finish,
    finish.reason,
    "passthrough and translation must report the same finish reason",
  );
  assert.ok(
    relayed.finishOffset! < relayed.bytes.length,
    "the finish must be reported before its bytes are sent",
  );
  if (!of.stream) return;
  for (const chunks of listSplits(of)) {
    const other = runRelay(
      client,
      splitChunks([of.recording.body], chunks),
      to,
      undefined,
      headers,
    );
    assert.deepEqual(toComparable(other), toComparable(relayed), `split ${JSON.stringify(chunks)}`);
  }
}

const toComparable = ({ bytes, usage, id, finish, finishOffset }: RelayResult) => ({
  bytes: bytes.toString("latin1"),
  usage: withoutUndefined(usage),
  id,
  finish,
  finishAt: finishOffset,
});

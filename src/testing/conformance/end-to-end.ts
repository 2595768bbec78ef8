// Checks a provider's responses through a real gateway. In both modes, the client must receive the
// same content as from the codec alone. A stream must arrive as it is produced, and a truncated
// response must never be reported as complete. No check of the codec alone can cover this, because
// the gateway decides which responses are streams, which parts may be sent, and which parts are
// billed.
import assert from "node:assert/strict";
import { collectResponse } from "../../model/response-collector.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { Operation } from "../../model/request.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { Decoder, Protocol, PassthroughSink } from "../../plugin/protocol.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { Settle } from "../../plugin/store/store.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";
import { createResponseContext, createCallContext } from "../codec-contexts.ts";
import { splitChunks, type Chunks } from "../upstream/script-pieces.ts";
import {
  decode,
  decodeWhole,
  encodeBytes,
  comparableContent,
  withoutUndefined,
  runRelay,
  encodeWhole,
} from "../codec.ts";
import type { TestGateway } from "../gateway.ts";
import { isStreamRecording, replayResponse } from "../recording.ts";
import { startUpstream, type UpstreamRequest, type TestUpstream } from "../upstream/upstream.ts";
import { startCasesGateway, type GatewayCase, recordedEndpoints } from "./recorded-endpoints.ts";
import type { ConformanceSubject } from "./subject.ts";

/** How long a client waits for content that the upstream has already sent, in milliseconds. */
const CLIENT_TIMEOUT_MS = 10_000;
/** Number of positions at which a response is truncated. */
const TRUNCATIONS = 6;

/**
 * Sends every recording through a real gateway, in both modes, complete and truncated. Rejects with
 * the name of the first check that fails.
 */
export async function checkEndToEnd(
  provider: Provider,
  subject: ConformanceSubject,
): Promise<void> {
  const cases = listCases(provider, subject);
  if (cases.length === 0) return;
  await using up = await startUpstream();
  await using at = await startCasesGateway(cases, subject, up.url);
  for (const of of cases) {
    const what = `${of.recording.name}, ${of.mode}`;
    await checkCase(of, up, at).catch((error: Error) => {
      subject.observed.push(error);
      throw new Error(`${what}: ${error.message}`, { cause: error });
    });
  }
  subject.observed.push(...at.logs);
}

/**
 * Returns both modes for each recording of a protocol with both halves. A protocol with only one
 * half has no client to compare with.
 */
function listCases(provider: Provider, subject: ConformanceSubject): GatewayCase[] {
  let n = 0;
  return recordedEndpoints(provider, subject).flatMap(({ endpoint, protocol, recordings }) => {
    const { client, server } = protocol as Protocol<Operation>;
    if (!client || !server) return [];
    const lanes = client.createPassthrough
      ? (["passthrough", "translated"] as const)
      : (["translated"] as const);
    return recordings.flatMap((recording) =>
      lanes.map((lane): GatewayCase => {
        const stream = isStreamRecording(recording);
        return { endpoint, client, server, recording, stream, mode: lane, providerIndex: n++ };
      }),
    );
  });
}

async function checkCase(of: GatewayCase, up: TestUpstream, at: TestGateway): Promise<void> {
  const { recording, stream, providerIndex } = of;
  let answer: ScriptedResponse = replayResponse(recording);
  up.setRoutes({
    [`POST /providers.p${providerIndex}/*`]: () => answer,
    "*": (request: UpstreamRequest) => ({ status: 404, body: `No route for ${request.path}` }),
  });
  if (recording.status >= 300) {
    const refused = await fetchCase(of, at);
    assert.ok(
      refused.status >= 400,
      `the upstream returned an error, but the client received status ${refused.status}`,
    );
    assert.ok(
      !refused.text.includes("Something went wrong here"),
      "the error has no specific message",
    );
    return;
  }
  const due = expectedFromCodec(of);
  const begun = stream ? firstContentOffset(of) : undefined;
  if (begun !== undefined) {
    answer = replayResponse(recording, { truncation: { after: begun, how: "stall" } });
    const first = await readFirstBytes(of, at);
    assert.ok(
      first.length > 0,
      "the first part of the response must reach the client before the rest arrives",
    );
  }
  for (const chunks of [
    "whole",
    { seed: providerIndex + 1 },
    ...(recording.body.length < 4_000 ? ["bytes" as const] : []),
  ] as Chunks[]) {
    answer = replayResponse(recording, { chunks });
    const got = await fetchCase(of, at);
    assert.equal(
      got.status,
      200,
      `the upstream succeeded, but the client received ${got.status}: ${got.text.slice(0, 300)}`,
    );
    assert.deepEqual(
      comparableResponse(of, got),
      due,
      `the upstream's bytes were sent ${JSON.stringify(chunks)}`,
    );
  }
  checkBilled(of, at);
  const { length } = recording.body;
  for (let i = 0; i < TRUNCATIONS; i++) {
    const after = Math.floor((length * i) / TRUNCATIONS);
    answer = replayResponse(recording, {
      framing: stream ? "chunked" : length,
      truncation: { after, how: "close" },
    });
    const got = await fetchCase(of, at).catch(() => undefined);
    if (!got || got.status !== 200) continue;
    let whole: unknown;
    try {
      whole = comparableResponse(of, got);
    } catch {
      continue;
    }
    assert.deepEqual(
      whole,
      due,
      `the response was truncated after ${after} of ${length} bytes, but was reported as complete`,
    );
  }
}

interface ClientResponse {
  readonly status: number;
  readonly text: string;
  readonly bytes: Buffer;
  readonly headers: Record<string, string>;
}

function sendCase(
  { endpoint, recording, mode, stream, providerIndex }: GatewayCase,
  at: TestGateway,
  signal: AbortSignal,
) {
  const query = new URLSearchParams({ model: `p${providerIndex}/model`, stream: String(stream) });
  const form = toFormData(recording.request);
  return fetch(`${at.url}/${endpoint.protocol.id}/${mode}?${query}`, {
    method: "POST",
    ...(!form && { headers: { "content-type": "application/json" } }),
    body: form ?? JSON.stringify(recording.request),
    signal,
  });
}

/** Returns a request with a file, as clients send it. */
function toFormData(request: Body): FormData | undefined {
  if (!Object.values(request).some(isFilePart)) return undefined;
  const form = new FormData();
  for (const [name, value] of Object.entries(request))
    if (isFilePart(value))
      form.append(
        name,
        new Blob([new Uint8Array(value.data)], { type: value.mime }),
        value.filename,
      );
    else if (Array.isArray(value)) for (const one of value) form.append(`${name}[]`, String(one));
    else form.append(name, String(value));
  return form;
}

async function fetchCase(of: GatewayCase, at: TestGateway): Promise<ClientResponse> {
  const res = await sendCase(of, at, AbortSignal.timeout(CLIENT_TIMEOUT_MS));
  const bytes = Buffer.from(await res.arrayBuffer());
  return {
    status: res.status,
    text: bytes.toString(),
    bytes,
    headers: Object.fromEntries(res.headers),
  };
}

/** Returns the first bytes of a response that does not continue. Empty if nothing arrives. */
async function readFirstBytes(of: GatewayCase, at: TestGateway): Promise<Uint8Array> {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), CLIENT_TIMEOUT_MS);
  try {
    const res = await sendCase(of, at, stop.signal);
    const { value } = await res.body!.getReader().read();
    return value ?? new Uint8Array();
  } catch (error) {
    if (stop.signal.aborted) return new Uint8Array();
    throw error;
  } finally {
    clearTimeout(late);
    stop.abort();
  }
}

function decodeEvents(
  { client, recording, stream }: GatewayCase,
  bytes: Buffer,
  headers = recording.headers,
) {
  return stream
    ? decode(client, [bytes], createCallContext({ stream }), headers, { guessed: true })
    : decodeWhole(client, bytes, createCallContext({ stream }), headers);
}

/** Removes the model name, because only the gateway adds the provider to it. */
function withoutModelName(value: unknown, of = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutModelName(one));
  if (Object.getPrototypeOf(value ?? 0) !== Object.prototype) return value;
  const all = Object.entries(value as object).filter(
    ([name]) => of !== "proof" || name !== "model",
  );
  return Object.fromEntries(all.map(([name, one]) => [name, withoutModelName(one, name)]));
}

const comparableEvents = (all: readonly ModelEvent[]): unknown => {
  const { blocks, finish } = comparableContent(all) as { blocks: unknown; finish: unknown };
  return { blocks: withoutModelName(blocks), finish };
};

const comparableResponse = (of: GatewayCase, { bytes, headers }: ClientResponse): unknown =>
  comparableEvents(decodeEvents(of, bytes, headers));

/** Returns the result of the codec alone, used as the host uses it. */
function expectedFromCodec(of: GatewayCase): unknown {
  const { client, server, recording, stream, mode } = of;
  const to = createResponseContext({ stream, body: recording.request });
  const all = decodeEvents(of, recording.body);
  // The upstream may use a different form than the client, such as binary frames.
  const usual = stream ? "text/event-stream" : "application/json";
  const headers = { ...recording.headers, "content-type": server.contentType?.(to) ?? usual };
  if (mode === "passthrough") {
    const passed = runRelay(
      client,
      [recording.body],
      to,
      collectResponse(all).usage,
      recording.headers,
    );
    return comparableEvents(decodeEvents(of, passed.bytes, headers));
  }
  return comparableEvents(
    decodeEvents(of, (stream ? encodeBytes : encodeWhole)(server, all, to), headers),
  );
}

/**
 * Returns the number of bytes after which the codec alone has written content of the model.
 * Undefined if it writes content only at the end.
 */
function firstContentOffset({ client, server, recording, mode }: GatewayCase): number | undefined {
  let content = false;
  let written = 0;
  let over = false;
  const to = createResponseContext({ stream: true, body: recording.request });
  const encoder = server.createEncoder((text) => (written += text.length), to);
  const emit = (event: ModelEvent) => {
    content ||= event.type === "delta" || event.type === "media";
    over ||= event.type === "finish";
    if (!over) encoder.writeEvent(event);
  };
  const sink: PassthroughSink = {
    setContentType() {},
    write: (chunk) => (written += chunk.length),
    reportContent: () => (content = true),
    reportStart() {},
    reportUsage() {},
    reportFinish: () => ((over = true), undefined),
  };
  const { push } =
    mode === "passthrough"
      ? toDecoder(client.createPassthrough!(sink, to, recording.headers))
      : toDecoder(
          client.createDecoder(emit, createCallContext({ stream: true }), recording.headers),
        );
  for (const [i, byte] of splitChunks([recording.body], "bytes").entries()) {
    push(byte);
    if (over) return undefined;
    if (content && written > 0) return i + 1;
  }
  return undefined;
}

const toDecoder = (decoder: Decoder) => ({ push: (chunk: Buffer) => decoder.push(chunk) });

/** The last settled call of this case must have the usage of the recording. */
function checkBilled(of: GatewayCase, { storeCommands }: TestGateway): void {
  const attempts = new Set(
    storeCommands.flatMap((row) =>
      row.do === "reserve" && row.target.provider === `p${of.providerIndex}` ? [row.attempt] : [],
    ),
  );
  const row = storeCommands.findLast(
    (each): each is Settle & { at: number } =>
      each.do === "settle" && attempts.has(each.attempt) && each.outcome === "ok",
  );
  assert.ok(row, "a complete response was not settled");
  const { usage } = collectResponse(decodeEvents(of, of.recording.body));
  if (Object.keys(usage).length > 0)
    assert.deepEqual(
      withoutUndefined(row.usage),
      withoutUndefined(usage),
      "the ledger must record the usage that the upstream reported",
    );
}

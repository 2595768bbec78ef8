// Records a provider's real responses, for the protocol checks. The provider is called once for a
// stream and once for a complete response. Every secret is masked before anything is stored.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILT_IN_OPERATIONS } from "../model/operations/built-in-operations.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import type { JsonObject } from "../model/values.ts";
import type { Definition } from "../plugin/define.ts";
import type { Endpoint, Provider } from "../plugin/provider.ts";
import { resolveEndpointUrl, signRequest } from "./conformance/provider-client.ts";
import { findSecrets } from "./conformance/definition.ts";
import { isProtocolEndpoint } from "./conformance/operation.ts";
import { createTestContext } from "./context.ts";
import { encodeOutgoing } from "./outgoing.ts";
import * as fakes from "./fakes.ts";

/** Options for recording a provider. */
export interface RecordingOptions {
  /** Options and credential, as under `with:` in gateway.yaml. */
  readonly with?: Readonly<Record<string, unknown>>;
  readonly credential?: Readonly<Record<string, unknown>>;
  readonly model: string;
  /** Prompt of the chat. Default: "Greet me in three words." */
  readonly prompt?: string;
  /** Maximum number of output tokens. Default: 64. */
  readonly maxTokens?: number;
  /** Sends the requests. Default: the network. */
  readonly fetch?: typeof fetch;
}

/** One masked exchange, before it is written. */
export interface RecordedExchange {
  /** Name of the recording, such as "chat-completions/hello-streamed" or "native/hello". */
  readonly name: string;
  readonly request: JsonObject;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Larger responses are not recorded. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const REQUEST_TIMEOUT_MS = 120_000;

/** Headers that describe the response. All other headers could describe the account. */
const RECORDED_HEADERS = /^(content-type|retry-after|(x-|anthropic-)?ratelimit-[a-z-]+)$/;

/**
 * Calls each of the provider's endpoints that serves this operation, and returns the recordings.
 * Rejects with the first failure.
 */
export async function recordProvider(
  definition: Definition,
  of: RecordingOptions,
): Promise<RecordedExchange[]> {
  if (definition["~tollgate"] !== "provider")
    throw new Error(`${definition.name} is not a provider, so it cannot be recorded.`);
  const credential = of.credential ?? {};
  const secrets = [
    ...findSecrets(definition.credential, credential),
    ...findSecrets(definition.options, of.with ?? {}),
  ];
  const env = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
  const through = of.fetch ?? fetch;
  await using lent = createTestContext({
    env,
    fetch: async (url, init) => through(url, init as RequestInit),
  });
  const made = (await definition.setup((of.with ?? {}) as never, lent.ctx)) as Provider;
  const exchanges: RecordedExchange[] = [];
  for (const endpoint of made.endpoints) {
    if (endpoint.servesModel && !endpoint.servesModel(of.model)) continue;
    for (const stream of isProtocolEndpoint(endpoint) && endpoint.streaming !== "never"
      ? [true, false]
      : [false])
      exchanges.push(...(await recordEndpoint(endpoint, of, credential, stream)));
  }
  return exchanges.map((each) => maskSecrets(each, secrets));
}

function buildRequest(endpoint: Endpoint, of: RecordingOptions, stream: boolean): ModelRequest {
  const kind = isProtocolEndpoint(endpoint)
    ? endpoint.protocol.operationSpec.name
    : endpoint.operation;
  const work = isProtocolEndpoint(endpoint)
    ? endpoint.protocol.operationSpec
    : BUILT_IN_OPERATIONS.get(kind);
  const sample = work?.sampleRequest(of.model);
  if (!sample) throw new Error(`Unknown operation "${kind}". Add its Work to record it.`);
  if (sample.operation !== "chat") return { ...sample, stream } as ModelRequest;
  const text = of.prompt ?? "Greet me in three words.";
  return {
    ...sample,
    stream,
    turns: [{ role: "user", blocks: [{ type: "text", text }] }],
    output: { maxTokens: of.maxTokens ?? 64 },
  };
}

async function recordEndpoint(
  endpoint: Endpoint,
  of: RecordingOptions,
  credential: Readonly<Record<string, unknown>>,
  stream: boolean,
): Promise<RecordedExchange[]> {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const through = of.fetch ?? fetch;
  const request = buildRequest(endpoint, of, stream);
  const exchanges: RecordedExchange[] = [];
  const send = async (url: URL, method: string, headers: object, text: string | undefined) => {
    const body = text === undefined ? null : Buffer.from(text);
    const leaving = { ...headers } as Record<string, string>;
    Object.assign(
      leaving,
      await signRequest(endpoint, { method, url, headers: leaving, body, signal }, credential),
    );
    const response = await through(url, { method, headers: leaving, signal, body: text ?? null });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (bytes.length > MAX_RESPONSE_BYTES)
      throw new Error(`The response has ${bytes.length} bytes, which is too large to record.`);
    exchanges.push({
      name: isProtocolEndpoint(endpoint)
        ? `${endpoint.protocol.id}/hello${stream ? "-streamed" : "-whole"}`
        : "native/hello",
      request: text === undefined ? {} : (JSON.parse(text) as JsonObject),
      status: response.status,
      headers: Object.fromEntries(
        [...response.headers].filter(([name]) => RECORDED_HEADERS.test(name)),
      ),
      body: bytes,
    });
    return new Response(bytes, { status: response.status, headers: response.headers });
  };
  if (isProtocolEndpoint(endpoint)) {
    const { client, id } = endpoint.protocol;
    const call = fakes.call({ protocol: id, model: of.model, stream });
    const out = encodeOutgoing(
      client as NonNullable<typeof client>,
      request as ModelRequest<Operation>,
      call,
    );
    endpoint.prepare?.(out, call);
    const path = endpoint.paths?.["generate"] ?? client!.paths.generate;
    const url = resolveEndpointUrl(endpoint, typeof path === "string" ? path : path(call));
    const headers = { "content-type": "application/json", ...endpoint.headers, ...out.headers };
    await send(
      url,
      "POST",
      headers,
      JSON.stringify({ ...out.body, ...(stream && { stream: true }) }),
    );
    return exchanges;
  }
  if (!("run" in endpoint)) throw new Error("An endpoint of videos cannot be recorded.");
  const call = fakes.call({
    protocol: null,
    model: of.model,
    signal,
    fetch: (url, init = {}) =>
      send(
        resolveEndpointUrl(endpoint, url),
        init.method ?? "GET",
        { ...init.headers },
        init.body?.toString(),
      ),
  });
  for await (const _event of endpoint.run(request as never, call, credential as never));
  // If several requests were sent, the last request has the response.
  return exchanges.slice(-1);
}

/**
 * Replaces every secret, in all common encodings, by asterisks. The length of the text does not
 * change.
 */
function maskSecrets(exchange: RecordedExchange, secrets: readonly string[]): RecordedExchange {
  const clothes = secrets.flatMap((secret) => [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64"),
  ]);
  const hide = (text: string) =>
    clothes.reduce((rest, secret) => rest.replaceAll(secret, "*".repeat(secret.length)), text);
  const headers = Object.entries(exchange.headers).map(([name, value]) => [name, hide(value)]);
  return {
    ...exchange,
    request: JSON.parse(hide(JSON.stringify(exchange.request))),
    headers: Object.fromEntries(headers),
    body: Buffer.from(hide(exchange.body.toString("latin1")), "latin1"),
  };
}

/**
 * Writes each exchange into a separate folder below `folder`, in the format that `readRecordings()`
 * reads. Returns the folders.
 */
export function writeRecordings(exchanges: readonly RecordedExchange[], folder: string): string[] {
  return exchanges.map(({ name, request, status, headers, body }) => {
    const place = join(folder, name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "request.json"), `${JSON.stringify(request, undefined, 2)}\n`);
    const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}`);
    const head = [`HTTP/1.1 ${status}`, ...lines, "", ""].join("\n");
    writeFileSync(join(place, "upstream.http"), Buffer.concat([Buffer.from(head), body]));
    return place;
  });
}

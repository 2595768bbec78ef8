// Implements `fetch` for providers. URLs are relative to the provider's base URL, and the
// credential is sent only to bound origins.
import { Readable } from "node:stream";
import { Agent, type Dispatcher } from "undici";
import { BOUNDS, type BoundName } from "../../lib/bounds.ts";
import {
  isPublicAddress,
  createEgressGuard,
  isMetadataAddress,
  isMetadataUrl,
} from "../../lib/net/egress-guard.ts";
import type { CallTimes } from "../../config/gateway-config.ts";
import type { ProxyConfig } from "../../lib/net/http-proxy.ts";
import { fail, getFault } from "../../model/error.ts";
import type { Body, HeadersOut } from "../../model/values.ts";
import type { BatchClient } from "../../plugin/batch.ts";
import type { Auth, AuthRejection, EndpointConnection } from "../../plugin/provider.ts";
import type {
  Credential,
  MountedEndpoint,
  MountedProvider,
} from "../../pipeline/exchange/mounted.ts";
import type { Generation } from "../../pipeline/generation.ts";
import { parseMultipartBody } from "../../pipeline/body/multipart-body.ts";
import { boundaryOf, isMultipart } from "../../pipeline/body/multipart-parser.ts";
import { createAuthHeaders, renewToken, tokenVersion } from "../../pipeline/upstream/credential.ts";
import { OutgoingRequest } from "../../pipeline/upstream/outgoing-request.ts";
import { scan } from "../../lib/json/json-scanner.ts";
import { streamTimeoutsFor } from "../../pipeline/targets/timeouts.ts";
import { createConnector } from "./connection-pools.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { hasBody, trackBody } from "../../pipeline/exchange/plugin-fetch.ts";

const CONNECT_TIMEOUT_MS = 5_000;
/**
 * How long an idle connection is kept if the server does not state it. Common servers close one after
 * 5 s, and a request on a connection that is being closed fails.
 */
const KEEP_ALIVE_MS = 4_000;
/** Connects to any address. Used for URLs that the operator or the plugin author wrote. */
const trustedAgent = new Agent({
  connect: createConnector(CONNECT_TIMEOUT_MS, undefined),
  keepAliveTimeout: KEEP_ALIVE_MS,
});
/** Agents that connect through the gateway's proxy. There is one proxy per gateway. */
const proxyAgents = new WeakMap<ProxyConfig, Agent>();

function trustedAgentVia(proxy: ProxyConfig | undefined): Agent {
  const cachedAgent = proxy ? proxyAgents.get(proxy) : trustedAgent;
  if (cachedAgent) return cachedAgent;
  const agent = new Agent({
    connect: createConnector(CONNECT_TIMEOUT_MS, proxy),
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  proxyAgents.set(proxy!, agent);
  return agent;
}
/**
 * Connects only to public Internet addresses. Used for URLs that a client or an upstream server
 * wrote.
 */
const guardedAgent = new Agent({
  connect: createEgressGuard((address) => !isMetadataAddress(address) && isPublicAddress(address))
    .connect,
  keepAliveTimeout: KEEP_ALIVE_MS,
});
/** Connects only to a cloud metadata service. */
const metadataAgent = new Agent({
  connect: createEgressGuard(isMetadataAddress).connect,
  keepAliveTimeout: KEEP_ALIVE_MS,
});

export interface ProviderClientOptions {
  reach: Partial<EndpointConnection<unknown>> | undefined;
  dispatcher: Dispatcher | undefined;
  /** Name of the base in error messages. Default: "The provider". */
  baseLabel?: string;
  credential: Credential;
  /** Origins that may be reached at any address. */
  allowedOrigins?: ReadonlySet<string>;
  /** Proxy for `allowedOrigins` and bound origins. */
  proxy?: ProxyConfig | undefined;
  /** Whether the cloud metadata service may be reached. */
  allowsMetadataService?: boolean;
  signal: AbortSignal;
  /** Size limit of a response. "none": the response is read as it arrives, with any size. */
  bound?: "response" | "modelList" | "none";
  /**
   * Timeouts of a model call, whose response is streamed: for the response head, and for each pause
   * in the body.
   */
  timeouts?: Pick<CallTimes, "firstByteMs" | "idleMs">;
  /** Edits the request last, before it is signed. For a model call, runs its `prepare` hooks. */
  prepare?: (out: OutgoingRequest) => void;
  /**
   * Returns additional headers for the base and its bound origins. These headers are not sent to
   * other addresses.
   */
  traceHeaders?: () => HeadersOut;
}

export function createProviderClient(options: ProviderClientOptions): BatchClient {
  return {
    credential: options.credential.name,
    signal: options.signal,
    async fetch(to, init = {}) {
      const base = options.reach?.base;
      const url =
        base === undefined
          ? new URL(to)
          : new URL(toRelative(String(to)), `${base.replace(/\/+$/, "")}/`);
      const bound = base !== undefined && isBoundOrigin(url, options.reach!);
      const prepared = prepareRequest(options, url, init);
      if (bound) Object.assign(prepared.headers, options.traceHeaders?.());
      const signal = init.signal ? AbortSignal.any([init.signal, options.signal]) : options.signal;
      const { auth = "none" } = (bound && options.reach) || {};
      const unsigned: UnsignedFetch = { method: init.method ?? "GET", url, ...prepared, signal };
      const age = tokenVersion(auth, options.credential);
      const answer = await sendSigned(options, auth, unsigned);
      const refusal = () => toAuthRefusal(answer);
      return (await renewToken(auth, options.credential, age, refusal, answer.status))
        ? sendSigned(options, auth, unsigned)
        : answer;
    },
  };
}

/** Creates a client for an endpoint of a mounted provider, with one of its credentials. */
export const createEndpointClient = (
  provider: MountedProvider,
  endpoint: MountedEndpoint | undefined,
  options: Pick<ProviderClientOptions, "credential" | "signal" | "bound" | "timeouts"> &
    Partial<Pick<ProviderClientOptions, "reach">>,
): BatchClient =>
  createProviderClient({
    reach: endpoint?.definition as ProviderClientOptions["reach"],
    dispatcher: endpoint?.nativePool,
    allowedOrigins: provider.extraOrigins,
    allowsMetadataService: provider.allowsMetadataService,
    proxy: provider.proxy,
    ...options,
  });

/**
 * Returns the dispatcher for a URL. The base uses the endpoint's own pool, an allowed origin a
 * direct connection, and any other address the egress guard.
 */
export function dispatcherFor(
  url: URL,
  options: Pick<
    ProviderClientOptions,
    "reach" | "dispatcher" | "allowedOrigins" | "proxy" | "allowsMetadataService"
  >,
): Dispatcher {
  const { reach, dispatcher, allowedOrigins } = options;
  if (isMetadataUrl(url))
    return options.allowsMetadataService ? metadataAgent : failMetadataAddress(url.host);
  const { base, origins: bound = [] } = reach ?? {};
  if (dispatcher && base !== undefined && url.origin === new URL(base).origin) return dispatcher;
  const named = (origin: string) => !origin.includes("*") && new URL(origin).origin === url.origin;
  return allowedOrigins?.has(url.origin) || bound.some(named)
    ? trustedAgentVia(options.proxy)
    : guardedAgent;
}

const failMetadataAddress = (host: string): never =>
  fail(
    "upstream",
    `${host} belongs to the cloud metadata service, which the plugin does not declare in needs.metadata.`,
    {
      code: "address_metadata",
    },
  );

/** Returns a path that is always relative to the base. */
const toRelative = (to: string): string => (/^https?:/i.test(to) ? to : to.replace(/^\/+/, ""));

function prepareRequest(
  options: ProviderClientOptions,
  url: URL,
  init: NonNullable<Parameters<BatchClient["fetch"]>[1]>,
): Pick<UnsignedFetch, "headers" | "body"> {
  if (typeof init.body === "function")
    return { headers: { "accept-encoding": "identity", ...init.headers }, body: init.body };
  const raw = init.body === undefined ? null : bytesOf(init.body);
  const headers: HeadersOut = {
    "accept-encoding": "identity",
    ...(raw && { "content-type": "application/json" }),
    ...init.headers,
  };
  if (!options.prepare || !raw) return { headers, body: raw };
  const fields = editableFieldsOf(raw, headers);
  if (!fields) return { headers, body: raw };
  const out = new OutgoingRequest({
    method: init.method ?? "POST",
    path: url.pathname,
    raw,
    ...fields,
  });
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) out.setHeader(name, value);
  options.prepare(out);
  const body = out.toChunks()?.toBuffer() ?? null;
  return { headers: out.headers, body };
}

/**
 * Returns the bytes without copying them, because copies of large bodies cause full garbage
 * collections.
 */
const bytesOf = (body: string | Uint8Array): Buffer =>
  ArrayBuffer.isView(body)
    ? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    : Buffer.from(body);

type Fields = Pick<ConstructorParameters<typeof OutgoingRequest>[0], "body" | "spans" | "form">;

/** Returns the parts of a body that hooks can read and edit: JSON or a form. */
function editableFieldsOf(raw: Buffer, headers: HeadersOut): Fields | undefined {
  const type = headers["content-type"] ?? "";
  if (isMultipart(type)) {
    const boundary = boundaryOf(type);
    const seen = boundary === undefined ? undefined : parseMultipartBody(raw, boundary);
    return seen && !seen.flaw ? { body: seen.body, form: seen.layout } : undefined;
  }
  let body: unknown;
  try {
    body = JSON.parse(raw.toString());
  } catch {
    return undefined;
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const seen = scan(raw);
  return { body: body as Body, spans: seen.flaw ? null : seen.spans };
}

/**
 * Whether an origin is bound: it is the base's own origin or one that the endpoint lists. A `*`
 * matches one or more labels of a host.
 */
function isBoundOrigin(url: URL, reach: Partial<EndpointConnection<unknown>>): boolean {
  if (url.origin === new URL(reach.base!).origin) return true;
  return (reach.origins ?? []).some((origin) => {
    if (!origin.includes("*")) return new URL(origin).origin === url.origin;
    const [, scheme, tail] = /^(https?:)\/\/\*\.([^/*]+)$/.exec(origin) ?? [];
    return url.protocol === scheme && url.host.endsWith(`.${tail}`);
  });
}

/** A request before it is signed. */
interface UnsignedFetch {
  readonly method: string;
  readonly url: URL;
  readonly headers: HeadersOut;
  readonly body: Buffer | (() => AsyncIterable<Uint8Array>) | null;
  readonly signal: AbortSignal;
}

async function sendSigned(
  options: ProviderClientOptions,
  auth: Auth<any>,
  unsigned: UnsignedFetch,
): Promise<Response> {
  const { method, url, body, signal } = unsigned;
  const isStream = typeof body === "function";
  const signable = { ...unsigned, body: isStream ? null : body };
  const own = await createAuthHeaders(auth, options.credential, () => signable);
  try {
    const answer = await dispatcherFor(url, options).request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: method as Dispatcher.HttpMethod,
      headers: { ...unsigned.headers, ...own } as Record<string, string>,
      body: isStream ? Readable.from(body(), { objectMode: false }) : body,
      signal,
      ...(options.timeouts && {
        headersTimeout: options.timeouts.firstByteMs,
        bodyTimeout: options.timeouts.idleMs,
      }),
    });
    return await toProviderResponse(answer, {
      url,
      bound: options.bound ?? "response",
      isStreamed: options.timeouts !== undefined,
      onBodyError: (problem) => failTruncatedBody(options, unsigned, problem),
    });
  } catch (cause) {
    return failUnreachable(options, unsigned, cause);
  }
}

/**
 * Throws the error of a request without a response. `isSent`: whether a part of the request may have
 * been sent. Undefined: it is not known.
 */
export function failUnreachable(
  { reach, baseLabel = "The provider" }: Pick<ProviderClientOptions, "reach" | "baseLabel">,
  { url, signal }: Pick<UnsignedFetch, "url" | "signal">,
  cause: unknown,
  isSent?: boolean,
): never {
  if (getFault(cause)) throw cause;
  if (signal.aborted) fail("canceled", "The request was canceled.", { cause });
  const { code = "", message } = cause as Error & { code?: string };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return fail("timeout", "The provider exceeded the time limit.", {
      code: "upstream_timeout",
      cause,
    });
  if (code.startsWith("address_"))
    return fail(
      "upstream",
      code === "address_metadata"
        ? `${message} Only a plugin that declares needs.metadata can connect to it.`
        : `${message} To allow it, name the address in an option that its plugin marks x-origin.`,
      { code, cause },
    );
  const who = reach ? baseLabel : `The server at ${url.origin}`;
  // Error messages of Node contain addresses.
  const text = `${who} cannot be reached: ${code || "the connection broke"}.`;
  // After these two codes, nothing was sent.
  if (isConnectError(cause as Error))
    return fail("upstream", text, { code: "connect_failed", cause });
  if (isSent !== true && TLS_ERROR.test(code))
    return fail("upstream", text, { code: "tls_failed", cause });
  if (isSent === false) return fail("upstream", text, { code: "connect_failed", cause });
  return fail("upstream", text, { code: "upstream_disconnected", cause });
}

/** Codes of errors before a connection exists. */
const CONNECT_ERRORS: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "proxy_refused",
]);
/** Codes of a TLS handshake that failed. */
const TLS_ERROR = /CERT|^UNABLE_TO_|HANDSHAKE|^ERR_SSL_WRONG_VERSION_NUMBER$/;

/** Whether no connection was established. */
function isConnectError(cause: Error): boolean {
  const { code = "", syscall } = cause as Error & { code?: string; syscall?: string };
  return CONNECT_ERRORS.has(code) || syscall === "connect";
}

/** Throws the error of a body that ended early. */
export function failTruncatedBody(
  options: Pick<ProviderClientOptions, "reach" | "baseLabel">,
  unsigned: Pick<UnsignedFetch, "url" | "signal">,
  cause: unknown,
): never {
  const { code } = cause as { code?: string };
  if (getFault(cause) || unsigned.signal.aborted || code === "UND_ERR_BODY_TIMEOUT")
    return failUnreachable(options, unsigned, cause);
  return fail("upstream", "The provider's response was truncated.", { code: "truncated", cause });
}

/**
 * Returns the response fields that an auth scheme evaluates. The body is cloned, so the plugin can
 * still read it.
 */
async function toAuthRefusal(answer: Response): Promise<Omit<AuthRejection, "signal">> {
  const body = Buffer.from(await answer.clone().arrayBuffer()).subarray(0, BOUNDS.errorBody.max);
  return { status: answer.status, headers: Object.fromEntries(answer.headers), body };
}

/** Creates the fetch of one call to a native endpoint, as the request pipeline requires it. */
export const fetchFor: Generation["createFetch"] = (candidate, signal, { prepare, trace }) => {
  const { endpoint, credential, provider } = candidate.mounted;
  return createProviderClient({
    allowedOrigins: provider.extraOrigins,
    allowsMetadataService: provider.allowsMetadataService,
    proxy: provider.proxy,
    reach: endpoint.definition as Partial<EndpointConnection<unknown>>,
    dispatcher: endpoint.nativePool,
    credential,
    signal,
    prepare,
    traceHeaders: trace,
    timeouts: streamTimeoutsFor(candidate),
  }).fetch;
};

// Creates the response that a plugin receives from its provider's `fetch`.

/**
 * Part of an abandoned body that is read so that its connection can be reused, in bytes and
 * milliseconds.
 */
export const DISCARD_LIMITS = { limit: 128 * 1024, ms: 1_000 };

/**
 * Makes the target of a redirect absolute. It is relative to the URL of the request, and a plugin that
 * follows it would resolve it against the base.
 */
function resolveRedirect(headers: Headers, url: URL): void {
  const target = URL.parse(headers.get("location") ?? "", url.href);
  if (target && headers.has("location")) headers.set("location", target.href);
}

interface ProviderResponseOptions {
  /** URL of the request. */
  readonly url: URL;
  /** Size limit of the body. */
  readonly bound: BoundName | "none";
  /** Whether the body is streamed. */
  readonly isStreamed: boolean;
  /** Throws the fault for a truncated body. */
  onBodyError(problem: unknown): never;
}

/**
 * Creates the response. A successful streamed response resolves with its head. Any other response
 * resolves when it is complete, so that a plugin that does not read the response does not keep a
 * connection open.
 */
async function toProviderResponse(
  { statusCode: status, headers: receivedHeaders, body }: Dispatcher.ResponseData,
  { url, bound, isStreamed, onBodyError }: ProviderResponseOptions,
): Promise<Response> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(receivedHeaders))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  if (status >= 300 && status < 400) resolveRedirect(headers, url);
  const pieces = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let size = 0;
  const next = async () => {
    try {
      const { done, value } = await pieces.next();
      if (done) return undefined;
      size += value.length;
      // Errors have a bound in any case.
      const limit = bound === "none" && status >= 300 ? "response" : bound;
      if (limit === "none" || size <= BOUNDS[limit].max) return value;
      body.destroy();
      return failBoundExceeded(limit);
    } catch (problem) {
      return onBodyError(problem);
    }
  };
  const cancel = () => {
    if (!body.readableEnded)
      body
        .dump({ limit: DISCARD_LIMITS.limit, signal: AbortSignal.timeout(DISCARD_LIMITS.ms) })
        .catch(() => body.destroy());
  };
  if (isStreamed && status < 300) return trackBody({ next, cancel }, { status, headers });
  const all: Buffer[] = [];
  for (let piece = await next(); piece; piece = await next()) all.push(piece);
  return new Response(hasBody(status) ? Buffer.concat(all) : null, { status, headers });
}

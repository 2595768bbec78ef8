import type { IncomingMessage, ServerResponse } from "node:http";
import { fail } from "../../model/error.ts";
import type { Feature, Privacy } from "../../model/facts.ts";
import { emptyRealtimeRequest } from "../../model/operations/realtime-operation.ts";
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Operation, ModelRequest } from "../../model/request.ts";
import type { Body, HeadersIn } from "../../model/values.ts";
import type { ClientCertificate, Exchange } from "../../plugin/exchange.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { RpcOperation } from "../../model/rpc-operation.ts";
import type { RequestTrace } from "../../model/request-trace.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import { estimateInputTokens } from "../../money/estimate.ts";
import type { Generation } from "../generation.ts";
import type { LiveExchange } from "../hooks/hook-guard.ts";
import type { HostCandidate, MountedRoute } from "./mounted.ts";
import { stricterPrivacy, clientVisibleLimits } from "../accounts/accounts.ts";
import { credentialSourcesOf, readCookies, withoutSecretHeaders } from "./secret-headers.ts";
import {
  createExchangeState,
  type BodyState,
  type ConnectionState,
  type ExchangeState,
} from "./exchange-state.ts";
import type { SocketLane } from "./socket-lane.ts";
import { startTrace } from "./trace.ts";
import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";

// Labels that hooks add to a request are few and short, because every ledger row of the request
// stores them.
/** Maximum length of a label's name and of a label's value. */
const MAX_LABEL_LENGTH = 256;
const MAX_LABELS = 32;
const MAX_OPERATION_NAME = 256;

/** Returns the operation with short names, and without other members that a plugin may have set. */
const trimOperation = ({ system, method, version, target, errorType }: RpcOperation) => {
  const trim = (text: string) => text.slice(0, MAX_OPERATION_NAME);
  return {
    system: trim(system),
    method: trim(method),
    ...(version != null && { version: trim(version) }),
    ...(target != null && { target: trim(target) }),
    ...(errorType != null && { errorType: trim(errorType) }),
  };
};

/** Returns the labels with one more. */
function addLabel(
  labels: Record<string, string> | undefined,
  name: string,
  value: string,
): Record<string, string> {
  const all = labels ?? (Object.create(null) as Record<string, string>);
  if (name.length > MAX_LABEL_LENGTH || value.length > MAX_LABEL_LENGTH)
    fail("internal", `A label must have at most ${MAX_LABEL_LENGTH} characters.`);
  if (!Object.hasOwn(all, name) && Object.keys(all).length >= MAX_LABELS)
    fail("internal", `A request can have at most ${MAX_LABELS} labels.`);
  all[name] = value;
  return all;
}

/** Characters that are valid in a header name. Any other character could inject a header. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Returns the headers for the client with one more. */
function addHeader(
  headers: Map<string, string> | undefined,
  name: string,
  value: string,
): Map<string, string> {
  if (!HEADER_NAME.test(name)) fail("internal", "Invalid header name.");
  if (!HEADER_VALUE.test(value)) fail("internal", `Invalid header value for ${name}.`);
  return (headers ?? new Map<string, string>()).set(name.toLowerCase(), value);
}

/** The request that a subrequest is made for, and the plugins that make it. */
export interface SubrequestOrigin {
  readonly parentRequest: HostExchange;
  /**
   * IDs of the plugins that make the subrequest: the parents' plugins first, then the current one.
   * Hooks of these plugins do not run for the subrequest.
   */
  readonly pluginIds: readonly string[];
}

/** The provider's response to a line. */
export interface LineReply {
  readonly status: number;
  /** JSON text. */
  readonly body: Buffer;
}

/** A request that runs in the background, without its client. */
export interface BackgroundRequest {
  /** Sends the response to the client, the first time it is called. */
  accept(): Promise<void>;
  /**
   * Starts the request as a job of the first candidate's provider. Returns false if the gateway has
   * to run it.
   */
  startJob(candidates: readonly HostCandidate[]): Promise<boolean>;
  /** Called when the request is settled. */
  end(): Promise<void>;
  /** Cancels the request. */
  cancel(): void;
}

/** The line of a job that a request is. */
export interface ExchangeJobLine {
  /**
   * Terms that the provider applies to all lines of a batch, whatever it reports. Undefined for a
   * line that the gateway sends itself, which has the terms of an ordinary request.
   */
  readonly terms: { readonly tier: string } | undefined;
  /** Time whose prices apply, in Unix milliseconds. Default: the time of the reservation. */
  readonly pricedAt?: number;
  /** ID of the job's own call. Undefined while the job is planned. */
  readonly attempt?: string;
  /** Result from the provider. Undefined while the job is planned, and if the gateway sends the line. */
  readonly reply?: LineReply;
  /** Whether the result is processed again after this error. The call stays open until then. */
  readonly isRepeatedAfter?: (problem: unknown) => boolean;
  /** Called with each settle row that is written. The promise rejects if the ledger refuses it. */
  readonly onSettle?: (row: Promise<void>) => void;
}

/** One request, as plugins see it. The pipeline's own state is in `state`. */
export class HostExchange implements LiveExchange {
  readonly id: string;
  readonly state: ExchangeState;
  /**
   * The request and plugin that this subrequest is made for. Undefined for a client's own request.
   */
  readonly subrequestOrigin: SubrequestOrigin | undefined;
  /** Handshake of the WebSocket that the request came through. */
  readonly session: HostExchange | undefined;
  /** Set if the request is a line of a job. */
  readonly jobLine: ExchangeJobLine | undefined;
  readonly params: { readonly [name: string]: string };
  readonly #connection: ConnectionState;
  readonly #body: BodyState;
  #identity: Identity | undefined;
  #privacy: Privacy = "off";
  #headers: HeadersIn | undefined;
  #query: URLSearchParams | undefined;
  #readPromise: Promise<HostExchange> | undefined;
  #decodedRequest: ModelRequest | undefined;
  #size: Exchange["inputSize"] | undefined;
  #abortController: AbortController | undefined;
  #trace: RequestTrace | undefined;
  #backgroundRequest: BackgroundRequest | undefined;
  readonly #receiveBody: (exchange: HostExchange) => Promise<HostExchange>;

  constructor(of: {
    id: string;
    gen: Generation;
    route: MountedRoute;
    req: IncomingMessage;
    res: ServerResponse;
    params: { readonly [name: string]: string };
    receive: (exchange: HostExchange) => Promise<HostExchange>;
    origin?: SubrequestOrigin;
    lane?: SocketLane | undefined;
    session?: HostExchange | undefined;
    jobLine?: ExchangeJobLine | undefined;
  }) {
    this.id = of.id;
    this.params = of.params;
    this.#receiveBody = of.receive;
    this.subrequestOrigin = of.origin;
    this.session = of.session;
    this.jobLine = of.jobLine;
    this.state = createExchangeState(of);
    const { connection, body } = this.state;
    this.#connection = connection;
    this.#body = body;
    this.#watch(of.res);
  }

  /** Calls the listeners when the client disconnects. */
  #watch(res: ServerResponse): void {
    const { gen, connection, admission } = this.state;
    res.on("close", () => {
      // The request runs in the background.
      if (connection.res !== res) return;
      admission.permit.onResponseEnd();
      if (res.writableFinished) return;
      connection.isDisconnected = true;
      this.#abortController?.abort();
      for (const leave of connection.disconnectListeners) {
        try {
          leave();
        } catch (err) {
          gen.log.error(
            { request: this.id, err },
            "call settlement failed after client disconnected",
          );
        }
      }
    });
  }

  /** Runs the request in the background. Its response is written to `res` from here on. */
  runInBackground(run: BackgroundRequest, res: ServerResponse): void {
    this.#backgroundRequest = run;
    this.#connection.res = res;
    this.#watch(res);
  }

  /** Set if the request runs in the background. */
  get backgroundRequest(): BackgroundRequest | undefined {
    return this.#backgroundRequest;
  }

  get isHypothetical(): false {
    return false;
  }
  get frontend(): string {
    return this.state.frontend.name;
  }
  get method(): string {
    return this.#connection.req.method ?? "GET";
  }
  get path(): string {
    const url = this.#connection.req.url ?? "/";
    const mark = url.indexOf("?");
    return mark < 0 ? url : url.slice(0, mark);
  }
  get address(): string {
    return this.#connection.req.socket.remoteAddress ?? "";
  }
  get certificate(): ClientCertificate | undefined {
    return certificateOf(this.#connection.req.socket);
  }
  get headers(): HeadersIn {
    return (this.#headers ??= withoutSecretHeaders(this.#connection.req.headers));
  }
  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(
      this.#connection.req.url?.slice(this.path.length + 1),
    ));
  }
  get hasQuery(): boolean {
    return this.#connection.req.url?.includes("?") === true;
  }
  get credentialSources(): readonly string[] {
    return credentialSourcesOf(this.#connection.req);
  }
  get cookies(): { readonly [name: string]: string } {
    return readCookies(this.#connection.req, this.state.cookieNames);
  }
  get signal(): AbortSignal {
    if (!this.#abortController) {
      this.#abortController = new AbortController();
      if (this.#connection.isDisconnected) this.#abortController.abort();
    }
    return this.#abortController.signal;
  }
  /**
   * The trace of the request. Created on first use, so requests that no observer or provider traces
   * have none.
   */
  get trace(): RequestTrace {
    return (this.#trace ??= startTrace(this.#connection.req.headers, this.session?.trace));
  }
  get identity(): Identity | undefined {
    return this.#identity;
  }
  get privacy(): Privacy {
    return this.#privacy;
  }
  get limits(): readonly Limit[] {
    return clientVisibleLimits(this.#identity, this.state.admission.account);
  }

  identify(identity: Identity): void {
    if (this.#identity) fail("internal", "A request can be identified only once.");
    const { gen, admission } = this.state;
    const branch =
      identity.account === undefined ? undefined : gen.accounts.resolve(identity.account);
    const effectiveIdentity = branch ? gen.accounts.restrict(identity, branch) : identity;
    this.#identity = effectiveIdentity;
    admission.account = branch;
    admission.permit.setKey(effectiveIdentity.id);
    if (effectiveIdentity.privacy)
      this.#privacy = stricterPrivacy(this.#privacy, effectiveIdentity.privacy);
  }

  requirePrivacy(to: Privacy): void {
    this.state.admission.isPrivacyDecided = true;
    this.#privacy = stricterPrivacy(this.#privacy, to);
  }

  setResponseHeader(name: string, value: string): void {
    const { outcome } = this.state;
    outcome.headers = addHeader(outcome.headers, name, value);
  }

  addLabel(name: string, value: string): void {
    const { billing } = this.state;
    billing.labels = addLabel(billing.labels, name, value);
  }

  setRpcOperation(operation: RpcOperation): void {
    this.state.outcome.rpc = trimOperation(operation);
  }

  acquireSlot(scope: string, most: number): void {
    // A request that makes no call is not counted among concurrent calls.
    const { route, admission } = this.state;
    if (route && !this.#readPromise)
      admission.permit.acquireSlot(scope, most, admission.account?.hiddenScopes.has(scope));
  }

  /** Discards everything derived from the body. Called when fields of the body change. */
  invalidateDecodedBody(): void {
    this.#decodedRequest = undefined;
    this.#size = undefined;
  }

  readBody(): Promise<Exchange> {
    return (this.#readPromise ??= this.#receiveBody(this));
  }

  /**
   * Whether the body was requested and has not arrived. Code that waits for the body is then
   * waiting for the client.
   */
  get isAwaitingBody(): boolean {
    return (
      this.#readPromise !== undefined &&
      this.#body.received === undefined &&
      !this.#connection.req.destroyed
    );
  }

  get protocol(): string {
    return this.state.frontend.protocol?.id ?? "";
  }
  get operation(): Operation {
    return this.operationSpec.name;
  }
  /**
   * Whether every translation loss is an error, because of the gateway's config or the client's
   * header.
   */
  get isStrict(): boolean {
    const { gen } = this.state;
    return gen.isStrict || this.#connection.req.headers["x-tollgate-strict"] === "true";
  }
  get operationSpec(): OperationSpec {
    return this.state.frontend.protocol?.operationSpec ?? chatOperation;
  }
  get actionType(): ActionType {
    return this.#body.received?.actionType ?? this.state.route?.actionType ?? "generate";
  }
  get action(): string {
    return this.#body.received?.action ?? this.state.route?.action ?? this.actionType;
  }
  get model(): string {
    return this.#body.received?.model ?? "";
  }
  get stream(): boolean {
    return this.#body.received?.stream ?? false;
  }
  get features(): readonly Feature[] {
    return this.#body.received?.facts.features ?? [];
  }
  get body(): Body {
    return this.#body.received?.body ?? {};
  }
  get inputSize(): Exchange["inputSize"] {
    const { inputBytes = 0, facts } = this.#body.received ?? {};
    return (this.#size ??= {
      bytes: inputBytes,
      tokens: estimateInputTokens({ bytes: inputBytes, media: facts?.media }),
    });
  }
  get request(): ModelRequest {
    // The messages of a relayed socket are not decoded.
    return (this.#decodedRequest ??=
      this.state.frontend.server?.decodeRequest(this.body, this.actionType) ??
      this.#body.rewritten ??
      emptyRealtimeRequest(this.model));
  }
}

// Reads the TLS client certificate of a connection. It is read once per connection, and only if a
// plugin uses it.

type MaybeTlsSocket = Socket & { authorized?: boolean; getPeerX509Certificate?(): X509Certificate };

const known = new WeakMap<Socket, ClientCertificate>();

const NAME_TYPES = new Set(["DNS", "URI", "email"]);
const MAX_NAMES = 64;
const MAX_ALT_NAME_LENGTH = 16_384;

function certificateOf(socket: MaybeTlsSocket): ClientCertificate | undefined {
  // Node sets `authorized` only if a certificate authority that the operator trusts signed the
  // certificate.
  if (socket.authorized !== true) return undefined;
  const before = known.get(socket);
  if (before) return before;
  const peer = socket.getPeerX509Certificate?.();
  if (!peer) return undefined;
  const certificate: ClientCertificate = {
    names: parseSubjectAltName((peer.subjectAltName ?? "").slice(0, MAX_ALT_NAME_LENGTH)),
    commonName: /^CN=(.+)$/m.exec(peer.subject)?.[1],
    fingerprint: peer.fingerprint256.replaceAll(":", "").toLowerCase(),
    expiresAt: Date.parse(peer.validTo),
  };
  known.set(socket, certificate);
  return certificate;
}

/**
 * Parses a subject alternative name as OpenSSL formats it. Ambiguous values are quoted:
 * `DNS:a.test, URI:"spiffe://a, b"`.
 */
export function parseSubjectAltName(alternative: string): string[] {
  const names: string[] = [];
  const each = /([^:,"]*):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/gy;
  for (const [, type = "", text = ""] of alternative.matchAll(each)) {
    if (names.length >= MAX_NAMES) break;
    if (!NAME_TYPES.has(type) || text === "") continue;
    const name = text.startsWith('"') ? unquote(text) : text;
    if (name !== undefined) names.push(type === "URI" ? name : name.toLowerCase());
  }
  return names;
}

function unquote(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}

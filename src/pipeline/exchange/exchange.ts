import type { IncomingMessage, ServerResponse } from "node:http";
import { fail, type Fault } from "../../model/error.ts";
import type { Feature, Privacy } from "../../model/facts.ts";
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Operation, ModelRequest } from "../../model/request.ts";
import type { Body, HeadersIn } from "../../model/values.ts";
import type { Call, CallRecord } from "../../plugin/call.ts";
import type { ClientCertificate, Exchange } from "../../plugin/exchange.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { RequestRecordHook, RequestTrace } from "../../plugin/observer.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { PipelineRoute } from "../../plugin/frontend.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { Limit, LimitState } from "../../plugin/store/limit.ts";
import type { Reserve } from "../../plugin/store/store.ts";
import { estimateInputTokens } from "../../money/estimate.ts";
import type { Generation } from "../generation.ts";
import type { MountedFrontend, MountedRoute } from "./mounted.ts";
import {
  stricterPrivacy,
  clientVisibleLimits,
  type ResolvedAccount,
} from "../accounts/accounts.ts";
import type { SubrequestOrigin } from "./subrequest-origin.ts";
import type { IdempotencyClaim } from "./idempotency.ts";
import { certificateOf } from "./client-certificate.ts";
import { credentialSourcesOf, withoutSecretHeaders } from "./secret-headers.ts";
import type { RouteFindings } from "./route-findings.ts";
import type { ReceivedBody } from "../body/received-body.ts";
import { RequestPermit } from "../admission/request-permit.ts";
import { startTrace } from "./trace.ts";

// Labels that hooks add to a request are few and short, because every ledger row of the request
// stores them.
/** Maximum length of a label's name, and of its value. */
const MAX_LABEL_LENGTH = 256;
const MAX_LABELS = 32;
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

/** Characters that are valid in a header name. Anything else could inject a header. */
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

/**
 * The pipeline's own state of an exchange. Stages write to it. Plugins see it only through the
 * read-only view.
 */
export interface ExchangeState extends RouteFindings {
  readonly gen: Generation;
  /**
   * The frontend in the current protocol. If the route speaks several protocols, reading the body
   * may change it.
   */
  frontend: MountedFrontend;
  /** Undefined if the frontend answers the request itself. */
  readonly route: PipelineRoute | undefined;
  /** The path as the plugin declares it. */
  readonly routePath: string;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly startedAt: number;
  bytesIn: number;
  receivedBody: ReceivedBody | undefined;
  /** The request after the rewrite hooks. A translated call encodes this. */
  rewrittenRequest: ModelRequest | undefined;
  isPrivacyDecided: boolean;
  /** The data policy receipt of the last candidate that was called. */
  zdrReceipt: string | undefined;
  responseHeaders: Map<string, string> | undefined;
  labels: Record<string, string> | undefined;
  /** Labels of the request's last ledger row. */
  ledgerLabels: Reserve["labels"] | undefined;
  limitStates: readonly LimitState[];
  callRecords: CallRecord[];
  hookActivity: RequestRecordHook[] | undefined;
  fault: Fault | undefined;
  cached: boolean;
  finishReason: Outcome["finish"];
  /** The last call that was started. */
  lastCall: (Pick<Outcome, "mode" | "losses"> & Pick<Call, "n" | "provider">) | undefined;
  /**
   * When the first call was sent, how many calls were sent, and the provider of the last one.
   * Undefined if none was sent.
   */
  sentCalls:
    | { readonly firstSentAt: number; readonly count: number; readonly lastProvider: string }
    | undefined;
  bytesOut: number;
  /**
   * Time in milliseconds spent waiting for others: for the client's body and for providers'
   * responses. `externalWaitEnd` is when the last wait ended.
   */
  externalWaitMs: number;
  externalWaitEnd: number;
  isDisconnected: boolean;
  disconnectListeners: (() => void)[];
  readonly permit: RequestPermit;
  /** The claim for the Idempotency-Key. Undefined until it is claimed. */
  idempotencyClaim:
    | Pick<IdempotencyClaim, "keyId" | "idempotencyKeyHash" | "requestId">
    | undefined;
  /** The account of the key, with its ancestors. */
  account: ResolvedAccount | undefined;
  /**
   * The request and plugin that this subrequest is made for. Undefined for a client's own request.
   */
  readonly subrequestOrigin: SubrequestOrigin<HostExchange> | undefined;
}

/** One request, as plugins see it. The pipeline's own state is in `~`. */
export class HostExchange implements Exchange {
  readonly id: string;
  readonly "~": ExchangeState;
  readonly params: { readonly [name: string]: string };
  #identity: Identity | undefined;
  #privacy: Privacy = "off";
  #headers: HeadersIn | undefined;
  #query: URLSearchParams | undefined;
  #readPromise: Promise<HostExchange> | undefined;
  #decodedRequest: ModelRequest | undefined;
  #size: Exchange["inputSize"] | undefined;
  #abortController: AbortController | undefined;
  #trace: RequestTrace | undefined;
  readonly #receiveBody: (exchange: HostExchange) => Promise<HostExchange>;

  constructor(of: {
    id: string;
    gen: Generation;
    route: MountedRoute;
    req: IncomingMessage;
    res: ServerResponse;
    params: { readonly [name: string]: string };
    receive: (exchange: HostExchange) => Promise<HostExchange>;
    asker?: SubrequestOrigin<HostExchange>;
  }) {
    this.id = of.id;
    this.params = of.params;
    this.#receiveBody = of.receive;
    this["~"] = {
      gen: of.gen,
      frontend: of.route.frontend,
      route: "actionType" in of.route.route ? of.route.route : undefined,
      routePath: of.route.path,
      req: of.req,
      res: of.res,
      startedAt: performance.now(),
      bytesIn: 0,
      receivedBody: undefined,
      resolution: undefined,
      excluded: [],
      coolingDown: undefined,
      rewrittenRequest: undefined,
      isPrivacyDecided: false,
      zdrReceipt: undefined,
      responseHeaders: undefined,
      labels: undefined,
      ledgerLabels: undefined,
      limitStates: [],
      callRecords: [],
      hookActivity: undefined,
      fault: undefined,
      cached: false,
      finishReason: undefined,
      lastCall: undefined,
      sentCalls: undefined,
      bytesOut: 0,
      externalWaitMs: 0,
      externalWaitEnd: 0,
      isDisconnected: false,
      disconnectListeners: [],
      permit: new RequestPermit(of.gen),
      idempotencyClaim: undefined,
      account: undefined,
      subrequestOrigin: of.asker,
    };
    of.res.on("close", () => {
      const state = this["~"];
      state.permit.onResponseEnd();
      if (of.res.writableFinished) return;
      state.isDisconnected = true;
      this.#abortController?.abort();
      for (const leave of state.disconnectListeners) {
        try {
          leave();
        } catch (err) {
          state.gen.log.error(
            { request: this.id, err },
            "settling a call failed after its client disconnected",
          );
        }
      }
    });
  }

  get frontend(): string {
    return this["~"].frontend.name;
  }
  get method(): string {
    return this["~"].req.method ?? "GET";
  }
  get path(): string {
    const url = this["~"].req.url ?? "/";
    const mark = url.indexOf("?");
    return mark < 0 ? url : url.slice(0, mark);
  }
  get address(): string {
    return this["~"].req.socket.remoteAddress ?? "";
  }
  get certificate(): ClientCertificate | undefined {
    return certificateOf(this["~"].req.socket);
  }
  get headers(): HeadersIn {
    return (this.#headers ??= withoutSecretHeaders(this["~"].req.headers));
  }
  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this["~"].req.url?.slice(this.path.length + 1)));
  }
  get hasQuery(): boolean {
    return this["~"].req.url?.includes("?") === true;
  }
  get credentialSources(): readonly string[] {
    return credentialSourcesOf(this["~"].req);
  }
  get signal(): AbortSignal {
    if (!this.#abortController) {
      this.#abortController = new AbortController();
      if (this["~"].isDisconnected) this.#abortController.abort();
    }
    return this.#abortController.signal;
  }
  /**
   * The trace of the request. Created on first use, so requests that no observer or provider traces
   * have none.
   */
  get trace(): RequestTrace {
    return (this.#trace ??= startTrace(this["~"].req.headers));
  }
  get identity(): Identity | undefined {
    return this.#identity;
  }
  get privacy(): Privacy {
    return this.#privacy;
  }
  get limits(): readonly Limit[] {
    return clientVisibleLimits(this.#identity, this["~"].account);
  }

  identify(identity: Identity): void {
    if (this.#identity) fail("internal", "A request can be identified only once.");
    const { gen, permit } = this["~"];
    const branch =
      identity.account === undefined ? undefined : gen.accounts.resolve(identity.account);
    const effectiveIdentity = branch ? gen.accounts.restrict(identity, branch) : identity;
    this.#identity = effectiveIdentity;
    this["~"].account = branch;
    permit.setKey(effectiveIdentity.id);
    if (effectiveIdentity.privacy)
      this.#privacy = stricterPrivacy(this.#privacy, effectiveIdentity.privacy);
  }

  requirePrivacy(to: Privacy): void {
    this["~"].isPrivacyDecided = true;
    this.#privacy = stricterPrivacy(this.#privacy, to);
  }

  setResponseHeader(name: string, value: string): void {
    this["~"].responseHeaders = addHeader(this["~"].responseHeaders, name, value);
  }

  addLabel(name: string, value: string): void {
    this["~"].labels = addLabel(this["~"].labels, name, value);
  }

  acquireSlot(scope: string, most: number): void {
    // A request that makes no call is not counted among concurrent calls.
    const { route, permit, account } = this["~"];
    if (route && !this.#readPromise)
      permit.acquireSlot(scope, most, account?.hiddenScopes.has(scope));
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
    const { receivedBody, req } = this["~"];
    return this.#readPromise !== undefined && receivedBody === undefined && !req.destroyed;
  }

  get protocol(): string {
    return this["~"].frontend.protocol?.id ?? "";
  }
  get operation(): Operation {
    return this.operationSpec.name;
  }
  /**
   * Whether every translation loss is an error, because of the gateway's config or the client's
   * header.
   */
  get isStrict(): boolean {
    const { gen, req } = this["~"];
    return gen.isStrict || req.headers["x-tollgate-strict"] === "true";
  }
  get operationSpec(): OperationSpec {
    return this["~"].frontend.protocol?.operationSpec ?? chatOperation;
  }
  get actionType(): ActionType {
    return this["~"].receivedBody?.actionType ?? this["~"].route?.actionType ?? "generate";
  }
  get action(): string {
    return this["~"].receivedBody?.action ?? this["~"].route?.action ?? this.actionType;
  }
  get model(): string {
    return this["~"].receivedBody?.model ?? "";
  }
  get stream(): boolean {
    return this["~"].receivedBody?.stream ?? false;
  }
  get features(): readonly Feature[] {
    return this["~"].receivedBody?.facts.features ?? [];
  }
  get body(): Body {
    return this["~"].receivedBody?.body ?? {};
  }
  get inputSize(): Exchange["inputSize"] {
    const { inputBytes = 0, facts } = this["~"].receivedBody ?? {};
    return (this.#size ??= {
      bytes: inputBytes,
      tokens: estimateInputTokens({ bytes: inputBytes, media: facts?.media }),
    });
  }
  get request(): ModelRequest {
    return (this.#decodedRequest ??= this["~"].frontend.server!.decodeRequest(
      this.body,
      this.actionType,
    ));
  }
}

// The pipeline's own state of one exchange, split by the part of the pipeline that owns it. A stage
// takes the parts that it reads and writes. All fields are set when the exchange is created, so
// that V8 gives every request the same object shapes.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Fault } from "../../model/error.ts";
import type { ModelRequest } from "../../model/request.ts";
import type { Call, CallRecord } from "../../plugin/call.ts";
import type { PipelineRoute, Route, RouteInput } from "../../plugin/frontend.ts";
import type { RequestRecordHook } from "../../plugin/observer.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { RpcOperation } from "../../model/rpc-operation.ts";
import type { LimitState } from "../../plugin/store/limit.ts";
import type { OpenCall } from "../../plugin/store/open-call.ts";
import type { Reserve, CallTarget } from "../../plugin/store/store.ts";
import type { ResolvedAccount } from "../accounts/accounts.ts";
import { RequestPermit } from "../admission/request-permit.ts";
import type { Generation, IdempotencyClaim } from "../generation.ts";
import type { RoutingState } from "../routing/resolution.ts";
import type { ScopeHeaders } from "../scopes/scope-headers.ts";
import type { ClientCredential } from "./client-credential.ts";
import type { MountedFrontend, MountedRoute } from "./mounted.ts";
import type { SocketLane } from "./socket-lane.ts";
import type { Span } from "../../lib/json/json-scanner.ts";
import type { Body } from "../../model/values.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import type { MultipartLayout } from "../body/multipart-body.ts";

/** The connection to the client, and its measurements. */
export interface ConnectionState {
  readonly req: IncomingMessage;
  /** The response that the pipeline writes. A request that runs in the background has another one. */
  res: ServerResponse;
  readonly startedAt: number;
  bytesIn: number;
  bytesOut: number;
  /**
   * Time in milliseconds spent waiting for others: for the client's body and for providers'
   * responses. `externalWaitEnd` is when the last wait ended.
   */
  externalWaitMs: number;
  externalWaitEnd: number;
  isDisconnected: boolean;
  /** The lane of the client's WebSocket that made the request. Undefined for an HTTP request. */
  readonly lane: SocketLane | undefined;
  disconnectListeners: (() => void)[];
}

/** Whether and how the request was admitted. */
export interface AdmissionState {
  readonly permit: RequestPermit;
  /** The account of the key, with its ancestors. */
  account: ResolvedAccount | undefined;
  isPrivacyDecided: boolean;
  /** The client's own credential for a provider. Undefined if it sent none, or none is accepted. */
  clientCredential: ClientCredential | undefined;
  /** The claim for the Idempotency-Key. Undefined until it is claimed. */
  idempotencyClaim:
    | Pick<IdempotencyClaim, "keyId" | "idempotencyKeyHash" | "requestId">
    | undefined;
}

/** The content of the request. */
export interface BodyState {
  received: ReceivedBody | undefined;
  /** The request after the rewrite hooks. A translated call encodes this. */
  rewritten: ModelRequest | undefined;
}

/** The calls that were made for the request. */
export interface CallsState {
  /** The last call that was started. */
  last: (Pick<Outcome, "mode" | "losses"> & Pick<Call, "n" | "provider">) | undefined;
  /** Number of the first call to another model, after all candidates failed. */
  nextNumber: number | undefined;
  /**
   * When the first call was sent, the number of calls, and the provider of the last call. Undefined
   * if no call was sent.
   */
  sent:
    | { readonly firstSentAt: number; readonly count: number; readonly lastProvider: string }
    | undefined;
  /** The data policy receipt of the last candidate that was called. */
  zdrReceipt: string | undefined;
  /** Calls that plugins make themselves: those that are not settled, and the number of all. */
  opened: { readonly open: Set<OpenCall>; count: number } | undefined;
}

/**
 * Another model for a request, and the scope that names it. `firstCall` is the number of the first
 * call to that model: a limit rejected the call that had the number before.
 */
interface Downgrade {
  readonly scope: string;
  readonly model: string;
}

/** Billing data of a request that was sent to the ledger or returned by it. */
export interface BillingState {
  /** Labels that hooks added. */
  labels: Record<string, string> | undefined;
  /** Labels of the request's last ledger row. */
  ledgerLabels: Reserve["labels"] | undefined;
  /** Limits of the last call, with the names of their scopes. */
  limitStates: readonly LimitState[];
  /**
   * Limits of the last call, with the scopes under which the store counts them. Only limits that
   * deny the client's requests when they are used up.
   */
  denyingLimits: readonly LimitState[];
  /** The error of the last call that a limit denied. Denials of hedges are left out. */
  denial: unknown;
  /** Values of the headers that scopes read. */
  scopeHeaders: ScopeHeaders | undefined;
  /** Values that name members of scopes. Undefined until they are read. */
  scopeValues: ReadonlyMap<string, string> | undefined;
  /** The model that may serve the request instead, and the scope whose limit is used up. */
  downgradeOffer: Downgrade | undefined;
  /** The model that serves the request instead. */
  downgrade: (Downgrade & { readonly firstCall: number }) | undefined;
  /** Whether the request was, or may have been, started as a job, which is billed when it ends. */
  isJob: boolean;
  /** One record for each settled call. */
  readonly records: CallRecord[];
  /** Records of the subrequests with which the frontend answered the request. */
  answerRecords: CallRecord[] | undefined;
  /** Promises of these subrequests, until they end, with functions that cancel them. */
  openAnswers: Map<Promise<void>, () => void> | undefined;
}

/** The result that the client and the observers receive. */
export interface OutcomeState {
  fault: Fault | undefined;
  cached: boolean;
  finish: Outcome["finish"];
  /** Response headers that hooks set. */
  headers: Map<string, string> | undefined;
  hookActivity: RequestRecordHook[] | undefined;
  /** The remote procedure call that the request is. */
  rpc: RpcOperation | undefined;
}

export interface ExchangeState {
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
  /** Whether clients may present a client secret in place of their key. */
  readonly acceptsClientSecrets: boolean;
  /** Names of the cookies that the route's handler may read. */
  readonly cookieNames: readonly string[];
  readonly connection: ConnectionState;
  readonly admission: AdmissionState;
  readonly body: BodyState;
  readonly routing: RoutingState;
  readonly calls: CallsState;
  readonly billing: BillingState;
  readonly outcome: OutcomeState;
}

export function createExchangeState(of: {
  readonly gen: Generation;
  readonly route: MountedRoute;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly lane?: SocketLane | undefined;
}): ExchangeState {
  return {
    gen: of.gen,
    frontend: of.route.frontend,
    route: "actionType" in of.route.route ? of.route.route : undefined,
    routePath: of.route.path,
    acceptsClientSecrets: isOpenToSecrets(of.route.route),
    cookieNames: ("cookies" in of.route.route ? of.route.route.cookies : undefined) ?? NO_COOKIES,
    connection: {
      req: of.req,
      res: of.res,
      startedAt: performance.now(),
      bytesIn: 0,
      bytesOut: 0,
      externalWaitMs: 0,
      externalWaitEnd: 0,
      isDisconnected: false,
      lane: of.lane,
      disconnectListeners: [],
    },
    admission: {
      permit: new RequestPermit(of.gen),
      account: undefined,
      isPrivacyDecided: false,
      clientCredential: undefined,
      idempotencyClaim: undefined,
    },
    body: { received: undefined, rewritten: undefined },
    routing: { resolution: undefined, excluded: [], coolingDown: undefined },
    calls: {
      last: undefined,
      nextNumber: undefined,
      sent: undefined,
      zdrReceipt: undefined,
      opened: undefined,
    },
    billing: {
      labels: undefined,
      ledgerLabels: undefined,
      limitStates: [],
      denyingLimits: [],
      denial: undefined,
      scopeHeaders: undefined,
      scopeValues: undefined,
      downgradeOffer: undefined,
      downgrade: undefined,
      isJob: false,
      records: [],
      answerRecords: undefined,
      openAnswers: undefined,
    },
    outcome: {
      fault: undefined,
      cached: false,
      finish: undefined,
      headers: undefined,
      hookActivity: undefined,
      rpc: undefined,
    },
  };
}

/** The body of a request and all data derived from it. */
export interface ReceivedBody {
  raw: Buffer;
  /**
   * Size in bytes of all content that the provider may read: the client's body, and the content
   * that the frontend added.
   */
  inputBytes: number;
  /** Positions of the members in the JSON text. */
  spans: ReadonlyMap<string, Span> | null;
  /** Positions of the fields in the form. */
  multipart: MultipartLayout | undefined;
  body: Body;
  facts: RequestFacts;
  model: string;
  /** The target that must serve the request. Set when a route's `read` names it. */
  pinnedTarget: Pick<CallTarget, "provider" | "model" | "credential"> | undefined;
  stream: boolean;
  actionType: ActionType;
  action: string;
  /** The body as the client sent it, equal to `raw`. */
  originalBody: Body;
  /** Fields with which the frontend's `read` replaced the client's own. `body` contains them. */
  edits: Body | undefined;
  record: RouteInput["record"];
  /** The response that the frontend made itself. No provider is called. */
  answer: RouteInput["answer"];
  /** Set if the request runs in the background. */
  background: RouteInput["background"];
  /** The response that the request continues. A provider's WebSocket may be able to do so. */
  continues: RouteInput["continues"];
}

const NO_COOKIES: readonly string[] = [];

const isOpenToSecrets = (route: Route): boolean =>
  "acceptsClientSecrets" in route && route.acceptsClientSecrets === true;

// Types of one request: request head, exchange, candidate, call, and outcome. Plugins keep their
// own data about a request in a WeakMap. Plugins must not change the objects that they receive. The
// test kit freezes these objects deeply.
import type { Feature, Privacy } from "../model/facts.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import type { Body, HeadersIn } from "../model/values.ts";
import type { Identity } from "./identity.ts";
import type { Limit } from "./store/limit.ts";
import type { RequestTrace } from "../model/request-trace.ts";
import type { ActionType } from "./protocol.ts";
import type { RpcOperation } from "../model/rpc-operation.ts";

/**
 * Name of the label that a middleware sets if a request changes what its conversation sent before.
 * A provider cannot read the changed part from its prompt cache. The value is one of
 * `PROMPT_SECTIONS`. `tollgate caches` counts the calls with this label.
 */
export const PROMPT_SECTION_LABEL = "prompt_prefix";

/**
 * Name of the label with the place of the first difference, such as "system 1204". Limit the number
 * of different values for each key, because totals have a group for each value.
 */
export const PROMPT_PLACE_LABEL = "prompt_prefix_at";

/** Sections of a prompt, in the order in which providers read them. */
export const PROMPT_SECTIONS = ["tools", "instructions", "messages"] as const;

/** Certificate of a client. It is verified by the TLS connection, so no header can forge it. */
export interface ClientCertificate {
  /**
   * Names in the certificate's subjectAltName: DNS names, URIs (`spiffe://…`), and email addresses.
   * At most 64.
   */
  readonly names: readonly string[];
  /**
   * Common name of the subject, for display. Certificate authorities verify it less strictly than
   * `names`.
   */
  readonly commonName: string | undefined;
  /** SHA-256 of the certificate, in lower-case hex. */
  readonly fingerprint: string;
  /** Expiry of the certificate, in Unix milliseconds. */
  readonly expiresAt: number;
}

/**
 * The request line and headers of a request, before the body is read. If an `admit` hook rejects
 * the request, the body is never read.
 */
export type RequestHead = Readonly<{
  /** ID of the request, sent as `x-request-id`. */
  id: string;
  /**
   * Trace of the request. Store it with a job that the request creates, so that the end of the job
   * is linked to the request.
   */
  trace: RequestTrace;
  /** Name of the frontend in gateway.yaml. */
  frontend: string;
  /** HTTP method. */
  method: string;
  /** Path of the URL, without the query. */
  path: string;
  /** Address of the peer of the connection: the client, or the last proxy before the gateway. */
  address: string;
  /**
   * Certificate that the client presented on this connection, signed by one of
   * `listen.tls.client_certificates`. Undefined if the client presented none or none was requested.
   * A certificate that expired after the connection was opened is still returned. To detect this,
   * compare `expiresAt`.
   */
  certificate: ClientCertificate | undefined;
  /** Parameters of the route's path, such as `id` of `/v1/models/:id`. */
  params: { readonly [name: string]: string };
  /** Headers of the request, without credentials and cookies. */
  headers: HeadersIn;
  /** Query of the URL, without credentials. */
  query: URLSearchParams;
  /**
   * Sources of credentials in the request, without their values: header names (`x-api-key`), and
   * query parameters with a question mark (`?key`). A frontend for several families of clients can
   * use them to distinguish the clients.
   */
  credentialSources: readonly string[];
  /**
   * Cookies that the route declares in `cookies`, by name. A cookie that was sent twice is omitted,
   * because another site may have set one of them.
   */
  cookies: { readonly [name: string]: string };
  /**
   * Aborts when the client disconnects before its response was sent. The signal is created when it
   * is first read.
   */
  signal: AbortSignal;
  /** Identity of the client. Undefined until an `admit` hook calls `identify`. */
  identity: Identity | undefined;
  /**
   * Limits of the key, and limits of its accounts that may be disclosed to the client. They may be
   * shown to the client, and `ctx.ledger.readLimits` returns their remaining amounts. Empty until
   * the client is identified.
   */
  limits: readonly Limit[];
  /** The strictest privacy level that hooks, the key, and its accounts have set. */
  privacy: Privacy;
  /**
   * Sets the identity of the client. Call it in an `admit` hook, once per request: a second call
   * ends the request with a 500. A request that no hook identified is rejected with a 401.
   */
  identify(who: Identity): void;
  /**
   * Raises the privacy level of the request. It is never lowered. Call it in an `admit` hook. If no
   * hook calls it, a request with a Service-ZDR header is rejected with a 400.
   */
  requirePrivacy(to: Privacy): void;
  /**
   * Takes one of `max` concurrent slots of `scope`, until the request's call is reserved or the
   * request ends. If no slot is free, the request is rejected with a 429. Slots are counted in this
   * process, starting at the request head. A limit in `charge` starts to count only after the body
   * has been read.
   */
  acquireSlot(scope: string, max: number): void;
  /**
   * Sets a header of the response, including error responses. If a header is set several times, the
   * last value is used. Has no effect after the headers were sent. A name or value that is not
   * valid in a header throws, and the request ends with a 500.
   */
  setResponseHeader(name: string, value: string): void;
  /**
   * Adds a label to the ledger rows that this request has yet to write, and to its record for
   * observers. A label of the key with the same name is kept. A request can have up to 32 labels,
   * with names and values of up to 256 characters. Exceeding a limit throws, and the request ends
   * with a 500. Never use text from prompts or responses.
   */
  addLabel(name: string, value: string): void;
  /**
   * Sets the remote procedure call of the request, for its record. Frontends call it if their
   * protocol has one path for all methods. The last value is used. Each name is truncated to 256
   * characters.
   */
  setRpcOperation(operation: RpcOperation): void;
  /**
   * Reads the body if it has not been read, and checks its size, UTF-8, duplicate keys, and schema.
   * Resolves to the same object, which then also has the members of an `Exchange`. Rejects with the
   * fault that the client receives. Further calls return the same promise.
   */
  readBody(): Promise<Exchange>;
}>;

/**
 * A request whose body was read and passed the checks of size, UTF-8, duplicate keys, and schema.
 * `rewrite` and later hooks receive it.
 */
export type Exchange = RequestHead &
  Readonly<{
    /** ID of the protocol that the client speaks. */
    protocol: string;
    /** Model type that the route is for. */
    operation: Operation;
    /** Operation of the route: generate, count, or relay. */
    actionType: ActionType;
    /** Name of the operation within its protocol, such as `generate`. */
    action: string;
    /** Model name, as the client wrote it. */
    model: string;
    /** Whether the client requests a streamed response. */
    stream: boolean;
    /** Features that the request needs. */
    features: readonly Feature[];
    /** The parsed body, with the changes that `edit` hooks made. */
    body: Body;
    /**
     * Request in the common form. It is decoded when it is read for the first time. Reading it does
     * not force translation.
     */
    request: ModelRequest;
    /**
     * Size of the input: bytes of the body, and an estimate of its input tokens. It is computed
     * when it is read for the first time.
     */
    inputSize: { readonly bytes: number; readonly tokens: number };
  }>;

// One request: Arrival → Exchange → Candidate → Call → Outcome. What a plugin keeps of its own sits in a WeakMap.
// Nothing handed to a plugin may be changed by it; the test kit deep-freezes it.
import type { Feature, Privacy } from "../model/facts.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import type { Body, HeadersIn } from "../model/values.ts";
import type { Identity } from "./identity.ts";
import type { Limit } from "./store/limit.ts";
import type { ActionType } from "./protocol.ts";

/** Of a client. Proved by the connection itself: no header can say it. */
export interface ClientCertificate {
  /** What it was made for, as its subjectAltName says: DNS names, addresses (`spiffe://…`), mail addresses. At most 64. */
  readonly names: readonly string[];
  /** The subject's. A name for people: authorities check it less than `names`. */
  readonly commonName: string | undefined;
  /** SHA-256 of it, in lower-case hex. */
  readonly fingerprint: string;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** The head. The body of a request that is refused here is never read. */
export type RequestHead = Readonly<{
  /** ID of the request, sent as `x-request-id`. */
  id: string;
  /** Name of the frontend in gateway.yaml. */
  frontend: string;
  /** HTTP method. */
  method: string;
  /** Path of the URL, without the query. */
  path: string;
  /** Address of the peer of the connection: the client, or the last proxy before the gateway. */
  address: string;
  /**
   * What the client has proved of itself on this connection: a certificate that one of `listen.tls.client_certificates` has signed. Undefined where
   * it has none, or none was asked for. One that has ended since the connection began is here all the same: `until` says when.
   */
  certificate: ClientCertificate | undefined;
  /** Parameters of the route's path, such as `id` of `/v1/models/:id`. */
  params: { readonly [name: string]: string };
  /** Credentials and cookies taken out. */
  headers: HeadersIn;
  /** Credentials taken out. */
  query: URLSearchParams;
  /**
   * Where credentials came: names of headers (`x-api-key`), and with a question mark words of the query (`?key`). What they are is not
   * shown. A frontend that answers several families of clients tells them by it.
   */
  credentialSources: readonly string[];
  /** Aborts when the client goes away before its answer has left. Made when first read. */
  signal: AbortSignal;
  /** Identity of the client. Undefined until an `admit` hook calls `identify`. */
  identity: Identity | undefined;
  /**
   * What its key may use, and the accounts that it draws on so far as they tell clients of their limits: each of these may be shown to
   * the client, and `ctx.ledger.counted` says what is left of it. Empty before it is identified.
   */
  limits: readonly Limit[];
  /** Strictest privacy that hooks, the key, and its accounts have set so far. */
  privacy: Privacy;
  /** Called by an `admit` hook, once: a second call is a 500. A request that no hook has identified is a 401. */
  identify(who: Identity): void;
  /** Called by an `admit` hook. It never loosens. Where no hook called it, a request with a Service-ZDR header is a 400. */
  requirePrivacy(to: Privacy): void;
  /**
   * Takes one of so many places for requests at once, until its call is reserved or it is over; a 429 when there is none.
   * Counted in this process, from the head on: what a limit in `charge` counts it counts when the body has been read.
   */
  acquireSlot(scope: string, max: number): void;
  /**
   * Sets a header of the answer, of an error too. The last one wins; it has no effect once the head is out. A name or a value
   * that cannot stand in a header line throws, and the request is a 500.
   */
  setResponseHeader(name: string, value: string): void;
  /**
   * Notes something on the ledger rows of this request that are still to come, and in its record for observers. A key's own
   * label of that name stays as it is. At most 32, a name and a value of at most 256 characters each: more throws, and the
   * request is a 500. Never what people wrote.
   */
  addLabel(name: string, value: string): void;
  /**
   * Reads the body, if it has not been read: size, UTF-8, duplicate keys, schema. Resolves to the same object, with more of it;
   * rejects with the fault that the client is told. Called again it gives the same promise.
   */
  readBody(): Promise<Exchange>;
}>;

/**
 * An arrival whose body has been read: size, UTF-8, duplicate keys and schema have been checked. `rewrite` and later
 * hooks get it.
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
    /** As the client wrote it. */
    model: string;
    /** Whether the client requests a streamed response. */
    stream: boolean;
    /** Features that the request needs. */
    features: readonly Feature[];
    /** The parsed body, with the changes that `edit` hooks made. */
    body: Body;
    /** Decoded when first read; reading leaves passthrough mode open. */
    request: ModelRequest;
    /** How much it is: bytes of the body, and about how many tokens of input they are. A guess, made when first read. */
    inputSize: { readonly bytes: number; readonly tokens: number };
  }>;

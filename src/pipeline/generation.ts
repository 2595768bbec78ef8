// The request pipeline handles one request from its first byte to its settled bill. Each stage is a
// function in a file of `stages`. Only pipeline.ts defines the order of the stages, and no stage
// imports another. The pipeline may import `plugin` (types), the interface of `protocols`, `model`,
// `money`, `catalog`, and `lib`. It may not import config values, the loader, or the gateway.
//
// This file defines what a config generation provides to the pipeline. A generation is built once
// per config and never changes.
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { RequestRecord } from "../plugin/observer.ts";
import type { ProviderClient } from "../plugin/call.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { ResponseHeaderName } from "../config/schema/core-options.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { LogThrottle } from "../lib/log/log-throttle.ts";
import type { Logger } from "../plugin/context.ts";
import type { HeadersOut, Json } from "../model/values.ts";
import type { OutputHistory } from "../money/output-history.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { Scopes } from "./scopes/scope-table.ts";
import type { TargetHealth } from "./routing/target-health.ts";
import type { AdmissionQueue } from "./admission/admission-queue.ts";
import type { MemoryBudget } from "./admission/memory-budget.ts";
import type { CandidateResolver } from "./routing/resolver.ts";
import type { ConcurrencyCounter } from "./admission/request-permit.ts";
import type { TimerWheel } from "./admission/timer-wheel.ts";
import type { Exchange } from "../plugin/exchange.ts";
import type {
  HostCandidate,
  MountedProvider,
  MountedRoute,
  SubrequestRoute,
} from "./exchange/mounted.ts";
import type { Price } from "../model/facts.ts";
import type { Reserve, Settle, StoreCommand, CommandResult } from "../plugin/store/store.ts";
import type { Usage } from "../model/usage.ts";

/**
 * The record of a request on its way to observers. It contains the client's complete address and no
 * process ID. Each observer receives a copy with the address and process ID that the observer may
 * see.
 */
export type ObservedRequest = { -readonly [M in keyof RequestRecord]: RequestRecord[M] };

export interface Generation {
  readonly number: number;
  readonly log: Logger;
  /** Logs lines that would otherwise repeat often. */
  readonly logThrottle: Pick<LogThrottle, "log">;
  readonly isStrict: boolean;
  /** Headers with which responses describe how they were served. Undefined: none. */
  readonly responseHeaders: ReadonlySet<ResponseHeaderName> | undefined;
  readonly maxBodyBytes: number;
  /** Maximum number of values in the JSON of one body. */
  readonly maxJsonValues: number;
  /** Maximum size in bytes of one response that is buffered or rewritten. */
  readonly maxResponseBytes: number;
  readonly slowRequestMs: number;
  /** How long a client may stop reading its response, in milliseconds. */
  readonly writeTimeoutMs: number;
  /** Time without content after which a client gets a ping in its event stream. */
  readonly pingIntervalMs: number;
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly resolver: CandidateResolver;
  readonly catalog: Catalog;
  readonly accounts: Accounts;
  readonly scopes: Scopes;
  readonly ledger: Ledger;
  readonly targetHealth: TargetHealth;
  /** Maximum attempts of one request, per target and in total. */
  readonly retries: GatewayConfig["retries"];
  /** Records each call to a model that has a retirement date. */
  readonly retiringModels: { recordUse(model: string, retires: string): void };
  /** Typical output per key and model, from which an expected reservation is calculated. */
  readonly outputHistory: OutputHistory;
  readonly timerWheel: TimerWheel;
  /** Whether a provider is called with the clients' own credentials. */
  readonly acceptsClientCredentials: boolean;
  /** Returns the route of model requests at a path. */
  findRoute(path: string): MountedRoute | undefined;
  /** Returns the route for a subrequest that a plugin makes, with the parameters of its path. */
  findSubrequestRoute(path: string): SubrequestRoute | undefined;
  /** Passes a finished request to the observers. Undefined if there are none. */
  readonly reportRequest: ((record: ObservedRequest) => void) | undefined;
  /** Limits the bytes that the whole process holds at the same time. */
  readonly memoryBudget: MemoryBudget;
  readonly admissionQueue: AdmissionQueue;
  readonly concurrencyCounter: ConcurrencyCounter;
  /** Requests with an Idempotency-Key, across the whole gateway. */
  readonly idempotency: IdempotencyRegistry;
  readonly imageFiles: ImageFiles;
  /**
   * Creates the `fetch` of a call for code that sends requests itself. `prepare` runs last, before
   * a request leaves. `trace` returns additional headers for the candidate's own origins.
   */
  createFetch(
    candidate: HostCandidate,
    signal: AbortSignal,
    outgoing: {
      prepare(out: Outgoing): void;
      trace(): HeadersOut;
    },
  ): ProviderClient["fetch"];
  /** Replaces registered secret values in a text that a provider wrote. */
  mask(text: string): string;
  /** Replaces registered secret values in every string of a JSON value. */
  maskJson(value: Json): Json;
  /**
   * Keeps the generation alive for an exchange, and returns the function that releases it. When the
   * last exchange releases a retired generation, the generation is disposed of.
   */
  retain(x: Exchange): () => void;
}

/**
 * Stores images for clients that request a URL, and fetches images for clients that request bytes.
 */
export interface ImageFiles {
  /**
   * Stores the bytes and returns a temporary URL for them. `who`: the key whose storage quota is
   * used.
   */
  store(bytes: Buffer, mime: string | undefined, who: string | undefined): Promise<string>;
  /**
   * Fetches an image from a URL that a provider returned. The request goes through the egress guard
   * and carries no credential. The target of each redirect is checked in the same way.
   * @param own Origin from the operator's config. URLs with this origin bypass the guard.
   */
  fetch(
    url: string,
    signal: AbortSignal,
    own: string | undefined,
  ): Promise<{ bytes: Buffer; contentType: string }>;
}

/**
 * The interface of the ledger for the pipeline. The pipeline writes rows. The gateway handles
 * batching, durability, and recovery.
 */
interface Ledger {
  /** Writes a reserve row. `price`: the price behind the hash in the command. */
  reserve(command: Stamped<Reserve>, price: Price | undefined): Promise<CommandResult>;
  /** Writes a settle row. `prices`: the prices behind the hashes in its parts. */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  progress(command: Stamped<Extract<StoreCommand, { do: "progress" }>>): void;
}

export type Stamped<T> = T & { at: number };

/** The claim of one request with an Idempotency-Key. It contains only hashes and IDs. */
export interface IdempotencyClaim {
  /** The key that sent the request. Idempotency keys of different keys do not collide. */
  readonly keyId: string;
  readonly idempotencyKeyHash: string;
  /** Hash of the request's body. */
  readonly bodyHash: string;
  readonly requestId: string;
}

/** The outcome of a request. It is plain data, so that it can be sent between processes. */
export interface IdempotencyOutcome {
  readonly requestId: string;
  readonly status: number;
  readonly usage: Usage;
  /** Cost in nanodollars. Null if the price is unknown. */
  readonly costNano: string | null;
}

export type ClaimResult =
  | { readonly state: "new" | "running" | "mismatch" }
  | { readonly state: "completed"; readonly outcome: IdempotencyOutcome };

/**
 * Tracks requests with an Idempotency-Key in the whole gateway: requests in progress, and the
 * outcomes of finished ones. No content of requests or responses is stored. One process holds the
 * registry, and the other processes send requests to that process.
 */
export interface IdempotencyRegistry {
  /**
   * Claims an idempotency key. `owner`: the process that serves the request, if another process
   * serves it.
   */
  claim(claim: IdempotencyClaim, owner?: object): ClaimResult | Promise<ClaimResult>;
  /**
   * Completes a claim. If `outcome` is undefined, nothing was billed and the idempotency key can be
   * used again.
   */
  complete(
    claim: Pick<IdempotencyClaim, "keyId" | "idempotencyKeyHash" | "requestId">,
    outcome: IdempotencyOutcome | undefined,
  ): void | Promise<void>;
  /**
   * Called when a process exits. Its requests in progress may have been billed, so they count as
   * completed with an unknown outcome.
   */
  ownerExited(owner: object): void;
}

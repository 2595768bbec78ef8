// The walk: one request's whole life. Stations are files and functions; no station imports another, only pipeline.ts knows the order.
// May import: plugin (types), protocols' interface, model, money, catalog, lib. May not: config values, loader, gateway.
//
// This file is what a generation offers the walk: everything here is built once per config and never changes.
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { RequestRecord } from "../plugin/observer.ts";
import type { ProviderClient } from "../plugin/call.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { ResponseHeaderName } from "../config/gateway-config.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { LogThrottle } from "../lib/log/log-throttle.ts";
import type { Logger } from "../plugin/context.ts";
import type { HeadersOut, Json } from "../model/values.ts";
import type { OutputHistory } from "../money/output-history.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { ImageFiles } from "./response/image-files.ts";
import type { IdempotencyRegistry } from "./exchange/idempotency.ts";
import type { TargetHealth } from "./routing/target-health.ts";
import type { AdmissionQueue } from "./admission/admission-queue.ts";
import type { MemoryBudget } from "./admission/memory-budget.ts";
import type { CandidateResolver } from "./routing/resolver.ts";
import type { Ledger } from "./metering/ledger.ts";
import type { ConcurrencyCounter } from "./admission/concurrency-counter.ts";
import type { TimerWheel } from "./admission/timer-wheel.ts";
import type { Exchange } from "../plugin/exchange.ts";
import type { HostCandidate, MountedRoute } from "./exchange/mounted.ts";

/**
 * A request as the walk tells of it, on its way to observers: with its client's whole address, and without the process, which
 * each observer's own record has as that observer may have them.
 */
export type ObservedRequest = { -readonly [M in keyof RequestRecord]: RequestRecord[M] };

export interface Generation {
  readonly number: number;
  readonly log: Logger;
  /** For lines of the log that would come again and again. */
  readonly logThrottle: Pick<LogThrottle, "log">;
  readonly isStrict: boolean;
  /** What answers say of the way that they came; undefined: nothing. */
  readonly responseHeaders: ReadonlySet<ResponseHeaderName> | undefined;
  readonly maxBodyBytes: number;
  /** Values in the JSON of one body. */
  readonly maxJsonValues: number;
  /** Bytes of one answer that is held or written anew. */
  readonly maxResponseBytes: number;
  readonly slowRequestMs: number;
  /** How long a client may take nothing of its answer. */
  readonly writeTimeoutMs: number;
  readonly resolver: CandidateResolver;
  readonly catalog: Catalog;
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly targetHealth: TargetHealth;
  /** How often one request is tried: of one target, and in all. */
  readonly retries: GatewayConfig["retries"];
  /** Hears of every call to a model that has a date to go. */
  readonly retiringModels: { recordUse(model: string, retires: string): void };
  /** What a key usually gets out of a model: what an expected hold sets aside. */
  readonly outputHistory: OutputHistory;
  readonly timerWheel: TimerWheel;
  /** The route at which a plugin asks on behalf of a request. */
  findRoute(path: string): MountedRoute | undefined;
  /** Where observers hear of a request that is over; undefined: there are none. */
  readonly reportRequest: ((heard: ObservedRequest) => void) | undefined;
  /** How many bytes may be held and how many requests may be inside at once, in the whole process. */
  readonly memoryBudget: MemoryBudget;
  readonly admissionQueue: AdmissionQueue;
  readonly concurrencyCounter: ConcurrencyCounter;
  /** Requests with an Idempotency-Key, of the whole gateway. */
  readonly idempotency: IdempotencyRegistry;
  readonly imageFiles: ImageFiles;
  /**
   * A call's own way to its candidate, for code that sends by itself. `prepare` has the last word on what leaves, and `trace` gives
   * the headers that the candidate's own origins are sent besides.
   */
  createFetch(
    candidate: HostCandidate,
    signal: AbortSignal,
    outgoing: {
      prepare(out: Outgoing): void;
      trace(): HeadersOut;
    },
  ): ProviderClient["fetch"];
  /** Registered secret values out of a text that an upstream wrote. */
  mask(text: string): string;
  /** The same in every string of it. */
  maskJson(value: Json): Json;
  /** An exchange holds its generation from head to settle; the last one to leave a retired generation ends it. */
  retain(x: Exchange): () => void;
}

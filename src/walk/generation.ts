// The walk: one request's whole life. Stations are files and functions; no station imports another, only walk.ts knows the order.
// May import: plugin (types), protocols' interface, model, money, catalogue, lib. May not: config values, loader, gateway.
//
// This file is what a generation offers the walk: everything here is built once per config and never changes.
import type { GatewayConfig } from "../config/types.ts";
import type { RequestRecord } from "../plugin/observer.ts";
import type { ProviderAccess } from "../plugin/call.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { AnswerHeader } from "../config/types.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Repeats } from "../lib/repeats.ts";
import type { Logger } from "../plugin/context.ts";
import type { HeadersOut, Json } from "../model/values.ts";
import type { Usual } from "../money/usual.ts";
import type { Accounts } from "./accounts.ts";
import type { PictureFiles } from "./answer/picture-files.ts";
import type { Claims } from "./claims.ts";
import type { RestingTargets } from "./candidates/resting.ts";
import type { Gate } from "./bounds/gate.ts";
import type { Room } from "./bounds/room.ts";
import type { CandidateResolver } from "./candidates/resolver.ts";
import type { Ledger } from "./money/ledger.ts";
import type { Turnstile } from "./bounds/turnstile.ts";
import type { Watchdog } from "./bounds/watchdog.ts";
import type { Exchange } from "../plugin/exchange.ts";
import type { HostCandidate, MountedRoute } from "./mounted.ts";

/**
 * A request as the walk tells of it, on its way to observers: with its client's whole address, and without the process, which
 * each observer's own record has as that observer may have them.
 */
export type HeardRequest = { -readonly [M in keyof RequestRecord]: RequestRecord[M] };

export interface Generation {
  readonly number: number;
  readonly log: Logger;
  /** For lines of the log that would come again and again. */
  readonly repeats: Pick<Repeats, "say">;
  readonly strict: boolean;
  /** What answers say of the way that they came; undefined: nothing. */
  readonly answerHeaders: ReadonlySet<AnswerHeader> | undefined;
  readonly maxBodyBytes: number;
  /** Values in the JSON of one body. */
  readonly maxValues: number;
  /** Bytes of one answer that is held or written anew. */
  readonly maxAnswerBytes: number;
  readonly slowMs: number;
  /** How long a client may take nothing of its answer. */
  readonly writeMs: number;
  readonly resolver: CandidateResolver;
  readonly catalogue: Catalogue;
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly rests: RestingTargets;
  /** How often one request is tried: of one target, and in all. */
  readonly attempts: GatewayConfig["attempts"];
  /** Hears of every call to a model that has a date to go. */
  readonly retiring: { used(model: string, retires: string): void };
  /** What a key usually gets out of a model: what an expected hold sets aside. */
  readonly usual: Usual;
  readonly watchdog: Watchdog;
  /** The route at which a plugin asks on behalf of a request. */
  door(path: string): MountedRoute | undefined;
  /** Where observers hear of a request that is over; undefined: there are none. */
  readonly seen: ((heard: HeardRequest) => void) | undefined;
  /** How many bytes may be held and how many requests may be inside at once, in the whole process. */
  readonly room: Room;
  readonly gate: Gate;
  readonly turnstile: Turnstile;
  /** Requests with an Idempotency-Key, of the whole gateway. */
  readonly claims: Claims;
  readonly pictures: PictureFiles;
  /**
   * A call's own way to its candidate, for code that sends by itself. `prepare` has the last word on what leaves, and `trace` gives
   * the headers that the candidate's own origins are sent besides.
   */
  fetchFor(
    candidate: HostCandidate,
    signal: AbortSignal,
    leaving: {
      prepare(out: Outgoing): void;
      trace(): HeadersOut;
    },
  ): ProviderAccess["fetch"];
  /** Registered secret values out of a text that an upstream wrote. */
  mask(text: string): string;
  /** The same in every string of it. */
  masked(value: Json): Json;
  /** An exchange holds its generation from head to settle; the last one to leave a retired generation ends it. */
  enter(x: Exchange): () => void;
}

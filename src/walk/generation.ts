// The walk: one request's whole life. Stations are files and functions; no station imports another, only walk.ts knows the order.
// May import: plugin (types), protocols' interface, model, money, catalogue, lib. May not: config values, loader, gateway.
//
// This file is what a generation offers the walk: everything here is built once per config and never changes.
import type { RequestRecord } from "../plugin/observer.ts";
import type { Pool } from "undici";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Timeouts } from "../config/types.ts";
import type { Kind } from "../model/request.ts";
import type { Candidate } from "../plugin/call.ts";
import type { Logger } from "../plugin/context.ts";
import type { Frontend, Route } from "../plugin/frontend.ts";
import type { Protocol, ServerHalf } from "../plugin/protocol.ts";
import type { Endpoint, Provider, WireEndpoint } from "../plugin/provider.ts";
import type { DataPolicy, PolicyException, Price } from "../model/facts.ts";
import type { StoreCommand, Reserve, Settle, Verdict } from "../plugin/store.ts";
import type { HeadersIn, Json } from "../model/values.ts";
import type { Usual } from "../money/usual.ts";
import type { Chain } from "./hooks.ts";
import type { Pictures } from "./answer/pictures.ts";
import type { RestingTargets } from "./candidates/resting.ts";
import type { Room } from "./bounds/room.ts";
import type { CandidateResolver } from "./candidates/resolver.ts";
import type { Turnstile } from "./bounds/turnstile.ts";
import type { Watchdog } from "./bounds/watchdog.ts";

export interface Generation {
  readonly number: number;
  readonly log: Logger;
  readonly strict: boolean;
  readonly maxBodyBytes: number;
  /** Values in the JSON of one body. */
  readonly maxValues: number;
  /** Bytes of one answer that is held or written anew. */
  readonly maxAnswerBytes: number;
  readonly slowMs: number;
  readonly resolver: CandidateResolver;
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  readonly rests: RestingTargets;
  /** Hears of every call to a model that has a date to go. */
  readonly retiring: { used(model: string, retires: string): void };
  /** What a key usually gets out of a model: what an expected hold sets aside. */
  readonly usual: Usual;
  readonly watchdog: Watchdog;
  /** Where observers hear of a request that is over; undefined: there are none. */
  readonly seen: ((record: RequestRecord) => void) | undefined;
  /** What may be held and who may come in at once, of the whole process. */
  readonly room: Room;
  readonly turnstile: Turnstile;
  readonly pictures: Pictures;
  /** Registered secret values out of a text that an upstream wrote. */
  mask(text: string): string;
  /** The same in every string of it. */
  masked(value: Json): Json;
  /** An exchange holds its generation from head to settle; the last one to leave a retired generation ends it. */
  enter(): () => void;
}

/** Money's door: batches, durability and recovery are behind it. */
export interface Ledger {
  /** The price is the row behind the hash that the command pins. */
  reserve(command: Stamped<Reserve>, price: Price | undefined): Promise<Verdict>;
  /** Prices behind hashes that its parts name. */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  progress(command: Stamped<Extract<StoreCommand, { do: "progress" }>>): void;
}
export type Stamped<T> = T & { at: number };

export interface MountedFrontend {
  /** "messages": its name in gateway.yaml. */
  readonly name: string;
  readonly frontend: Frontend;
  readonly protocol: Protocol | undefined;
  readonly server: ServerHalf<Kind> | undefined;
  /** The first thing wrong with a body, or nothing. */
  readonly validate: (body: unknown) => { pointer: string; message: string } | undefined;
  readonly secret: (headers: HeadersIn) => string | undefined;
  readonly chain: Chain;
}

export interface MountedRoute {
  readonly frontend: MountedFrontend;
  readonly route: Route;
}

export interface MountedProvider {
  /** What stands before the first "/" of a model id. */
  readonly name: string;
  readonly provider: Provider;
  readonly data: DataPolicy | undefined;
  readonly exceptions: readonly PolicyException[];
  readonly trusted: boolean;
  readonly state: "refuse" | "relay";
  /** Fields that may leave under Service-ZDR though nobody has reviewed them: "min_p", "messages[].new". */
  readonly zdrFields: readonly string[];
  readonly onDisconnect: "cancel" | "drain";
  readonly timeouts: Timeouts;
  readonly endpoints: readonly MountedEndpoint[];
  readonly credentials: readonly Credential[];
  /** Reached as they are, beside its endpoints' own: the operator's options name them. */
  readonly origins: ReadonlySet<string>;
}

export interface MountedEndpoint {
  readonly endpoint: Endpoint;
  readonly kind: Kind;
  /** null: native. */
  readonly protocol: Protocol | null;
  readonly wire: Wire | null;
  /** The pool for the base of a native endpoint that has one. */
  readonly pool: Pool | undefined;
}

/** The way to an endpoint's base: a pool for its origin and what a path is put behind. */
export interface Wire {
  readonly pool: Pool;
  readonly origin: string;
  /** Without a trailing slash. */
  readonly prefix: string;
  readonly endpoint: WireEndpoint;
}

export interface Credential {
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly weight: number;
  readonly models: readonly string[] | undefined;
  readonly zdr: { declared: boolean; note?: string; until?: string } | undefined;
}

/** A candidate with what the host knows of it and no plugin may. */
export interface HostCandidate extends Candidate {
  readonly "~": { provider: MountedProvider; endpoint: MountedEndpoint; credential: Credential };
}

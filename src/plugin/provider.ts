import type { ModelEvent } from "../model/event.ts";
import type { Can, DataPolicy, Facts, ModelInfo, PolicyException } from "../model/facts.ts";
import type { Kind, ModelRequest } from "../model/request.ts";
import type { HeadersOut, Opt, Sync } from "../model/values.ts";
import type { Call, ProviderAccess, Outgoing } from "./call.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Path, Protocol } from "./protocol.ts";
import type { Infer, None, ObjectSchema } from "./schema.ts";

/** A provider's definition: the way to one backend, mounted as many times as `providers:` names it. */
export interface ProviderDef<
  O extends ObjectSchema = None,
  C extends ObjectSchema = None,
> extends Plugin<O> {
  /** What one credential is made of: its fields stand in `with:` (one) or in `credentials: [{ name, with, zdr, weight, models }]` (several). */
  credential?: C;
  /** Absent = unknown. */
  data?: DataPolicy;
  /** Where `data` is not all there is to say: by protocol, by kind, by model, listed or not. */
  exceptions?: readonly PolicyException[];
  /** What is known of its models. The live list and the operator's own facts win over it, field by field. */
  facts?: Facts;
  setup: Setup<O, Provider<Infer<C>>>;
}

/**
 * What a provider's `setup` returns, for one mounted instance. `setup` opens no connection; the host calls `ready`
 * before the generation is swapped in (a failure keeps the old one) and `models` in the background (a failure keeps
 * the last good list).
 */
export interface Provider<C = unknown> {
  /** Preferred first when translating. */
  endpoints: readonly Endpoint<C>[];
  /** What this credential may call; the host caches it and keeps the last good one. */
  models?(line: ProviderAccess): Promise<readonly ModelInfo[]>;
  /** Before the swap, with a deadline. */
  ready?(line: ProviderAccess): Promise<void>;
}

/** One way to ask a backend: in a protocol whose codec exists, or by code of the plugin's own. */
export type Endpoint<C = unknown> = WireEndpoint<C> | { [K in Kind]: NativeEndpoint<C, K> }[Kind];

/** Where the credential may go. From options only: nothing in a request changes it. */
export interface Reach<C> {
  base: string;
  /** More origins that the credential is bound to. */
  origins?: readonly string[];
  auth: Auth<C>;
  /** The verbatim lane's client headers win over them, prepare over both. */
  headers?: HeadersOut;
}

/**
 * How the credential is put on a request. The host does it last, after every hook, so that no plugin sees the value. A
 * function signs the final bytes; it is called once for each attempt. `fail("upstream_auth")` in it rests the credential
 * and the next candidate is tried; any other throw is a 500.
 */
export type Auth<C> =
  | "none"
  | { header: string; prefix?: string; field: keyof C & string }
  | ((request: Signable, credential: C) => HeadersOut | Promise<HeadersOut>);

/** A request as it will leave, for schemes that sign it. */
export interface Signable {
  readonly method: string;
  readonly url: URL;
  readonly headers: HeadersOut;
  readonly body: Buffer | null;
  readonly signal: AbortSignal;
}

/** What an endpoint says of itself to routing and privacy. */
export interface Offer {
  /** Unless ModelInfo.protocols knows better. */
  serves?(model: string): boolean;
  /** always = the host folds for a client that wants it whole; never = it makes the stream. Default: asked. */
  streams?: "asked" | "always" | "never";
  can?: Can;
  data?: Partial<DataPolicy>;
}

/** The host sends: pool, deadline, abort, back-pressure and credential are its own. */
export interface WireEndpoint<C = unknown> extends Reach<C>, Offer {
  protocol: Protocol;
  paths?: { readonly [name: string]: Opt<Path> };
  /** After the protocol's, before the middlewares'. */
  prepare?(out: Outgoing, call: Call): Sync;
}

/** No wire format of ours: several requests, an SDK, or nothing. Always translated. Never retries; its fetches pass the `prepare` hooks. */
export interface NativeEndpoint<C = unknown, K extends Kind = Kind>
  extends Partial<Reach<C>>, Offer {
  kind: K;
  run(request: ModelRequest<K>, call: Call, credential: C): AsyncIterable<ModelEvent>;
  count?(request: ModelRequest<K>, call: Call, credential: C): Promise<number>;
}

import type { Fault } from "../model/error.ts";
import type { Body, HeadersIn, HeadersOut, Json, Opt, QueryIn, Sync } from "../model/values.ts";
import type { RecordedAnswer } from "./call.ts";
import type { Arrival } from "./exchange.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Op, Protocol, ErrorAnswer } from "./protocol.ts";
import type { None, ObjectSchema } from "./schema.ts";
import type { Target } from "./store.ts";

/** A frontend's definition: routes in one client protocol, mounted under `frontends:`. */
export interface FrontendDef<O extends ObjectSchema = None> extends Plugin<O> {
  setup: Setup<O, Frontend>;
}

/**
 * What a frontend's `setup` returns. The host serves its routes for as long as the generation lives and calls `fault`
 * and `secret` for each request; both are pure and fast. A throw in either is a 500 with a fixed text.
 */
export interface Frontend {
  protocol?: Protocol;
  routes: readonly Route[];
  /** Default: the protocol's. */
  fault?(fault: Fault, x: Arrival): ErrorAnswer;
  /**
   * The only look at raw credentials: which header counts here, or which word of the query. `fail("unauthenticated")` says
   * which to use. Whatever it makes of the query, the host has taken `key`, `api_key` and `access_token` out of the address
   * that hooks, providers and logs see. Default: Authorization: Bearer.
   */
  secret?(headers: HeadersIn, query: QueryIn): string | undefined;
}

/** Paths are h3's: `:name` is one segment, `**:name` is the rest. */
export type Route = { method: string; path: string | readonly string[] } & (WalkRoute | ServeRoute);

/** Goes the whole walk. */
export interface WalkRoute {
  op: Op;
  name?: string;
  /**
   * What is spoken here, where it is not the frontend's: bodies are checked, decoded, answered and refused in it, and it says
   * which kind of model is asked for. Absent: the frontend's own.
   */
  protocol?: Protocol;
  /** Where model and stream are; default body.model, body.stream. */
  read?(x: Arrival, body: Body): RouteInput | Promise<RouteInput>;
}
/**
 * What `read` of a walk route found in a request: which model is meant and how it is answered. Routing checks permission,
 * capability and privacy on it afterwards, as on any other model.
 */
export interface RouteInput {
  model: string | Pick<Target, "provider" | "model" | "credential">;
  stream?: Opt<boolean>;
  op?: Opt<Op>;
  name?: Opt<string>;
  /** Top-level fields that stand in for the client's own from here on: survey, decoding and what is sent see these, on both lanes. */
  edits?: Opt<Body>;
  /** Is handed what the client got, once settled: not when it failed, was cut, is over `max` bytes, or while privacy is on. */
  record?: Opt<{ max: number; to(got: RecordedAnswer): Sync }>;
}

/** Answered here. The admit hooks run unless it is open. */
export interface ServeRoute {
  open?: true;
  serve(x: Arrival): ServedAnswer | Promise<ServedAnswer>;
}
/**
 * The whole answer of a served route. JSON is written as JSON; a Buffer goes out as it is, with the content type from
 * `headers`.
 */
export interface ServedAnswer {
  status: number;
  body?: Opt<Json | Buffer>;
  headers?: Opt<HeadersOut>;
}

import type { Json, JsonObject, Opt } from "../model/values.ts";
import type { CallRecord } from "./call.ts";
import type { RequestHead } from "./exchange.ts";

/** What a plugin asks a model, as a client would: at one of the paths that this gateway's frontends serve. */
export interface Subrequest {
  /** "/v1/chat/completions", "/v1/embeddings": one that has no parameters. Its frontend must be mounted. */
  path: string;
  /** In the protocol that is spoken there, not streamed. */
  body: JsonObject;
}

/** On whose behalf it is asked. */
export interface SubrequestOptions {
  /** The client's request: its key pays, its limits and its privacy hold. */
  parentRequest: RequestHead;
  /** Gives it up. It is given up too when the client goes. */
  signal?: Opt<AbortSignal>;
}

/** What came of it. */
export interface SubrequestResult {
  /** Of this request of its own. Its rows in the ledger have the client's as their label `parent`. */
  id: string;
  /** As a client would have got it. */
  body: Json;
  /** What it used and cost. */
  calls: readonly CallRecord[];
}

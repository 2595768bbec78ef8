import type { Json, JsonObject, Opt } from "../model/values.ts";
import type { CallRecord } from "./call.ts";
import type { RequestHead } from "./exchange.ts";

/**
 * A request that a plugin sends to a model through the gateway, at a path that one of the gateway's
 * frontends serves.
 */
export interface Subrequest {
  /**
   * Path without parameters, such as "/v1/chat/completions" or "/v1/embeddings". Its frontend must
   * be mounted.
   */
  path: string;
  /** Body in the protocol of that path, without streaming. */
  body: JsonObject;
}

/** Options of a subrequest. */
export interface SubrequestOptions {
  /**
   * The client's request. The subrequest is charged to its key, and its limits and privacy apply.
   */
  parentRequest: RequestHead;
  /** Cancels the subrequest. It is also canceled when the client disconnects. */
  signal?: Opt<AbortSignal>;
}

/** Result of a subrequest. */
export interface SubrequestResult {
  /**
   * ID of the subrequest. Its ledger rows have the ID of the client's request in the label
   * `parent`.
   */
  id: string;
  /** Response body, as a client would receive it. */
  body: Json;
  /** Records of its calls, with usage and cost. */
  calls: readonly CallRecord[];
}

import type { Json, JsonObject, Opt } from "./values.ts";

/** Fields that requests of every operation share. The host reads only these fields. */
export interface CommonRequest {
  /** Model name, as the client sent it. */
  model: string;
  /** Whether the client requests a streamed response. */
  stream: boolean;
  /** Identifier of the end user, as the client sent it. */
  user?: Opt<string>;
  /**
   * Top-level fields that are unknown to the codec. The host sends them upstream unless the model
   * rejects them.
   */
  rest: JsonObject;
  /**
   * Fields of a single protocol, by the protocol's ID. Only that protocol's codec reads them, so
   * they cannot be sent in another protocol.
   */
  ext: { readonly [protocol: string]: Json };
}

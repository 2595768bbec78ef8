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
   * Top-level fields that the codec does not know. The host sends them upstream unless the model
   * rejects them.
   */
  rest: JsonObject;
  /**
   * Fields of a single protocol, by its id. Only that protocol's codec reads them, so they cannot
   * appear in another protocol.
   */
  ext: { readonly [protocol: string]: Json };
}

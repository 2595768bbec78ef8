import type { Json, JsonObject, Opt } from "./values.ts";

/** What a request of any kind says. The host reads these and nothing else of it. */
export interface CommonRequest {
  /** Model name, as the client wrote it. */
  model: string;
  /** Whether the client requests a streamed response. */
  stream: boolean;
  /** Identifier of the end user, as the client sent it. */
  user?: Opt<string>;
  /** Top-level fields that the codec does not know. The host sets them upstream unless the model refuses them. */
  rest: JsonObject;
  /** Known to one protocol only, by its id; only that protocol's codec reads it back, so it cannot leak onto another wire. */
  ext: { readonly [protocol: string]: Json };
}

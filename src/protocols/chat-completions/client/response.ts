import type { CallContext, Json, JsonObject, ModelEvent } from "../../../plugin/index.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { asList, asObject } from "../../json-values.ts";
import { ChunkReader } from "./reader.ts";
import { isErrorObject, parsed, throwFault } from "./fault.ts";

/** Decodes a non-streaming response into the same events as a stream of the same response. */
export function decodeResponse(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  of: CallContext,
  dialect: ChatDialect,
): void {
  const answer = parsed(body.toString("utf8"));
  if (isErrorObject(answer)) throwFault(answer);
  const reading = new ChunkReader(emit, traitsOf(dialect, of.model));
  reading.chunk({ ...answer, choices: asList(answer["choices"]).map(asChunk) });
  reading.end();
}

/**
 * Converts a choice of a non-streaming response into a chunk's choice. Calls get an index from
 * their position in the list.
 */
function asChunk(raw: Json): Json {
  const choice = asObject(raw);
  if (!choice) return raw;
  const message = asObject(choice["message"]) ?? {};
  const calls = asList(message["tool_calls"]);
  const delta: JsonObject =
    calls.length === 0
      ? message
      : { ...message, tool_calls: calls.map((call, index) => ({ ...asObject(call), index })) };
  return { ...choice, delta };
}

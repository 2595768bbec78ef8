import type { CallContext, Json, JsonObject, ModelEvent } from "../../../plugin/index.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { list, object } from "../../json.ts";
import { ChatReader } from "./reader.ts";
import { isError, parsed, throwFault } from "./fault.ts";

/** The same events as a stream of the same answer would give. */
export function whole(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  of: CallContext,
  dialect: ChatDialect,
): void {
  const answer = parsed(body.toString("utf8"));
  if (isError(answer)) throwFault(answer);
  const reading = new ChatReader(emit, traitsOf(dialect, of.model));
  reading.chunk({ ...answer, choices: list(answer["choices"]).map(asChunk) });
  reading.end();
}

/** A message is a delta that says everything; in a list, calls need no index. */
function asChunk(raw: Json): Json {
  const choice = object(raw);
  if (!choice) return raw;
  const message = object(choice["message"]) ?? {};
  const calls = list(message["tool_calls"]);
  const delta: JsonObject =
    calls.length === 0
      ? message
      : { ...message, tool_calls: calls.map((call, index) => ({ ...object(call), index })) };
  return { ...choice, delta };
}

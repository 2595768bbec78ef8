// Decodes a provider's response, in one piece or as a stream.
import { fail } from "../../../model/error.ts";
import type { CallContext, Json, JsonObject, ModelEvent, Decoder } from "../../../plugin/index.ts";
import { isErrorObject, parsed, throwFault, firstByte } from "./fault.ts";
import { ChunkReader } from "./reader.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { asList, asObject } from "../../json-values.ts";
import { createEventDecoder } from "../../sse/index.ts";

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

/**
 * Client half: decodes a stream of chunks into events. `reader.ts` interprets everything that
 * servers of this protocol send. A non-streaming response is a stream of one chunk.
 */
export function createDecoder(
  emit: (event: ModelEvent) => void,
  of: CallContext,
  dialect: ChatDialect,
): Decoder {
  const answer = new ChunkReader(emit, traitsOf(dialect, of.model));
  const events = createEventDecoder((name, data) => {
    if (answer.isDone) return;
    if (data === "[DONE]") return answer.end();
    const chunk = parsed(data);
    if (name === "error" || isErrorObject(chunk)) throwFault(chunk);
    answer.chunk(chunk);
  });
  let plain: Buffer[] | undefined;
  let begun = false;
  return {
    push(chunk) {
      if (!begun) {
        const first = firstByte(chunk);
        if (first === undefined) return;
        begun = true;
        if (first === 123 || first === 91) plain = [];
        if (first === 60) failNotAStream();
      }
      if (plain) plain.push(chunk);
      else events.push(chunk);
    },
    end() {
      // Some providers respond to a streaming request with one JSON text: an error or the whole
      // response.
      if (plain) return decodeResponse(Buffer.concat(plain), emit, of, dialect);
      events.end();
      answer.end();
    },
  };
}

const failNotAStream = (): never =>
  fail("upstream", "The provider returned a web page instead of a stream.", {
    code: "malformed_answer",
  });

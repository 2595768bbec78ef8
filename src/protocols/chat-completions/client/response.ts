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
  const alike = new ChunkTemplate();
  const events = createEventDecoder((name, data) => {
    if (answer.isDone) return;
    const words = name === "error" ? undefined : alike.matchContent(data);
    if (words !== undefined) return answer.contentText(words);
    if (data === "[DONE]") return answer.end();
    const chunk = parsed(data);
    if (name === "error" || isErrorObject(chunk)) throwFault(chunk);
    if (answer.chunk(chunk)) alike.learn(data);
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

// Reads repetitive chunks without parsing them. In a stream, most chunks are equal except for their
// text. If a chunk differs from a parsed chunk only in its text, it contains nothing else that is
// new.
//
// This is safe for two reasons. Outside the text, both chunks are equal and contain no escapes in
// which another key could hide. The text is between two quotes and contains no quote, no escape,
// and no character that is illegal in a string. Both chunks therefore parse to the same value
// except for that one string, which is the text verbatim.

const KEY = '"content"';

/**
 * Matches characters that represent themselves in a JSON string (RFC 8259): all except quotes,
 * backslashes, and control characters.
 */
const PLAIN = /^[ !#-[\]-\uffff]*$/;

/** Number of chunks without a match after which matching is disabled for the stream. */
const MAX_MISSES = 12;

export class ChunkTemplate {
  #before = "";
  #after = "";
  #misses = 0;

  /**
   * Returns the content text of a chunk that equals the learned chunk except for its text. Returns
   * undefined for any other chunk.
   */
  matchContent(data: string): string | undefined {
    const from = this.#before.length;
    const to = data.length - this.#after.length;
    if (from === 0 || from > to) return undefined;
    if (!data.startsWith(this.#before) || !data.endsWith(this.#after)) return undefined;
    const words = data.slice(from, to);
    if (!PLAIN.test(words)) return undefined;
    this.#misses = 0;
    return words;
  }

  /** Learns from a chunk that contains only content. */
  learn(data: string): void {
    if (this.#misses > MAX_MISSES) return;
    this.#before = "";
    if (++this.#misses > MAX_MISSES) return;
    const key = data.indexOf(KEY);
    if (key !== data.lastIndexOf(KEY) || data.includes("\\")) return;
    const from = data.indexOf('"', key + KEY.length) + 1;
    this.#before = data.slice(0, from);
    this.#after = data.slice(data.indexOf('"', from));
  }
}

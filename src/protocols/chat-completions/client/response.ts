// Decodes a provider's response, in one piece or as a stream.
import { fail, type ErrorKind, type Fault } from "../../../model/error.ts";
import type {
  CallContext,
  Json,
  JsonObject,
  ModelEvent,
  Decoder,
  HeadersIn,
} from "../../../plugin/index.ts";
import { ChunkReader } from "./reader.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { asList, asObject, asNumber } from "../../json-values.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { parseError, parseErrorBody } from "../../failure/parse-error.ts";

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

// Decodes a provider's error into the form of this protocol, and detects errors in responses with a
// success status.

/** Error codes for errors to which the provider assigns no code. */
const CODES: { readonly [K in ErrorKind]?: string } = {
  context_length: "context_length_exceeded",
  content_policy: "content_policy_violation",
  not_found: "model_not_found",
  upstream_auth: "upstream_auth",
  upstream_quota: "upstream_quota",
  rate_limited: "rate_limit_exceeded",
  overloaded: "overloaded",
};

const withCode = (parsedFault: Fault, otherwise?: string): Fault => {
  const code = parsedFault.code ?? CODES[parsedFault.kind] ?? otherwise;
  return code === undefined ? parsedFault : { ...parsedFault, code };
};

export const decodeFault = (status: number, headers: HeadersIn, body: Buffer): Fault =>
  withCode(parseError(status, headers, body));

/** Throws the error that a response with a success status contains. */
export function throwFault(answer: JsonObject): never {
  const { kind, message, ...more } = withCode(parseErrorBody(answer), "upstream_error");
  return fail(kind, message, more);
}

/** Whether a chunk or response is an error. */
export function isErrorObject(answer: JsonObject): boolean {
  if (answer["error"] !== undefined && answer["error"] !== null && answer["error"] !== false)
    return true;
  if (answer["object"] === "error") return true;
  // One vendor reports errors in its own envelope, with status 200.
  const base = asObject(answer["base_resp"]);
  return (asNumber(base?.["status_code"]) ?? 0) !== 0;
}

export function parsed(text: string): JsonObject {
  let value: unknown;
  try {
    value = parseShallow(text);
  } catch {
    value = undefined;
  }
  const chunk = asObject(value) ?? asObject(asList(value)[0]);
  return (
    chunk ??
    fail("upstream", "The provider's response contains invalid JSON.", {
      code: "malformed_answer",
    })
  );
}

/**
 * Returns the first non-whitespace byte. Backends send whitespace before a response to keep the
 * connection open.
 */
function firstByte(chunk: Buffer): number | undefined {
  for (const byte of chunk) if (byte > 32) return byte;
  return undefined;
}

// The gemini protocol, `generateContent` and its stream, of Google's API, Google's SDKs, and Gemini
// CLI. The model, the method, and the form of a stream are part of the URL. A frontend adds them to
// the body. Pure: no I/O, no clock, no state between two methods. May import: model, plugin
// (types), and the tools of neighboring protocols.
import { chatOperation } from "../../model/operations/chat-operation.ts";
import { imageOperation } from "../../model/operations/image-operation.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/gemini.request.json" with { type: "json" };
import type { CallContext, Path, Protocol, ServerHalf } from "../../plugin/protocol.ts";
import { traitsOf, type GeminiDialect } from "./dialect.ts";
import { parseError } from "../failure/parse-error.ts";
import { imageEventsOnly, request as draw } from "./client/image.ts";
import { capOutput, prepare } from "./client/prepare.ts";
import { decodeCount, createDecoder, decodeResponse } from "./client/response.ts";
import { GeminiReader, type GeminiReaderOptions } from "./client/reader.ts";
import { MAX_STOP_SEQUENCES, encodeRequest, modelPath } from "./client/request.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { tierOf } from "./client/usage-tap.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { conversationKey, decodeRequest as decoded } from "./server/request.ts";
import { encodeFault as refusal, head } from "./server/fault.ts";
import { createEncoder as encoder } from "./server/stream.ts";
import { encodeResponse as written } from "./server/response.ts";
import { GEMINI_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { mayReason } from "../cost-analysis.ts";
import { analyze } from "./analyze.ts";
import { COUNTED_TOOL_UNITS } from "./usage.ts";
import { ID, isJsonListStream, knowsField } from "./constants.ts";

export type { GeminiDialect, GeminiTraits } from "./dialect.ts";
export { geminiEmbedding, geminiSingleEmbedding } from "./embedding.ts";
export { embeddingTaskName } from "./embedding.ts";

export const gemini = (dialect: GeminiDialect = {}): Protocol<"chat"> => ({
  id: ID,
  operationSpec: chatOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: server({ ping: " ", pingPrefix: "data: " }),
  client: {
    paths: { generate, count: (of) => `/${modelPath(of.model)}:countTokens` },
    encodeRequest: (r, of) => encodeRequest(r, of, traitsOf(dialect, of.model)),
    knowsField,
    analyze,
    createDecoder: (emit, of, headers) =>
      createDecoder(new GeminiReader(emit, of, readerOptions(headers, false))),
    decodeResponse: (body, emit, of, headers) =>
      decodeResponse(body, new GeminiReader(emit, of, readerOptions(headers, false))),
    decodeFault: parseError,
    decodeCount,
    prepare,
    maxStopSequences: MAX_STOP_SEQUENCES,
    capOutput,
    mayHideReasoning: (out, of) =>
      mayReason(
        out,
        traitsOf(dialect, of.model).canDisableThinking === false ? [] : ["generationConfig"],
      ),
    countedToolUnits: COUNTED_TOOL_UNITS,
    createPassthrough,
  },
});

/**
 * The same protocol for streams without `alt=sse`, which are one growing JSON list. Whitespace is
 * allowed between two elements.
 */
export const geminiJsonList = (): Protocol<"chat"> => ({
  ...gemini(),
  server: server({ ping: "\n" }),
});

/**
 * Form of a ping: a space at the start of the next event. Google's SDKs count every event as a
 * chunk, and older SDKs fail on a comment. The Python SDK parses it as JSON. The JavaScript SDK
 * finds no event after it.
 */
type GeminiPing = Pick<ServerHalf<"chat">, "ping" | "pingPrefix">;

const server = (pings: GeminiPing): ServerHalf<"chat"> => ({
  schema: schema as unknown as JSONSchema,
  analyze,
  conversationKey,
  decodeRequest: (body) => decoded(body),
  contentType: ({ stream: streams, body }) =>
    streams && !isJsonListStream(body) ? "text/event-stream" : "application/json",
  createEncoder: encoder,
  encodeResponse: written,
  clientFieldName: (field, body) => clientFieldName(GEMINI_FIELD_NAMES, field, body),
  encodeFault: refusal,
  encodeCount: (tokens) => ({ totalTokens: tokens }),
  encodeHeaders: head,
  ...pings,
  // Two clients ignore an error in a stream and treat the end of the stream as the end of the
  // response.
  closeOnError: true,
});

/** The same protocol for image generation. */
export const geminiImage = (): Protocol<"image"> => ({
  id: `${ID}-image`,
  operationSpec: imageOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  client: {
    // Input images are parts of the request, so both actions use the same path.
    paths: { generate, edits: generate },
    encodeRequest: draw,
    knowsField,
    analyze,
    createDecoder: (emit, of, headers) =>
      createDecoder(new GeminiReader(imageEventsOnly(emit), of, readerOptions(headers, true))),
    decodeResponse: (body, emit, of, headers) =>
      decodeResponse(
        body,
        new GeminiReader(imageEventsOnly(emit), of, readerOptions(headers, true)),
      ),
    decodeFault: parseError,
    prepare,
  },
});

/**
 * Returns the path of a request. Streams use `alt=sse`, because without it a stream is one growing
 * JSON list.
 */
const generate: Path = (of: CallContext) =>
  `/${modelPath(of.model)}:${of.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;

const readerOptions = (headers: HeadersIn, draws: boolean): GeminiReaderOptions => ({
  isImageRequest: draws,
  tier: tierOf(headers),
});

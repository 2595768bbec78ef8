// The gemini protocol, `generateContent` and its stream: what Google's SDKs and Gemini CLI speak, and Google's API. The model, the
// verb and the form of a stream stand in the address: a frontend puts them beside the body. Pure: no I/O, no clock, nothing remembered between two methods. May import:
// model, plugin (types), and the tools its neighbours lend.
import { chatOperation } from "../../model/operations/chat-operation.ts";
import { imageOperation } from "../../model/operations/image-operation.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/gemini.request.json" with { type: "json" };
import type { CallContext, Path, Protocol, ServerHalf } from "../../plugin/protocol.ts";
import { traitsOf, type GeminiDialect } from "./dialect.ts";
import { parseError } from "../failure/parse-error.ts";
import { imageEventsOnly, request as draw } from "./client/image.ts";
import { capOutput } from "./client/cap-output.ts";
import { decodeCount } from "./client/count.ts";
import { prepare } from "./client/prepare.ts";
import { GeminiReader, type GeminiReaderOptions } from "./client/reader.ts";
import { MAX_STOP_SEQUENCES, encodeRequest } from "./client/request.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { tierOf } from "./client/usage-tap.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { conversationKey } from "./server/conversation.ts";
import { encodeFault as refusal, head } from "./server/fault.ts";
import { decodeRequest as decoded } from "./server/request.ts";
import { createEncoder as encoder } from "./server/stream.ts";
import { encodeResponse as written } from "./server/response.ts";
import { GEMINI_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { createDecoder } from "./client/stream.ts";
import { modelPath } from "./model-path.ts";
import { decodeResponse } from "./client/response.ts";
import { mayReason } from "../cost-analysis.ts";
import { analyze } from "./analyze.ts";
import { COUNTED_TOOL_UNITS } from "./tool-counts.ts";
import { ID, isJsonListStream, knowsField } from "./constants.ts";

export type { GeminiDialect, GeminiTraits } from "./dialect.ts";
export { geminiEmbedding, geminiSingleEmbedding } from "./embedding.ts";
export { embeddingTaskName } from "./embedding-tasks.ts";

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

/** The same, where a stream is one JSON list that grows: without `alt=sse`. Between two of its elements there may be space. */
export const geminiJsonList = (): Protocol<"chat"> => ({
  ...gemini(),
  server: server({ ping: "\n" }),
});

/**
 * A ping is a space at the beginning of the next event. Google's SDKs count every event as a chunk, and the older ones fail on a
 * comment: Python's reads it as JSON, JavaScript's finds no event after it.
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
  // Two clients read past an error in a stream, and take its end for the end of the answer.
  closeOnError: true,
});

/** The same wire, asked for pictures. */
export const geminiImage = (): Protocol<"image"> => ({
  id: `${ID}-image`,
  operationSpec: imageOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  client: {
    // Pictures that come along are parts of what is asked.
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

/** Without `alt=sse` a stream is one JSON list that grows. */
const generate: Path = (of: CallContext) =>
  `/${modelPath(of.model)}:${of.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;

const readerOptions = (headers: HeadersIn, draws: boolean): GeminiReaderOptions => ({
  isImageRequest: draws,
  tier: tierOf(headers),
});

// The transcription protocol, `POST /v1/audio/transcriptions` and `…/translations`, as used by
// OpenAI and compatible backends. The request is a form with a file. The response is JSON, plain
// text, captions, or events. Frontends use its server half, providers its client half. Pure: no
// I/O, no clock, and no state between two method calls. May import: model, plugin (types), and the
// shared tools of other protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/transcriptions.request.json" with { type: "json" };
import { transcriptOperation } from "../../model/operations/transcript-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { encodeFault } from "../responses/server/fault.ts";
import {
  prepare,
  createPassthrough,
  encodeRequest as requestTo,
  createDecoder as streamFrom,
  decodeResponse as wholeFrom,
} from "./client.ts";
import {
  type TranscriptDialect,
  ZDR_ALLOWED_FIELDS,
  analyze,
  formatIn,
  ID,
  isTextFormat,
  knowsField,
  TEXT,
} from "./spec.ts";
import { decodeRequest, createEncoder, encodeResponse } from "./server.ts";

export type { TranscriptDialect } from "./spec.ts";

export const transcriptions = (dialect: TranscriptDialect = {}): Protocol<"transcript"> => ({
  id: ID,
  operationSpec: transcriptOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    decodeRequest,
    contentType: ({ stream: streams, body }) =>
      streams
        ? "text/event-stream; charset=utf-8"
        : isTextFormat(formatIn(body))
          ? TEXT
          : "application/json",
    createEncoder,
    encodeResponse,
    encodeFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: ": ping\n\n",
  },
  client: {
    paths: {
      generate: "/audio/transcriptions",
      ...(dialect.translates !== false && { translations: "/audio/translations" }),
    },
    encodeRequest: requestTo,
    knowsField,
    analyze,
    createDecoder: streamFrom,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough: (sink, to, headers) =>
      createPassthrough(sink, to, headers, dialect.formats === false),
  },
});

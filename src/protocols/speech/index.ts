// The speech protocol, `POST /v1/audio/speech`, as used by OpenAI and compatible backends. The
// request is JSON, and the response is audio that is streamed as it arrives. Frontends use its
// server half, providers its client half. Pure: no I/O, no clock, and no state between two method
// calls. May import: model, plugin (types), and the shared tools of other protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/speech.request.json" with { type: "json" };
import { speechOperation } from "../../model/operations/speech-operation.ts";
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
import { type SpeechDialect, ZDR_ALLOWED_FIELDS, analyze, ID, knowsField, mimeOf } from "./spec.ts";
import { decodeRequest, createEncoder, encodeResponse } from "./server.ts";

export type { SpeechDialect } from "./spec.ts";

export const speech = (dialect: SpeechDialect = {}): Protocol<"speech"> => ({
  id: ID,
  operationSpec: speechOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    decodeRequest,
    contentType: ({ body }) => mimeOf(body),
    createEncoder,
    encodeResponse,
    encodeFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: "",
    // Truncated audio that ends cleanly would look complete to the client.
    closeOnError: true,
  },
  client: {
    paths: { generate: "/audio/speech" },
    encodeRequest: requestTo,
    knowsField,
    analyze,
    createDecoder: streamFrom,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough,
  },
});

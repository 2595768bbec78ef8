// The embeddings protocol, `POST /v1/embeddings`, of OpenAI and compatible backends. Frontends use
// its server half, providers its client half. Pure: no I/O, no clock, no state between two methods.
// May import: model, plugin (types), and the tools of neighboring protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/embeddings.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { encodeFault } from "../responses/server/fault.ts";
import {
  prepare,
  createPassthrough,
  encodeRequest as requestTo,
  failNotStreamed,
  emitEmbeddings,
  decodeResponse as wholeFrom,
} from "./client.ts";
import { type EmbeddingDialect, ZDR_ALLOWED_FIELDS, analyze, ID, knowsField } from "./spec.ts";
import { decodeRequest, failStreamed, encodeResponse } from "./server.ts";

export type { EmbeddingDialect } from "./spec.ts";
export {
  parseTask,
  taskNameFor,
  type TaskNames,
  reportForeignFields,
  requireTextInputs,
} from "./embedding-requests.ts";
export { emitEmbeddings, failNotStreamed };
export {
  validateEmbeddings,
  inputsIn,
  parseDataType,
  parseEmbedding,
  readExpectation,
  encodeEmbedding,
  type EmbeddingExpectation,
} from "./embedding-values.ts";
export {
  failStreamed,
  decodeRequest as decodeEmbeddingRequest,
  analyze as analyzeEmbeddingRequest,
};

export const embeddings = (dialect: EmbeddingDialect = {}): Protocol<"embedding"> => ({
  id: ID,
  operationSpec: embeddingOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    decodeRequest: (body) => decodeRequest(body),
    createEncoder: failStreamed,
    encodeResponse,
    encodeFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: "",
  },
  client: {
    paths: { generate: "/embeddings" },
    encodeRequest: requestTo,
    knowsField,
    analyze,
    createDecoder: failNotStreamed,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough,
  },
});

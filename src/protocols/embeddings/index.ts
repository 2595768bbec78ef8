// The embeddings protocol, `POST /v1/embeddings`, of OpenAI and compatible backends. Frontends use
// its server half, providers its client half. Pure: no I/O, no clock, no state between two methods.
// May import: model, plugin (types), and the tools of neighboring protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/embeddings.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { encodeRateLimitHeaders } from "../rate-limit-headers.ts";
import { encodeFault } from "../responses/server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { encodeRequest as requestTo } from "./client/request.ts";
import { failNotStreamed } from "./client/stream.ts";
import { emitEmbeddings, decodeResponse as wholeFrom } from "./client/response.ts";
import type { EmbeddingDialect } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { decodeRequest } from "./server/request.ts";
import { failStreamed } from "./server/stream.ts";
import { encodeResponse } from "./server/response.ts";
import { analyze } from "./analyze.ts";
import { ID, knowsField } from "./constants.ts";

export type { EmbeddingDialect } from "./dialect.ts";
export { parseTask, taskNameFor, type TaskNames } from "./embedding-tasks.ts";
export { emitEmbeddings, failNotStreamed };
export { reportForeignFields } from "./foreign-fields.ts";
export { requireTextInputs } from "./text-inputs.ts";
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

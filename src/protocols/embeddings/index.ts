// The embeddings protocol, `POST /v1/embeddings`: OpenAI's, and that of the hosts that are compatible with it. Frontends use its
// server half, providers its client half. Pure: no I/O, no clock, nothing remembered between two methods. May import: model,
// plugin (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/embeddings.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/embedding-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/failure.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../headers.ts";
import { encodeRateLimitHeaders } from "../limits.ts";
import { encodeFault } from "../responses/server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { createPassthrough } from "./client/relay.ts";
import { encodeRequest as requestTo } from "./client/request.ts";
import { failNotStreamed as notStreamed } from "./client/stream.ts";
import { emitEmbeddings, decodeResponse as wholeFrom } from "./client/whole.ts";
import type { EmbeddingDialect } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS } from "./reviewed.ts";
import { decodeRequest } from "./server/request.ts";
import { failStreamed } from "./server/stream.ts";
import { encodeResponse } from "./server/whole.ts";
import { analyze } from "./survey.ts";
import { ID, knowsField } from "./words.ts";

export type { EmbeddingDialect } from "./dialect.ts";
export { parseTask, taskNameFor, type TaskNames } from "./tasks.ts";
export { emitEmbeddings, notStreamed };
export { reportForeignFields } from "./foreign.ts";
export { requireTextInputs } from "./texts.ts";
export {
  validateEmbeddings,
  inputsIn,
  parseDataType,
  parseEmbedding,
  readExpectation,
  encodeEmbedding,
  type EmbeddingExpectation,
} from "./vectors.ts";
export { failStreamed as inOnePiece, decodeRequest as requestIn, analyze as surveyIn };

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
    createDecoder: notStreamed,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough,
  },
});

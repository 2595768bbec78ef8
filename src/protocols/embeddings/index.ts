import schema from "../../../schemas/embeddings.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failStreamed, operationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import * as server from "./server.ts";
import { analyze, type EmbeddingDialect, ID, knowsField, ZDR_ALLOWED_FIELDS } from "./spec.ts";

export { failNotStreamed } from "../operation-protocol.ts";
export { emitEmbeddings } from "./client.ts";
export {
  parseTask,
  reportForeignFields,
  requireTextInputs,
  taskNameFor,
  type TaskNames,
} from "./embedding-requests.ts";
export {
  validateEmbeddings,
  parseDataType,
  parseEmbedding,
  readExpectation,
  encodeEmbedding,
  type EmbeddingExpectation,
} from "./embedding-values.ts";
export { decodeRequest as decodeEmbeddingRequest } from "./server.ts";
export { analyze as analyzeEmbeddingRequest, type EmbeddingDialect, inputsIn } from "./spec.ts";

export const embeddings = (dialect: EmbeddingDialect = {}): Protocol<"embedding"> =>
  operationProtocol({
    id: ID,
    operationSpec: embeddingOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    analyze,
    dropFields: dialect.dropFields,
    server: {
      schema,
      decodeRequest: server.decodeRequest,
      createEncoder: failStreamed("Embeddings"),
      encodeResponse: server.encodeResponse,
    },
    client: {
      paths: { generate: "/embeddings" },
      encodeRequest: client.encodeRequest,
      knowsField,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, dialect),
      createPassthrough: client.createPassthrough,
    },
  });

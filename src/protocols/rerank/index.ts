import schema from "../../../schemas/rerank.request.json" with { type: "json" };
import { rerankOperation } from "../../model/operations/rerank-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failStreamed, operationProtocol, type OperationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import * as server from "./server.ts";
import {
  analyze,
  ID,
  knowsField,
  type RerankDialect,
  VOYAGE_ID,
  ZDR_ALLOWED_FIELDS,
} from "./spec.ts";

export type { RerankDialect } from "./spec.ts";
export { encodeFault as encodeRerankFault } from "./server.ts";

const SHARED = {
  operationSpec: rerankOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  analyze,
  server: {
    schema,
    decodeRequest: server.decodeRequest,
    createEncoder: failStreamed("Rankings"),
    encodeResponse: server.encodeResponse,
    encodeFault: server.encodeFault,
  },
  client: {
    paths: { generate: "/rerank" },
    encodeRequest: client.encodeRequest,
    knowsField,
    decodeResponse: client.decodeResponse,
  },
} satisfies Partial<OperationProtocol<"rerank">>;

export const rerank = (dialect: RerankDialect = {}): Protocol<"rerank"> =>
  operationProtocol({
    ...SHARED,
    id: ID,
    dropFields: dialect.dropFields,
    client: {
      ...SHARED.client,
      prepare: (out, of) => client.prepare(out, of, dialect),
      createPassthrough: client.createPassthrough,
    },
  });

/** Voyage's variant of the protocol. Responses are always encoded again, because they are short. */
export const voyageRerank = (): Protocol<"rerank"> =>
  operationProtocol({
    ...SHARED,
    id: VOYAGE_ID,
    server: { ...SHARED.server, encodeResponse: server.encodeVoyageResponse },
    client: { ...SHARED.client, encodeRequest: client.encodeVoyageRequest },
  });

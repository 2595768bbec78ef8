// The rerank protocol, `POST /v2/rerank` and `/v1/rerank`, as used by Cohere, Jina, and compatible
// servers. Also Voyage's variant, which differs in some names. Frontends use the server halves,
// providers the client halves. Pure: no I/O, no clock, and no state between two method calls. May
// import: model, plugin (types), and the shared tools of other protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/rerank.request.json" with { type: "json" };
import { rerankOperation } from "../../model/operations/rerank-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import {
  prepare,
  createPassthrough,
  encodeRequest as requestTo,
  encodeVoyageRequest,
  failNotStreamed,
  decodeResponse as wholeFrom,
} from "./client.ts";
import {
  type RerankDialect,
  ZDR_ALLOWED_FIELDS,
  analyze,
  ID,
  knowsField,
  VOYAGE_ID,
} from "./spec.ts";
import {
  encodeFault,
  decodeRequest,
  failStreamed,
  encodeVoyageResponse,
  encodeResponse,
} from "./server.ts";

export type { RerankDialect } from "./spec.ts";
export { encodeFault as encodeRerankFault } from "./server.ts";

const server = {
  schema: schema as unknown as JSONSchema,
  analyze,
  decodeRequest,
  createEncoder: failStreamed,
  encodeFault,
  encodeHeaders: encodeRateLimitHeaders,
  ping: "",
};
const client = {
  paths: { generate: "/rerank" },
  knowsField,
  analyze,
  createDecoder: failNotStreamed,
  decodeResponse: wholeFrom,
  decodeFault: parseError,
};

export const rerank = (dialect: RerankDialect = {}): Protocol<"rerank"> => ({
  id: ID,
  operationSpec: rerankOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: { ...server, encodeResponse },
  client: {
    ...client,
    encodeRequest: requestTo,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough,
  },
});

/** Voyage's variant of the protocol. Responses are always encoded again, because they are short. */
export const voyageRerank = (): Protocol<"rerank"> => ({
  id: VOYAGE_ID,
  operationSpec: rerankOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  server: { ...server, encodeResponse: encodeVoyageResponse },
  client: { ...client, encodeRequest: encodeVoyageRequest },
});

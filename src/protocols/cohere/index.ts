// tollgate/protocols/cohere: Cohere's own API, version 2, for operations that its compatibility API
// does not have. Pure: no I/O, no clock, no state between two methods. May import: model, plugin
// (types), and the tools of neighboring protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/cohere-embed.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failStreamed, failNotStreamed } from "../embeddings/index.ts";
import { parseError } from "../failure/parse-error.ts";
import { valueFields } from "../references/index.ts";
import { encodeRateLimitHeaders } from "../response-headers.ts";
import { encodeRerankFault } from "../rerank/index.ts";
import { encodeRequest as requestTo, decodeResponse } from "./embed.ts";
import { decodeRequest, analyze, encodeResponse as written, ID, knowsField } from "./server.ts";

/** The protocol of `POST /v2/embed`. */
export const cohereEmbeddings = (): Protocol<"embedding"> => ({
  id: ID,
  operationSpec: embeddingOperation,
  zdrAllowedFields: [
    ["which model", valueFields("model")],
    ["texts to embed and their purpose", valueFields("texts input_type")],
    ["format of the embeddings", valueFields("embedding_types output_dimension")],
    ["handling of texts that are too long", valueFields("truncate")],
  ],
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    decodeRequest: (body) => decodeRequest(body),
    createEncoder: failStreamed,
    encodeResponse: written,
    encodeFault: encodeRerankFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: "",
  },
  client: {
    paths: { generate: "/embed" },
    encodeRequest: requestTo,
    knowsField,
    createDecoder: failNotStreamed,
    decodeResponse,
    decodeFault: parseError,
  },
});

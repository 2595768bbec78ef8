import schema from "../../../schemas/cohere-embed.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failStreamed, operationProtocol } from "../operation-protocol.ts";
import { valueFields } from "../references/index.ts";
import { encodeRerankFault } from "../rerank/index.ts";
import { encodeRequest, decodeResponse } from "./embed.ts";
import { decodeRequest, analyze, encodeResponse, ID, knowsField } from "./server.ts";

/** The protocol of `POST /v2/embed`. */
export const cohereEmbeddings = (): Protocol<"embedding"> =>
  operationProtocol({
    id: ID,
    operationSpec: embeddingOperation,
    zdrAllowedFields: [
      ["which model", valueFields("model")],
      ["texts to embed and their purpose", valueFields("texts input_type")],
      ["format of the embeddings", valueFields("embedding_types output_dimension")],
      ["handling of texts that are too long", valueFields("truncate")],
    ],
    analyze,
    server: {
      schema,
      decodeRequest,
      createEncoder: failStreamed("Embeddings"),
      encodeResponse,
      encodeFault: encodeRerankFault,
    },
    client: { paths: { generate: "/embed" }, encodeRequest, knowsField, decodeResponse },
  });

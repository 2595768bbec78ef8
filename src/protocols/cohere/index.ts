import schema from "../../../schemas/cohere-embed.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { Protocol, CallContext } from "../../plugin/protocol.ts";
import { failStreamed, operationProtocol } from "../operation-protocol.ts";
import { valueFields } from "../references/index.ts";
import { encodeRerankFault } from "../rerank/index.ts";
import { decodeRequest, analyze, encodeResponse, ID, knowsField, cohereFields } from "./server.ts";
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { EmbeddingRequest, EmbeddingDataType } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import {
  emitEmbeddings,
  reportForeignFields,
  requireTextInputs,
  parseEmbedding,
  taskNameFor,
  type TaskNames,
} from "../embeddings/index.ts";
import { asCount, asList, asObject, parseObject, omitUndefined, asText } from "../json-values.ts";

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

// Client half of Cohere's `POST /v2/embed`.

const TASK_NAMES: TaskNames = {
  query: "search_query",
  document: "search_document",
  classification: "classification",
  clustering: "clustering",
};

function encodeRequest(r: EmbeddingRequest, of: CallContext): Body {
  reportForeignFields(r, of, ID);
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  return omitUndefined({
    model: of.model,
    texts: requireTextInputs(r, of),
    input_type: inputType(r, of),
    embedding_types: [r.dtype ?? "float"],
    output_dimension: r.dimensions,
    truncate: r.truncate?.toUpperCase(),
    ...cohereFields(r.ext),
  });
}

/**
 * Returns the input type, which Cohere requires. Default: `search_document`, because stored texts
 * are embedded more often than queries.
 */
function inputType(r: EmbeddingRequest, of: CallContext): string {
  const word = taskNameFor(r.task, TASK_NAMES, of, "input_type");
  if (word === undefined && r.task === undefined)
    of.reportLoss("input_type", "approximated", "task_defaulted");
  return word ?? "search_document";
}

const TYPES: readonly EmbeddingDataType[] = ["float", "int8", "uint8", "binary", "ubinary"];

/**
 * Decodes a response. It contains one list of vectors for each requested type, and the gateway
 * requests one. Older responses contain the list without a type.
 */
function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parseObject(body.toString("utf8"));
  const embeddings = answer?.["embeddings"];
  const dtype = TYPES.find((type) => Array.isArray(asObject(embeddings)?.[type])) ?? "float";
  const vectors = Array.isArray(embeddings)
    ? (embeddings as readonly Json[])
    : asObject(embeddings)?.[dtype];
  if (!answer || !Array.isArray(vectors))
    return fail("upstream", "The provider returned no embeddings.", { code: "bad_answer" });
  emitEmbeddings(emit, {
    id: asText(answer["id"]),
    vectors: asList(vectors).map((one) => {
      const vector = parseEmbedding(one);
      return vector && { ...vector, dtype };
    }),
    usage: parseUsage(answer),
  });
}

function parseUsage({ meta }: JsonObject) {
  const input = asCount(asObject(asObject(meta)?.["billed_units"])?.["input_tokens"]);
  return input === undefined ? {} : { input };
}

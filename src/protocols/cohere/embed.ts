// Client half of Cohere's `POST /v2/embed`.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { EmbeddingRequest, EmbeddingDataType } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { CallContext } from "../../plugin/protocol.ts";
import {
  emitEmbeddings,
  reportForeignFields,
  requireTextInputs,
  parseEmbedding,
  taskNameFor,
  type TaskNames,
} from "../embeddings/index.ts";
import { cohereFields, ID } from "./server.ts";
import { asCount, asList, asObject, parseObject, omitUndefined, asText } from "../json-values.ts";

const TASK_NAMES: TaskNames = {
  query: "search_query",
  document: "search_document",
  classification: "classification",
  clustering: "clustering",
};

export function encodeRequest(r: EmbeddingRequest, of: CallContext): Body {
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
export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
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

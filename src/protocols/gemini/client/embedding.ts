// Vectors by the same API: one request that holds a request for each text. The answer counts nothing on most models.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { EmbeddingRequest } from "../../../model/request.ts";
import type { Body, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import {
  emitVectors,
  textsOnly,
  vectorOf,
  wordFor,
  type TaskWords,
} from "../../embeddings/index.ts";
import { throwFailure } from "../../failure/failure.ts";
import { list, number, object, parsed, present } from "../../json.ts";
import { nameOf } from "./request.ts";

const WORDS: TaskWords = {
  query: "RETRIEVAL_QUERY",
  document: "RETRIEVAL_DOCUMENT",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING",
  similarity: "SEMANTIC_SIMILARITY",
  question: "QUESTION_ANSWERING",
  fact: "FACT_VERIFICATION",
  code_query: "CODE_RETRIEVAL_QUERY",
};

/** One name that it does not know, and this API refuses the request: what no codec knows stays behind. */
export const knows = (): boolean => true;

export function request(r: EmbeddingRequest, of: CallContext): Body {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} makes vectors of floats.`, { param: "output_dtype" });
  if (r.truncate !== undefined) of.lose("truncate", "dropped");
  if (r.user !== undefined) of.lose("user", "dropped");
  const taskType = wordFor(r.task, WORDS, of, "input_type");
  return {
    requests: textsOnly(r, of).map((text) =>
      present({
        model: nameOf(of.model),
        content: { parts: [{ text }] },
        taskType,
        outputDimensionality: r.dimensions,
      }),
    ),
  };
}

export function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parsed(body.toString("utf8"));
  const vectors = answer?.["embeddings"];
  if (answer?.["error"]) throwFailure(answer);
  if (!answer || !Array.isArray(vectors))
    return fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });
  emitVectors(emit, {
    vectors: list(vectors).map((one) => vectorOf(object(one)?.["values"])),
    usage: counted(object(answer["usageMetadata"])),
  });
}

function counted(said: JsonObject | undefined) {
  const input = number(said?.["promptTokenCount"]);
  return input === undefined ? {} : { input };
}

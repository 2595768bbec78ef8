// Vectors by Cohere's own wire.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { EmbeddingRequest, VectorType } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { CallContext } from "../../plugin/protocol.ts";
import {
  emitVectors,
  foreign,
  textsOnly,
  vectorOf,
  wordFor,
  type TaskWords,
} from "../embeddings/index.ts";
import { own } from "./server.ts";
import { ID } from "./words.ts";
import { count, list, object, parsed, present, text } from "../json.ts";

const WORDS: TaskWords = {
  query: "search_query",
  document: "search_document",
  classification: "classification",
  clustering: "clustering",
};

export function request(r: EmbeddingRequest, of: CallContext): Body {
  foreign(r, of, ID);
  if (r.user !== undefined) of.lose("user", "dropped");
  return present({
    model: of.model,
    texts: textsOnly(r, of),
    input_type: inputType(r, of),
    embedding_types: [r.dtype ?? "float"],
    output_dimension: r.dimensions,
    truncate: r.truncate?.toUpperCase(),
    ...own(r.ext),
  });
}

/** There is no asking without it. What is stored is asked for more often than what it is looked up with. */
function inputType(r: EmbeddingRequest, of: CallContext): string {
  const word = wordFor(r.task, WORDS, of, "input_type");
  if (word === undefined && r.task === undefined)
    of.lose("input_type", "approximated", "task_defaulted");
  return word ?? "search_document";
}

const TYPES: readonly VectorType[] = ["float", "int8", "uint8", "binary", "ubinary"];

/** One list of vectors for each type that was asked for, which is one; or, as it was before there were types, the list alone. */
export function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parsed(body.toString("utf8"));
  const said = answer?.["embeddings"];
  const dtype = TYPES.find((type) => Array.isArray(object(said)?.[type])) ?? "float";
  const vectors = Array.isArray(said) ? (said as readonly Json[]) : object(said)?.[dtype];
  if (!answer || !Array.isArray(vectors))
    return fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });
  emitVectors(emit, {
    id: text(answer["id"]),
    vectors: list(vectors).map((one) => {
      const vector = vectorOf(one);
      return vector && { ...vector, dtype };
    }),
    usage: billed(answer),
  });
}

function billed({ meta }: JsonObject) {
  const input = count(object(object(meta)?.["billed_units"])?.["input_tokens"]);
  return input === undefined ? {} : { input };
}

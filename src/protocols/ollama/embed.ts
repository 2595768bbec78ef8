// Vectors by Ollama's own wire, which counts what it read and says when it may not cut.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { EmbeddingRequest } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import type { CallContext } from "../../plugin/protocol.ts";
import { emitVectors, foreign, textsOnly, vectorOf } from "../embeddings/index.ts";
import { throwFailure } from "../failure/failure.ts";
import { count, list, parsed, present } from "../json.ts";

const KNOWN: ReadonlySet<string> = new Set(["model", "input", "dimensions", "truncate"]);
export const knows = (field: string): boolean => KNOWN.has(field);

export function request(r: EmbeddingRequest, of: CallContext): Body {
  foreign(r, of);
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} makes vectors of floats.`, { param: "output_dtype" });
  if (r.task !== undefined) of.lose("input_type", "dropped");
  if (r.user !== undefined) of.lose("user", "dropped");
  if (r.truncate === "start") of.lose("truncate", "approximated", "truncated_at_the_end");
  return present({
    model: of.model,
    input: textsOnly(r, of),
    dimensions: r.dimensions,
    truncate: r.truncate && r.truncate !== "none",
  });
}

export function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parsed(body.toString("utf8"));
  if (answer?.["error"]) throwFailure(answer);
  const vectors = answer?.["embeddings"];
  if (!answer || !Array.isArray(vectors))
    return fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });
  const input = count(answer["prompt_eval_count"]);
  emitVectors(emit, {
    vectors: list(vectors).map((one) => vectorOf(one)),
    usage: input === undefined ? {} : { input },
  });
}

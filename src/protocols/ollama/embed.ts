// Embeddings in Ollama's own API. It reports input tokens and has an option that forbids
// truncation.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { EmbeddingRequest } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import type { CallContext } from "../../plugin/protocol.ts";
import {
  emitEmbeddings,
  reportForeignFields,
  requireTextInputs,
  parseEmbedding,
} from "../embeddings/index.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import { asCount, asList, parseObject, omitUndefined } from "../json-values.ts";

const KNOWN: ReadonlySet<string> = new Set(["model", "input", "dimensions", "truncate"]);
export const knowsField = (field: string): boolean => KNOWN.has(field);

export function encodeRequest(r: EmbeddingRequest, of: CallContext): Body {
  reportForeignFields(r, of);
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} supports only float embeddings.`, { param: "output_dtype" });
  if (r.task !== undefined) of.reportLoss("input_type", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  if (r.truncate === "start") of.reportLoss("truncate", "approximated", "truncated_at_the_end");
  return omitUndefined({
    model: of.model,
    input: requireTextInputs(r, of),
    dimensions: r.dimensions,
    truncate: r.truncate && r.truncate !== "none",
  });
}

export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parseObject(body.toString("utf8"));
  if (answer?.["error"]) throwParsedError(answer);
  const vectors = answer?.["embeddings"];
  if (!answer || !Array.isArray(vectors))
    return fail("upstream", "The provider returned no embeddings.", { code: "bad_answer" });
  const input = asCount(answer["prompt_eval_count"]);
  emitEmbeddings(emit, {
    vectors: asList(vectors).map((one) => parseEmbedding(one)),
    usage: input === undefined ? {} : { input },
  });
}

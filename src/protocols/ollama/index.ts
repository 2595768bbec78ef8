// Ollama's own API, for operations that its OpenAI-compatible API does not cover. Contains client
// halves only. Pure: no I/O, no clock, and no state between two method calls. May import: model,
// plugin (types), and the shared tools of other protocols.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import { completionOperation } from "../../model/operations/completion-operation.ts";
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { EmbeddingRequest } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import type { Protocol, CallContext } from "../../plugin/protocol.ts";
import {
  emitEmbeddings,
  reportForeignFields,
  requireTextInputs,
  parseEmbedding,
} from "../embeddings/index.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import { asCount, asList, parseObject, omitUndefined } from "../json-values.ts";
import { operationProtocol } from "../operation-protocol.ts";
import { valueFields } from "../references/index.ts";
import {
  capGenerateOutput,
  encodeGenerateRequest,
  createGenerateDecoder,
  analyzeGenerate,
  decodeGenerateResponse,
  knowsGenerateField,
} from "./generate.ts";

/** The embeddings protocol, `POST /api/embed`. */
export const ollamaEmbeddings = (): Protocol<"embedding"> =>
  operationProtocol({
    id: "ollama-embed",
    operationSpec: embeddingOperation,
    zdrAllowedFields: [
      ["which model", valueFields("model")],
      ["inputs to embed", valueFields("input")],
      ["format of the embeddings", valueFields("dimensions")],
      ["handling of texts that are too long", valueFields("truncate")],
    ],
    client: {
      paths: { generate: "/api/embed" },
      encodeRequest,
      knowsField,
      decodeResponse,
    },
  });

/**
 * The completion protocol, `POST /api/generate`. It fills in the middle if the request has a
 * suffix.
 */
export const ollamaCompletions = (): Protocol<"completion"> =>
  operationProtocol({
    id: "ollama-generate",
    operationSpec: completionOperation,
    analyze: analyzeGenerate,
    zdrAllowedFields: [
      ["which model", valueFields("model")],
      ["text to continue and its suffix", valueFields("prompt suffix stream")],
      [
        "parameters of a single response",
        { options: valueFields("num_predict stop temperature top_p seed") },
      ],
    ],
    client: {
      paths: { generate: "/api/generate" },
      encodeRequest: encodeGenerateRequest,
      knowsField: knowsGenerateField,
      createDecoder: createGenerateDecoder,
      decodeResponse: decodeGenerateResponse,
      capOutput: capGenerateOutput,
      mayHideReasoning: () => false,
    },
  });

/**
 * Embeddings in Ollama's own API. It reports input tokens and has an option that forbids
 * truncation.
 */
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

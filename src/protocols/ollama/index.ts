// Ollama's own API, for operations that its OpenAI-compatible API does not cover. Contains client
// halves only. Pure: no I/O, no clock, and no state between two method calls. May import: model,
// plugin (types), and the shared tools of other protocols.
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import { completionOperation } from "../../model/operations/completion-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failNotStreamed } from "../embeddings/index.ts";
import { parseError } from "../failure/parse-error.ts";
import { valueFields } from "../references/index.ts";
import { knowsField, encodeRequest, decodeResponse } from "./embed.ts";
import {
  capGenerateOutput,
  encodeGenerateRequest,
  createGenerateDecoder,
  analyzeGenerate,
  decodeGenerateResponse,
  knowsGenerateField,
} from "./generate.ts";

/** The embeddings protocol, `POST /api/embed`. */
export const ollamaEmbeddings = (): Protocol<"embedding"> => ({
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
    createDecoder: failNotStreamed,
    decodeResponse,
    decodeFault: parseError,
  },
});

/**
 * The completion protocol, `POST /api/generate`. It fills in the middle if the request has a
 * suffix.
 */
export const ollamaCompletions = (): Protocol<"completion"> => ({
  id: "ollama-generate",
  operationSpec: completionOperation,
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
    analyze: analyzeGenerate,
    createDecoder: createGenerateDecoder,
    decodeResponse: decodeGenerateResponse,
    decodeFault: parseError,
    capOutput: capGenerateOutput,
    mayHideReasoning: () => false,
  },
});

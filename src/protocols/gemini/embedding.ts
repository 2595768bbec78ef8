// The embedding methods of this API, `batchEmbedContents` and `embedContent`. They are two
// protocols, because their responses differ.
import type { JSONSchema } from "json-schema-to-ts";
import one from "../../../schemas/gemini-single-embedding.request.json" with { type: "json" };
import many from "../../../schemas/gemini-embedding.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { Protocol, ServerHalf } from "../../plugin/protocol.ts";
import { failNotStreamed, failStreamed } from "../operation-protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { valueFields } from "../references/index.ts";
import { GEMINI_EMBEDDING_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import * as asked from "./client/embedding.ts";
import { prepareVectors } from "./client/prepare.ts";
import { allowBothSpellings } from "./normalize-field-names.ts";
import { modelPath } from "./client/request.ts";
import * as told from "./server/embedding.ts";
import { encodeFault, head } from "./server/fault.ts";

const SCHEMAS = {
  ...valueFields("model taskType title outputDimensionality"),
  content: { role: "plain", parts: valueFields("text") },
} as const;
const allowlistFor = (fields: FieldAllowlist[number][1]): FieldAllowlist =>
  allowBothSpellings([
    ["inputs to embed, their purpose, and the format of the embeddings", fields],
  ]);

/** The protocol of `batchEmbedContents`, for one text or several. */
export const geminiEmbedding = (): Protocol<"embedding"> => ({
  id: "gemini-embedding",
  operationSpec: embeddingOperation,
  zdrAllowedFields: allowlistFor({ ...valueFields("model"), requests: SCHEMAS }),
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: server(many, told.encodeEmbeddingList),
  client: {
    paths: { generate: (of) => `/${modelPath(of.model)}:batchEmbedContents` },
    encodeRequest: asked.encodeRequests,
    ...CLIENT,
    decodeResponse: asked.createResponseDecoder(asked.parseEmbeddingList),
    createPassthrough: asked.createPassthrough(asked.parseEmbeddingList),
  },
});

/** The protocol of `embedContent`, for a single content. */
export const geminiSingleEmbedding = (): Protocol<"embedding"> => ({
  id: "gemini-single-embedding",
  operationSpec: embeddingOperation,
  zdrAllowedFields: allowlistFor(SCHEMAS),
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: server(one, told.encodeSingleEmbedding),
  client: {
    paths: { generate: (of) => `/${modelPath(of.model)}:embedContent` },
    encodeRequest: asked.encodeRequest,
    ...CLIENT,
    decodeResponse: asked.createResponseDecoder(asked.parseSingleEmbedding),
    createPassthrough: asked.createPassthrough(asked.parseSingleEmbedding),
  },
});

const CLIENT = {
  knowsField: asked.knowsField,
  analyze: told.analyze,
  createDecoder: failNotStreamed,
  decodeFault: parseError,
  prepare: prepareVectors,
} as const;

const server = (
  schema: object,
  whole: ServerHalf<"embedding">["encodeResponse"],
): ServerHalf<"embedding"> => ({
  schema: schema as unknown as JSONSchema,
  analyze: told.analyze,
  decodeRequest: (body) => told.decodeRequest(body),
  createEncoder: failStreamed("Embeddings", "alt"),
  encodeResponse: whole,
  clientFieldName: (field, body) => clientFieldName(GEMINI_EMBEDDING_FIELD_NAMES, field, body),
  encodeFault,
  encodeHeaders: head,
  ping: "",
});

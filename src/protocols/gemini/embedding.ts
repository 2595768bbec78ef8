// The embedding methods of this API, `batchEmbedContents` and `embedContent`. They are two
// protocols, because their responses differ.
import type { JSONSchema } from "json-schema-to-ts";
import one from "../../../schemas/gemini-single-embedding.request.json" with { type: "json" };
import many from "../../../schemas/gemini-embedding.request.json" with { type: "json" };
import { embeddingOperation } from "../../model/operations/embedding-operation.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type {
  Protocol,
  ServerHalf,
  ResponseContext,
  CallContext,
  PassthroughStream,
  PassthroughSink,
  LossReporter,
} from "../../plugin/protocol.ts";
import { failNotStreamed, failStreamed } from "../operation-protocol.ts";
import { parseError, throwParsedError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { valueFields, referencedFeatures, findReferences } from "../references/index.ts";
import { GEMINI_EMBEDDING_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { prepareVectors } from "./client/prepare.ts";
import { allowBothSpellings, normalizeEmbeddingBody } from "./normalize-field-names.ts";
import { modelPath, nameOf } from "./client/request.ts";
import { encodeFault, head, faultBody } from "./server/fault.ts";
import { fail } from "../../model/error.ts";
import type { ModelEvent, ModelResponse } from "../../model/event.ts";
import type { EmbeddingRequest, Embedding } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, JsonObject, Json } from "../../model/values.ts";
import {
  emitEmbeddings,
  requireTextInputs,
  parseEmbedding,
  parseTask,
  encodeEmbedding,
  validateEmbeddings,
  taskNameFor,
  type TaskNames,
} from "../embeddings/index.ts";
import {
  asCount,
  asList,
  asObject,
  parseObject,
  omitUndefined,
  asNumber,
  asObjects,
  asText,
} from "../json-values.ts";
import { createResponsePassthrough } from "../passthrough.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";
import { needs } from "./analyze.ts";

// Server half of the embedding methods, for models of any provider.

function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const features = referencedFeatures(named);
  const media = { count: 0, bytes: 0 };
  for (const one of embeddingRequestsIn(body))
    for (const part of asObjects(asObject(one["content"])?.["parts"])) needs(part, media, features);
  const { n: _, ...spent } = analyzeCost(body, named, { maxOutput: undefined });
  return {
    features: [...features],
    references: named,
    ...spent,
    ...(media.count > 0 && { media }),
  };
}

/**
 * Fields that must be the same for all texts of a request, because other vendors have one value per
 * request.
 */
const SHARED_FIELDS = ["taskType", "outputDimensionality"] as const;
/** Top-level fields of a request with a list. */
const TOP_LEVEL_FIELDS: ReadonlySet<string> = new Set(["model", "requests"]);
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...TOP_LEVEL_FIELDS,
  ...SHARED_FIELDS,
  "content",
  "title",
]);

function decodeRequest(body: Body): EmbeddingRequest {
  const fields = normalizeEmbeddingBody(body) as JsonObject;
  const asks = embeddingRequestsIn(body);
  const [first = {}] = asks;
  for (const [i, one] of asks.entries())
    for (const field of SHARED_FIELDS)
      if (one[field] !== first[field])
        fail(
          "unsupported",
          `${field} must be the same for all texts if the model is not from Google.`,
          {
            param: `requests[${i}].${field}`,
            code: "unsupported_value",
          },
        );
  const several = fields["requests"] !== undefined;
  const known = several ? TOP_LEVEL_FIELDS : KNOWN_FIELDS;
  const own = asks.map((one) => ownOf(one, several));
  return omitUndefined({
    operation: "embedding" as const,
    model: asText(body["model"]) ?? "",
    stream: false,
    inputs: asks.map(({ content }, i) =>
      contentText(content, several ? `requests[${i}].content` : "content"),
    ),
    dimensions: asNumber(first["outputDimensionality"]),
    task: parseTask(first["taskType"]),
    rest: unknownTopLevelFields(fields, (name) => known.has(name)),
    ext: own.some((one) => Object.keys(one).length > 0) ? { [EMBEDDING_EXT]: own } : {},
  });
}

/**
 * Returns the fields of a text that only this protocol has: a title, or an unknown task. For a
 * request in a list, all its other fields are included.
 */
function ownOf(one: JsonObject, several: boolean): JsonObject {
  const { content: _content, model: _model, outputDimensionality: _width, taskType, ...rest } = one;
  const task = parseTask(taskType) === undefined ? { taskType } : {};
  return omitUndefined({ ...(several ? rest : { title: rest["title"] }), ...task }) as JsonObject;
}

/** Returns the text of a content. All parts of a content become one vector. */
function contentText(content: unknown, at: string): string {
  return asObjects(asObject(content)?.["parts"])
    .map(
      (part) =>
        asText(part["text"]) ??
        fail("unsupported", "Only Google's models support embeddings of content other than text.", {
          param: `${at}.parts`,
          code: "unsupported_input",
        }),
    )
    .join("\n");
}

const encodeEmbeddingList = (
  answer: ModelResponse,
  to: Pick<ResponseContext, "body">,
): JsonObject => ({
  embeddings: vectorsOf(answer, to),
  ...countsOf(answer),
});

const encodeSingleEmbedding = (
  answer: ModelResponse,
  to: Pick<ResponseContext, "body">,
): JsonObject => ({
  embedding: vectorsOf(answer, to)[0],
  ...countsOf(answer),
});

const vectorsOf = (
  answer: ModelResponse,
  { body }: Pick<ResponseContext, "body">,
): readonly Json[] =>
  validateEmbeddingsFor(body, (answer.items ?? []) as readonly Embedding[]).map((vector) => ({
    values: encodeEmbedding(vector, FLOATS) as Json,
  }));

const FLOATS = { count: 1, dimensions: undefined, dtype: "float", base64: false } as const;

function countsOf({ usage: { input } }: ModelResponse): JsonObject {
  return input ? { usageMetadata: { promptTokenCount: input, totalTokenCount: input } } : {};
}

// Client half of the embedding methods. A body contains one request per text, or a single request.
// Most models report no usage.

/**
 * Always true, so that unknown fields are not sent. This API rejects a request with one unknown
 * field.
 */
const knowsField = (): boolean => true;

const encodeRequests = (r: EmbeddingRequest, of: CallContext): Body => ({
  requests: each(r, of).map((one) => ({ model: nameOf(of.model), ...one })),
});

function encodeRequest(r: EmbeddingRequest, of: CallContext): Body {
  const [one, ...others] = each(r, of);
  if (!one || others.length > 0)
    fail("unsupported", `${of.model} supports only one text per request here.`, { param: "input" });
  return one!;
}

function each(r: EmbeddingRequest, of: CallContext): readonly JsonObject[] {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} supports only float embeddings.`, { param: "output_dtype" });
  if (r.truncate !== undefined) of.reportLoss("truncate", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  const taskType = embeddingTaskName(r, of);
  // Fields of each text that only this protocol has.
  const own = asList(r.ext[EMBEDDING_EXT]);
  return requireTextInputs(r, of).map((text, i) =>
    omitUndefined({
      content: { parts: [{ text }] },
      taskType,
      outputDimensionality: r.dimensions,
      ...asObject(own[i]),
    }),
  );
}

type Read = (answer: JsonObject) => readonly (Embedding | undefined)[];
const valuesIn = (value: unknown): Embedding | undefined =>
  parseEmbedding(asObject(value)?.["values"]);

/** Reads the vectors of a `batchEmbedContents` response. */
const parseEmbeddingList: Read = ({ embeddings }) =>
  Array.isArray(embeddings) ? asList(embeddings).map(valuesIn) : failNoEmbedding();

/** Reads the vector of an `embedContent` response. */
const parseSingleEmbedding: Read = ({ embedding }) => [
  asObject(embedding) ? valuesIn(embedding) : failNoEmbedding(),
];

const failNoEmbedding = (): never =>
  fail("upstream", "The provider returned no embeddings.", { code: "bad_answer" });

const createResponseDecoder =
  (read: Read) =>
  (body: Buffer, emit: (event: ModelEvent) => void): void => {
    const answer = answerIn(body);
    emitEmbeddings(emit, { vectors: read(answer), usage: counted(answer) });
  };

/** Forwards responses in passthrough mode. The response is validated and forwarded unchanged. */
const createPassthrough =
  (read: Read) =>
  (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
    createResponsePassthrough(
      sink,
      (body) => {
        const answer = answerIn(body);
        // The input is billed even if the vectors are invalid, so usage is reported before
        // validation.
        sink.reportUsage({ type: "usage", usage: counted(answer) });
        validateEmbeddingsFor(to.body, read(answer));
        sink.reportContent();
        sink.reportFinish("stop");
        sink.write(body);
      },
      faultBody,
    );

function answerIn(body: Buffer): JsonObject {
  const answer = parseObject(body.toString("utf8"));
  if (answer?.["error"]) throwParsedError(answer);
  return answer ?? failNoEmbedding();
}

function counted({ usageMetadata }: JsonObject): Usage {
  const input = asCount(asObject(usageMetadata)?.["promptTokenCount"]);
  return input === undefined ? {} : { input };
}

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
  server: server(many, encodeEmbeddingList),
  client: {
    paths: { generate: (of) => `/${modelPath(of.model)}:batchEmbedContents` },
    encodeRequest: encodeRequests,
    ...CLIENT,
    decodeResponse: createResponseDecoder(parseEmbeddingList),
    createPassthrough: createPassthrough(parseEmbeddingList),
  },
});

/** The protocol of `embedContent`, for a single content. */
export const geminiSingleEmbedding = (): Protocol<"embedding"> => ({
  id: "gemini-single-embedding",
  operationSpec: embeddingOperation,
  zdrAllowedFields: allowlistFor(SCHEMAS),
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: server(one, encodeSingleEmbedding),
  client: {
    paths: { generate: (of) => `/${modelPath(of.model)}:embedContent` },
    encodeRequest: encodeRequest,
    ...CLIENT,
    decodeResponse: createResponseDecoder(parseSingleEmbedding),
    createPassthrough: createPassthrough(parseSingleEmbedding),
  },
});

const CLIENT = {
  knowsField: knowsField,
  analyze: analyze,
  createDecoder: failNotStreamed,
  decodeFault: parseError,
  prepare: prepareVectors,
} as const;

const server = (
  schema: object,
  whole: ServerHalf<"embedding">["encodeResponse"],
): ServerHalf<"embedding"> => ({
  schema: schema as unknown as JSONSchema,
  analyze: analyze,
  decodeRequest: (body) => decodeRequest(body),
  createEncoder: failStreamed("Embeddings", "alt"),
  encodeResponse: whole,
  clientFieldName: (field, body) => clientFieldName(GEMINI_EMBEDDING_FIELD_NAMES, field, body),
  encodeFault,
  encodeHeaders: head,
  ping: "",
});

// Reads embedding requests for both halves. A body contains a list of requests with one content
// each, or a single request.

/** Key in `ext` for fields of each text that only this protocol has. */
const EMBEDDING_EXT = "gemini-embedding";

/** Returns the requests, one for each vector. */
function embeddingRequestsIn(body: Body): readonly JsonObject[] {
  const fields = normalizeEmbeddingBody(body) as JsonObject;
  return fields["requests"] === undefined ? [fields] : asObjects(fields["requests"]);
}

/**
 * Returns the vectors of a response. Throws if vectors are missing or do not have the requested
 * dimensions.
 */
function validateEmbeddingsFor(
  body: Body,
  vectors: readonly (Embedding | undefined)[],
): readonly Embedding[] {
  const widths = embeddingRequestsIn(body).map((one) => asNumber(one["outputDimensionality"]));
  const wish = { count: widths.length, dtype: "float", base64: false } as const;
  if (vectors.length !== widths.length || widths.every((width) => width === widths[0]))
    return validateEmbeddings(vectors, { ...wish, dimensions: widths[0] });
  return vectors.flatMap((one, i) =>
    validateEmbeddings([one], { ...wish, count: 1, dimensions: widths[i] }),
  );
}

/** Maps the purposes of vectors to Google's names, which its own API and Vertex share. */
const TASK_NAMES: TaskNames = {
  query: "RETRIEVAL_QUERY",
  document: "RETRIEVAL_DOCUMENT",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING",
  similarity: "SEMANTIC_SIMILARITY",
  question: "QUESTION_ANSWERING",
  fact: "FACT_VERIFICATION",
  code_query: "CODE_RETRIEVAL_QUERY",
};

/** Returns Google's name for a task. An approximated or dropped task is reported. */
export const embeddingTaskName = (
  { task }: EmbeddingRequest,
  of: LossReporter,
): string | undefined => taskNameFor(task, TASK_NAMES, of, "input_type");

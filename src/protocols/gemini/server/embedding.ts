// Server half of the embedding methods, for models of any provider.
import { fail } from "../../../model/error.ts";
import type { ModelResponse } from "../../../model/event.ts";
import type { EmbeddingRequest, Embedding } from "../../../model/request.ts";
import type { Body, Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import type { RequestFacts } from "../../../plugin/references.ts";
import { parseTask, encodeEmbedding } from "../../embeddings/index.ts";
import { asNumber, asObject, asObjects, omitUndefined, asText } from "../../json-values.ts";
import { referencedFeatures, findReferences } from "../../references/index.ts";
import { analyzeCost } from "../../cost-analysis.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import { normalizeEmbeddingBody } from "../normalize-field-names.ts";
import { needs } from "../analyze.ts";
import {
  embeddingRequestsIn,
  validateEmbeddingsFor,
  EMBEDDING_EXT,
} from "../embedding-requests.ts";

export function analyze(body: Body): RequestFacts {
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

export function decodeRequest(body: Body): EmbeddingRequest {
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

export const encodeEmbeddingList = (
  answer: ModelResponse,
  to: Pick<ResponseContext, "body">,
): JsonObject => ({
  embeddings: vectorsOf(answer, to),
  ...countsOf(answer),
});

export const encodeSingleEmbedding = (
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

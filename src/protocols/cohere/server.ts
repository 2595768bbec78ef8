// Server half of `POST /v2/embed`. Cohere's fields are converted to the equivalent fields of the
// embeddings protocol.
import { fail } from "../../model/error.ts";
import type { ModelResponse } from "../../model/event.ts";
import type { EmbeddingRequest, Embedding } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { ResponseContext } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import {
  validateEmbeddings,
  decodeEmbeddingRequest,
  analyzeEmbeddingRequest,
  parseDataType,
  readExpectation,
  encodeEmbedding,
} from "../embeddings/index.ts";
import { asList, asNumber, asObject, asObjects, asText } from "../json-values.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";

// ID of this protocol and its known fields.
export const ID = "cohere-embed";

const KNOWN_TOP_LEVEL_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "texts",
  "images",
  "inputs",
  "input_type",
  "embedding_types",
  "output_dimension",
  "truncate",
  "max_tokens",
]);

export const knowsField = (field: string): boolean => KNOWN_TOP_LEVEL_FIELDS.has(field);

/** Returns the request as a body of `POST /v1/embeddings`. */
function toEmbeddingsBody(body: Body): Body {
  return {
    model: asText(body["model"]) ?? "",
    input: textsIn(body),
    input_type: body["input_type"],
    output_dimension: body["output_dimension"],
    output_dtype: typeOf(body),
    truncate: body["truncate"],
  };
}

/** Analyzes a request body. The fields of both formats count. */
export function analyze({ texts, inputs, images, ...fields }: Body): RequestFacts {
  return analyzeEmbeddingRequest({
    ...fields,
    ...toEmbeddingsBody({ ...fields, texts, inputs, images }),
  });
}

export function decodeRequest(body: Body): EmbeddingRequest {
  const { ext: _, ...read } = decodeEmbeddingRequest(toEmbeddingsBody(body));
  const most = asNumber(body["max_tokens"]);
  return {
    ...read,
    rest: unknownTopLevelFields(body, (name) => body[name] === null || knowsField(name)),
    ext: most === undefined ? {} : { [ID]: { max_tokens: most } },
  };
}

function textsIn(body: Body): readonly string[] {
  if (asList(body["images"]).length > 0) return unsupported("images", "Images");
  const inputs = asObjects(body["inputs"]);
  const texts = asList(body["texts"]) as readonly string[];
  if (inputs.length === 0)
    return texts.length > 0
      ? texts
      : fail("invalid", "Missing texts: send the texts to embed as `texts` or `inputs`.", {
          param: "texts",
          code: "invalid_request",
        });
  return inputs.map(({ content }, i) =>
    asObjects(content)
      .map(
        (part) =>
          asText(part["text"]) ?? unsupported(`inputs[${i}].content`, "Content without text"),
      )
      .join("\n"),
  );
}

const unsupported = (param: string, what: string): never =>
  fail("unsupported", `${what} cannot be embedded through this endpoint. Send texts.`, {
    param,
    code: "unsupported_input",
  });

/**
 * Returns the requested data type. Only one type is allowed per request, because models of other
 * vendors return one.
 */
function typeOf(body: Body): Json {
  const types = asList(body["embedding_types"]);
  const known = parseDataType(types[0] ?? "float");
  if (types.length > 1 || known === undefined)
    return fail(
      "unsupported",
      "embedding_types must have one type: float, int8, uint8, binary or ubinary.",
      { param: "embedding_types", code: "unsupported_value" },
    );
  return known;
}

export function encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject {
  const request = toEmbeddingsBody(to.body);
  const wish = readExpectation(request);
  const vectors = validateEmbeddings((answer.items ?? []) as readonly Embedding[], wish);
  const units = answer.usage.input === undefined ? {} : { input_tokens: answer.usage.input };
  return {
    id: to.id,
    embeddings: { [wish.dtype]: vectors.map((vector) => encodeEmbedding(vector, wish) as Json) },
    texts: textsIn(to.body),
    response_type: "embeddings_by_type",
    meta: { api_version: { version: "2" }, billed_units: units },
  };
}

/** Returns the fields that exist only in this format, as the client sent them. */
export const cohereFields = (ext: EmbeddingRequest["ext"]): JsonObject => asObject(ext[ID]) ?? {};

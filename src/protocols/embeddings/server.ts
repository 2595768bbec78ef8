// The half of the embeddings protocol that faces clients.
import type { ModelResponse } from "../../model/event.ts";
import type { EmbeddingRequest, Embedding } from "../../model/request.ts";
import type { Body, Json, Opt, JsonObject } from "../../model/values.ts";
import type { ResponseContext } from "../../plugin/protocol.ts";
import { asNumber, omitUndefined, asText } from "../json-values.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";
import { parseTask } from "./embedding-requests.ts";
import {
  parseDataType,
  validateEmbeddings,
  readExpectation,
  encodeEmbedding,
} from "./embedding-values.ts";
import { COMMON_FIELDS, ENCODING_FORMAT, ID, TASK_FIELDS, usageTo, inputsIn } from "./spec.ts";

/** Decodes a request body into the common form. */
export function decodeRequest(body: Body): EmbeddingRequest {
  const field = TASK_FIELDS.find((name) => parseTask(body[name]) !== undefined);
  const own: Record<string, Json> = {};
  if (asText(body[ENCODING_FORMAT]) !== undefined)
    own[ENCODING_FORMAT] = asText(body[ENCODING_FORMAT])!;
  if (field !== undefined) own[field] = asText(body[field])!;
  const dtype = parseDataType(body["output_dtype"]);
  const cut = parseTruncation(body);
  return omitUndefined({
    operation: "embedding" as const,
    model: asText(body["model"]) ?? "",
    stream: false,
    inputs: inputsIn(body["input"]),
    dimensions: asNumber(body["dimensions"]) ?? asNumber(body["output_dimension"]),
    task: field === undefined ? undefined : parseTask(body[field]),
    dtype,
    truncate: cut,
    user: asText(body["user"]),
    rest: unknownTopLevelFields(
      body,
      (name) =>
        body[name] === null ||
        name === ENCODING_FORMAT ||
        name === field ||
        (COMMON_FIELDS.includes(name) &&
          (name !== "output_dtype" || dtype !== undefined) &&
          (!name.startsWith("truncat") || cut !== undefined)),
    ),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/**
 * Parses the truncation setting: a boolean, or one of the names of backends that can cut at either
 * end.
 */
function parseTruncation({ truncate, truncation: cuts }: Body): Opt<"none" | "start" | "end"> {
  const value = truncate ?? cuts;
  if (typeof value === "boolean") return value ? "end" : "none";
  const word = asText(value)?.toLowerCase();
  return word === "none" || word === "start" || word === "end" ? word : undefined;
}

/** Encodes a non-streaming response. */
export function encodeResponse(
  answer: ModelResponse,
  to: Pick<ResponseContext, "body" | "model">,
): JsonObject {
  const wish = readExpectation(to.body);
  const vectors = validateEmbeddings((answer.items ?? []) as readonly Embedding[], wish);
  return {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: encodeEmbedding(vector, wish) as Json,
    })),
    model: to.model,
    usage: usageTo(answer.usage),
  };
}

// The server half of `POST /v2/embed`: Cohere's fields are read as the fields of the embeddings protocol that mean the same.
import { fail } from "../../model/error.ts";
import type { ModelAnswer } from "../../model/event.ts";
import type { EmbeddingRequest, Vector } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { AnswerContext } from "../../plugin/protocol.ts";
import type { Survey } from "../../plugin/survey.ts";
import { checked, requestIn, surveyIn, typeIn, wishOf, written } from "../embeddings/index.ts";
import { list, number, object, objects, text } from "../json.ts";
import { unknownIn } from "../strangers.ts";
import { ID, knows } from "./words.ts";

/** The same request in the words of `POST /v1/embeddings`. */
export function common(body: Body): Body {
  return {
    model: text(body["model"]) ?? "",
    input: textsIn(body),
    input_type: body["input_type"],
    output_dimension: body["output_dimension"],
    output_dtype: typeOf(body),
    truncate: body["truncate"],
  };
}

/** What the request may cost and asks for: all of its fields count, in either format. */
export function survey({ texts, inputs, images, ...fields }: Body): Survey {
  return surveyIn({ ...fields, ...common({ ...fields, texts, inputs, images }) });
}

export function request(body: Body): EmbeddingRequest {
  const { ext: _, ...read } = requestIn(common(body));
  const most = number(body["max_tokens"]);
  return {
    ...read,
    rest: unknownIn(body, (name) => body[name] === null || knows(name)),
    ext: most === undefined ? {} : { [ID]: { max_tokens: most } },
  };
}

function textsIn(body: Body): readonly string[] {
  if (list(body["images"]).length > 0) return unsupported("images", "Images");
  const inputs = objects(body["inputs"]);
  const texts = list(body["texts"]) as readonly string[];
  if (inputs.length === 0)
    return texts.length > 0
      ? texts
      : fail("invalid", "Missing texts: send the texts to embed as `texts` or `inputs`.", {
          param: "texts",
          code: "invalid_request",
        });
  return inputs.map(({ content }, i) =>
    objects(content)
      .map(
        (part) => text(part["text"]) ?? unsupported(`inputs[${i}].content`, "Parts without text"),
      )
      .join("\n"),
  );
}

const unsupported = (param: string, what: string): never =>
  fail("unsupported", `${what} cannot be embedded through this endpoint. Send texts.`, {
    param,
    code: "unsupported_input",
  });

/** One type at a time: that is what models of other vendors return. */
function typeOf(body: Body): Json {
  const types = list(body["embedding_types"]);
  const known = typeIn(types[0] ?? "float");
  if (types.length > 1 || known === undefined)
    return fail(
      "unsupported",
      "embedding_types must have one type: float, int8, uint8, binary or ubinary.",
      { param: "embedding_types", code: "unsupported_value" },
    );
  return known;
}

export function whole(answer: ModelAnswer, to: AnswerContext): JsonObject {
  const asked = common(to.body);
  const wish = wishOf(asked);
  const vectors = checked((answer.items ?? []) as readonly Vector[], wish);
  const units = answer.usage.input === undefined ? {} : { input_tokens: answer.usage.input };
  return {
    id: to.id,
    embeddings: { [wish.dtype]: vectors.map((vector) => written(vector, wish) as Json) },
    texts: textsIn(to.body),
    response_type: "embeddings_by_type",
    meta: { api_version: { version: "2" }, billed_units: units },
  };
}

/** Fields that a client of this format sent and other formats lack. */
export const own = (ext: EmbeddingRequest["ext"]): JsonObject => object(ext[ID]) ?? {};

// Vectors for Google's clients, from models of any provider.
import { fail } from "../../../model/error.ts";
import type { ModelAnswer } from "../../../model/event.ts";
import type { EmbeddingRequest, Vector } from "../../../model/request.ts";
import type { Body, Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import type { Survey } from "../../../plugin/survey.ts";
import { taskOf, written } from "../../embeddings/index.ts";
import { number, object, objects, present, text } from "../../json.ts";
import { featuresOf, look } from "../../look/index.ts";
import { spending } from "../../spending.ts";
import { unknownIn } from "../../strangers.ts";
import { vectorsInOneSpelling } from "../one-spelling.ts";
import { needs } from "../survey.ts";
import { asksIn, owed, VECTORS } from "../vectors.ts";

export function survey(body: Body): Survey {
  const named = look(body);
  const features = featuresOf(named);
  const media = { count: 0, bytes: 0 };
  for (const one of asksIn(body))
    for (const part of objects(object(one["content"])?.["parts"])) needs(part, media, features);
  const { n: _, ...spent } = spending(body, named, { output: undefined });
  return {
    features: [...features],
    named,
    ...spent,
    ...(media.count > 0 && { media }),
  };
}

/** One for all texts of a request, with other vendors. */
const SHARED = ["taskType", "outputDimensionality"] as const;
/** What stands at the top beside what was asked. */
const TOP: ReadonlySet<string> = new Set(["model", "requests"]);
const SAID: ReadonlySet<string> = new Set([...TOP, ...SHARED, "content", "title"]);

export function request(body: Body): EmbeddingRequest {
  const fields = vectorsInOneSpelling(body) as JsonObject;
  const asks = asksIn(body);
  const [first = {}] = asks;
  for (const [i, one] of asks.entries())
    for (const field of SHARED)
      if (one[field] !== first[field])
        fail(
          "unsupported",
          `${field} must be the same for all texts, with models that are not Google's.`,
          {
            param: `requests[${i}].${field}`,
            code: "unsupported_value",
          },
        );
  const several = fields["requests"] !== undefined;
  const known = several ? TOP : SAID;
  const own = asks.map((one) => ownOf(one, several));
  return present({
    kind: "embedding" as const,
    model: text(body["model"]) ?? "",
    stream: false,
    inputs: asks.map(({ content }, i) =>
      wordsOf(content, several ? `requests[${i}].content` : "content"),
    ),
    dimensions: number(first["outputDimensionality"]),
    task: taskOf(first["taskType"]),
    rest: unknownIn(fields, (name) => known.has(name)),
    ext: own.some((one) => Object.keys(one).length > 0) ? { [VECTORS]: own } : {},
  });
}

/** A title, a task that is newer than us; of one in a list, whatever it says beside. */
function ownOf(one: JsonObject, several: boolean): JsonObject {
  const { content: _content, model: _model, outputDimensionality: _width, taskType, ...rest } = one;
  const task = taskOf(taskType) === undefined ? { taskType } : {};
  return present({ ...(several ? rest : { title: rest["title"] }), ...task }) as JsonObject;
}

/** All parts of a content make one vector. */
function wordsOf(content: unknown, at: string): string {
  return objects(object(content)?.["parts"])
    .map(
      (part) =>
        text(part["text"]) ??
        fail("unsupported", "What is no text is turned into vectors by Google's models alone.", {
          param: `${at}.parts`,
          code: "unsupported_input",
        }),
    )
    .join("\n");
}

export const several = (answer: ModelAnswer, to: Pick<AnswerContext, "body">): JsonObject => ({
  embeddings: vectorsOf(answer, to),
  ...countsOf(answer),
});

export const single = (answer: ModelAnswer, to: Pick<AnswerContext, "body">): JsonObject => ({
  embedding: vectorsOf(answer, to)[0],
  ...countsOf(answer),
});

const vectorsOf = (answer: ModelAnswer, { body }: Pick<AnswerContext, "body">): readonly Json[] =>
  owed(body, (answer.items ?? []) as readonly Vector[]).map((vector) => ({
    values: written(vector, FLOATS) as Json,
  }));

const FLOATS = { count: 1, width: undefined, dtype: "float", base64: false } as const;

function countsOf({ usage: { input } }: ModelAnswer): JsonObject {
  return input ? { usageMetadata: { promptTokenCount: input, totalTokenCount: input } } : {};
}

export const stream = (): never =>
  fail("unsupported", "Vectors come in one piece.", { param: "alt" });
